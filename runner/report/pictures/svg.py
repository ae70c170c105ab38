"""A chart as SVG: to be read in black and white, on a phone, on a light and on a dark page.

Lines differ in markers and dashes, and besides in colour; text is large enough for a phone's width.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, tostring

from runner.report.layout import width_of, wrap
from runner.report.pictures.chart import Chart, Line, Picture, Point, drawable
from runner.report.pictures.scale import Scale, reading, scale

WIDTH, PLOT = 480, 250  # of the picture, and the height of what the axes enclose
LINE, PLACE = 18, 7.4  # height of a line of text, and the width that one place of it takes at most
TOP, BOTTOM, RIGHT = 30, 46, 18
INSET = 9  # between an axis and the first value, so that no marker lies on the axis
SAMPLE = 40  # width of a line's sample in the legend
SIZE = 4.5  # of a marker, from its middle
MARKERS = (
    "M0-{r}A{r} {r} 0 1 1 0 {r}A{r} {r} 0 1 1 0-{r}Z",  # circle
    "M-{r}-{r}H{r}V{r}H-{r}Z",  # square
    "M0-{s}L{s} {r}H-{s}Z",  # triangle
    "M0-{s}L{s} 0L0 {s}L-{s} 0Z",  # diamond
    "M0 {s}L{s}-{r}H-{s}Z",  # triangle upside down
    "M-{r}-{r}L{r} {r}M-{r} {r}L{r}-{r}",  # x
    "M0-{s}V{s}M-{s} 0H{s}",  # plus
    "M-{r}-{s}H{r}V{s}H-{r}Z",  # upright box
    "M-{s}-{r}H{s}V{r}H-{s}Z",  # lying box
)
DASHES = ("", "9 4", "2 4", "9 4 2 4", "16 4", "2 2", "9 4 2 4 2 4", "5 9")
COLOURS = ("#0068a8", "#b83d00", "#00734f", "#8b3a8b", "#8a5a00", "#444444", "#1f7f8f", "#a3195b", "#5b5b00")
ON_DARK = ("#6cb9ff", "#ff9c6e", "#4fd1a0", "#e3a0e3", "#edc05c", "#cccccc", "#7ddbe8", "#ff8fc0", "#d4d46a")


def _theme(colours: Sequence[str], **others: str) -> str:
    named = {**{f"look{i}": colour for i, colour in enumerate(colours)}, **others}
    return ":root{" + ";".join(f"--{name}:{value}" for name, value in named.items()) + "}"


STYLE = (
    _theme(COLOURS, ink="#1c1c1c", faint="#6a6a6a", grid="#dcdcdc", paper="#ffffff")
    + "@media (prefers-color-scheme:dark){"
    + _theme(ON_DARK, ink="#ececec", faint="#a8a8a8", grid="#3c3c3c", paper="#16181b")
    + "}"
    "svg.chart{background:var(--paper);font:13px system-ui,sans-serif}"
    "svg.chart text{fill:var(--ink)}svg.chart .heading{font-weight:600}"
    "svg.chart .grid{stroke:var(--grid);stroke-width:1}svg.chart .axis{stroke:var(--faint);stroke-width:1}"
    "svg.chart .mark{stroke:var(--ink);stroke-width:1.2;stroke-dasharray:5 3}"
    "svg.chart polyline{fill:none;stroke:currentColor;stroke-width:2;stroke-linejoin:round}"
    "svg.chart polyline.thin{stroke-width:1;opacity:.55;stroke-dasharray:none}"
    "svg.chart .bar{stroke:currentColor;stroke-width:1.5}"
    "svg.chart .marker{fill:currentColor;stroke:currentColor;stroke-width:1.6}"
    "svg.chart .hollow{fill:var(--paper)}"
    "svg.chart .label{paint-order:stroke;stroke:var(--paper);stroke-width:4px}"
    + "".join(f".look{i}{{color:var(--look{i})}}" for i in range(len(COLOURS)))
)


def drawn(picture: Picture, chart: Chart, name: str, alone: bool = False) -> str:
    """The SVG element. `name`: unique on the page, for its ids. `alone`: as a file of its own, with its style."""
    legend = _legend(chart.lines)
    height = TOP + PLOT + BOTTOM + LINE * sum(len(entry) for entry in legend)
    svg = Element("svg", {"class": "chart", "viewBox": f"0 0 {WIDTH} {height}", "role": "img"})
    svg.set("aria-labelledby", f"{name}-title {name}-desc")
    if alone:
        svg.set("xmlns", "http://www.w3.org/2000/svg")
        SubElement(svg, "style").text = STYLE
    said = f"{picture.question} {chart.title}".strip()
    SubElement(svg, "title", id=f"{name}-title").text = said
    names = "; ".join(line.name for line in chart.lines)
    SubElement(svg, "desc", id=f"{name}-desc").text = f"{chart.y.label} by {chart.x.label}. Lines: {names}."
    x, y = _scales(picture, chart)
    _frame(svg, chart, x, y)
    for line in chart.lines:
        _line(svg, chart, line, x, y)
    for i, entry in enumerate(legend):
        _legend_entry(svg, chart.lines[i], entry, TOP + PLOT + BOTTOM + LINE * sum(map(len, legend[:i])))
    return tostring(svg, encoding="unicode")


def _scales(picture: Picture, chart: Chart) -> tuple[Scale, Scale]:
    y = scale(*picture.extent(chart.y), chart.y.log, TOP + PLOT - (INSET if chart.y.log else 0), TOP)
    left = max(width_of(reading(tick)) for tick in y.ticks()) * PLACE + 12 + INSET
    low, high = picture.extent(chart.x)
    if chart.x.ticks is None:
        return scale(low, high, chart.x.log, left, WIDTH - RIGHT), y
    return Scale(low, high, chart.x.log, left, WIDTH - RIGHT), y


def _frame(svg: Element, chart: Chart, x: Scale, y: Scale) -> None:
    """Grid, ticks, labels, levels."""
    left, bottom = x.start - INSET, TOP + PLOT
    _text(svg, 4, 17, chart.y.label, "heading")
    for tick in y.ticks():
        _rule(svg, "grid", left, y.at(tick), x.end, y.at(tick))
        _text(svg, left - 6, y.at(tick) + 4.5, reading(tick), "ytick", "end")
    said = chart.x.ticks or {tick: reading(tick) for tick in x.ticks()}
    free = 0.0
    for value, text in said.items():
        if x.low <= value <= x.high:
            at, half = x.at(value), width_of(text) * PLACE / 2
            _rule(svg, "grid", at, bottom, at, y.end)
            if at - half >= free:  # labels never overlap; the rule stays
                _text(svg, min(at, WIDTH - half), bottom + 17, text, "xtick", "middle")
                free = at + half + 4
    _rule(svg, "axis", left, bottom, x.end, bottom)
    _rule(svg, "axis", left, bottom, left, y.end)
    _text(svg, x.end, bottom + 36, chart.x.label, "heading", "end")
    for mark in chart.marks:
        _rule(svg, "mark", left, y.at(mark.y), x.end, y.at(mark.y))
        _text(svg, x.end - 4, y.at(mark.y) - 5, mark.label, "label", "end")


def _line(svg: Element, chart: Chart, line: Line, x: Scale, y: Scale) -> None:
    group = SubElement(svg, "g", {"class": _look(line), "data-line": line.name})
    for name, repeat in line.repeats.items():
        thin = _polyline(group, drawable(repeat, chart.x, chart.y), x, y, "thin")
        thin.set("data-repeat", name)
    points = drawable(line.points, chart.x, chart.y)
    main = _polyline(group, points, x, y, "main")
    if dashes := DASHES[line.dash % len(DASHES)]:
        main.set("stroke-dasharray", dashes)
    for point in points:
        if not line.repeats and point.low is not None and point.high is not None:
            ends = [y.at(max(value, y.low)) for value in (point.low, point.high)]
            _rule(group, "bar", x.at(point.x), ends[0], x.at(point.x), ends[1])
        if point.marked:
            marker = _marker(group, line, x.at(point.x), y.at(point.y), point.hollow)
            SubElement(marker, "title").text = f"{line.name}: {_read(chart, point)}"


def _read(chart: Chart, point: Point) -> str:
    """What a pointer that rests on a marker is told."""
    x = (chart.x.ticks or {}).get(point.x) or reading(point.x)
    return f"{chart.y.label} {reading(float(f'{point.y:.6g}'))} at {x} {chart.x.label}"


def _legend(lines: Sequence[Line]) -> list[list[str]]:
    """The name of each line, wrapped."""
    return [wrap(line.name, int((WIDTH - SAMPLE - 12) / PLACE)) for line in lines]


def _legend_entry(svg: Element, line: Line, entry: Sequence[str], top: float) -> None:
    group = SubElement(svg, "g", {"class": f"{_look(line)} legend"})
    middle = top + LINE / 2
    sample = SubElement(group, "polyline", points=f"6,{_px(middle)} {SAMPLE},{_px(middle)}")
    if dashes := DASHES[line.dash % len(DASHES)]:
        sample.set("stroke-dasharray", dashes)
    _marker(group, line, (6 + SAMPLE) / 2, middle, False)
    for i, text in enumerate(entry):
        _text(group, SAMPLE + 8, middle + 4.5 + LINE * i, text)


def _look(line: Line) -> str:
    return f"look{line.look % len(COLOURS)}"


def _marker(parent: Element, line: Line, x: float, y: float, hollow: bool) -> Element:
    shape = MARKERS[line.look % len(MARKERS)].format(r=f"{SIZE:g}", s=f"{SIZE * 1.3:g}")
    kind = "marker hollow" if hollow else "marker"
    return SubElement(parent, "path", {"class": kind, "d": shape, "transform": f"translate({_px(x)} {_px(y)})"})


def _polyline(parent: Element, points: Sequence[Point], x: Scale, y: Scale, kind: str) -> Element:
    places = " ".join(f"{_px(x.at(point.x))},{_px(y.at(point.y))}" for point in points)
    return SubElement(parent, "polyline", {"class": kind, "points": places})


def _rule(parent: Element, kind: str, x1: float, y1: float, x2: float, y2: float) -> None:
    ends = {"x1": _px(x1), "y1": _px(y1), "x2": _px(x2), "y2": _px(y2)}
    SubElement(parent, "line", {"class": kind, **ends})


def _text(parent: Element, x: float, y: float, text: str, kind: str = "", anchor: str = "") -> None:
    found = {"x": _px(x), "y": _px(y), "class": kind, "text-anchor": anchor}
    SubElement(parent, "text", {key: value for key, value in found.items() if value}).text = text


def _px(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
