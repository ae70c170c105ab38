"""How long calls take, from the fastest to the slowest: latency by percentile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from hdrh.histogram import HdrHistogram

from runner.report.context import OPEN_LOOP, Context
from runner.report.curves import histograms
from runner.report.figures import plain
from runner.report.pictures.chart import Axis, Chart, Picture, Point
from runner.report.pictures.looks import by_name, groups, looks_of

NS_PER_US = 1e3
MARKED = (50.0, 90.0, 99.0, 99.9, 99.99)
BETWEEN = (25.0, 75.0, 80.0, 85.0, 95.0, 97.0, 98.0, 99.5, 99.7, 99.8, 99.95)
PERCENTILES = (0.0, *sorted((*MARKED, *BETWEEN)))
# The axis is that of HdrHistogram's plots: each step from one mark to the next is a tenth of the calls.
REACH = {percentile: round(100 / (100 - percentile), 6) for percentile in PERCENTILES}
X = Axis("percentile of the calls", True, {REACH[p]: plain(p) for p in (0.0, *MARKED)})
NOTES = (
    "thick: at each percentile the median of the repeats; thin: the repeats; a line goes as far as its calls do: "
    "of 1,000 to 99.9",
    "void, failed and interrupted runs are not drawn",
)
KINDS = {
    "request_response": ("latency", "How long does a call take, and the slowest ones?", "latency, µs"),
    "open_loop": (
        "response",
        "How long does an answer take at a fixed rate, waiting for a connection included?",
        "response time, µs",
    ),
}


def request_response(context: Context) -> Picture | None:
    """None without distributions."""
    return _build(context, "request_response")


def open_loop(context: Context) -> Picture | None:
    """None without distributions."""
    return _build(context, "open_loop")


def _build(context: Context, kind: str) -> Picture | None:
    rows = context.rows(kind)
    if not rows.good:
        return None
    name, question, label = KINDS[kind]
    found = histograms(context.sweep, OPEN_LOOP.get(kind, kind), name)
    looks, y = looks_of(context), Axis(label, log=True)
    charts = []
    for title, members in groups(rows):
        lines = []
        for line, [row, *_] in by_name(rows, members).items():
            runs = {f"repeat {run.repeat}": _curve(found[run.run_id]) for run in row.runs if run.run_id in found}
            if runs:
                middle = _middle(list(runs.values()))
                lines.append(looks.line(line, row.first.protocol, middle, _thin(runs)))
        if lines:
            charts.append(Chart(title, X, y, lines))
    return Picture(f"{kind}_percentiles", question, kind, charts, NOTES) if charts else None


def _curve(histogram: HdrHistogram) -> Mapping[float, float]:
    """percentile -> µs, for those that so many calls support."""
    calls = histogram.get_total_count()
    asked = [p for p in PERCENTILES if REACH[p] <= calls]
    values = histogram.get_percentile_to_value_dict(asked)
    return {p: values[p] / NS_PER_US for p in asked}


def _middle(runs: Sequence[Mapping[float, float]]) -> list[Point]:
    shared = [p for p in runs[0] if all(p in run for run in runs)]
    return [
        Point(
            REACH[p],
            median(values := [run[p] for run in runs]),
            min(values) if len(runs) > 1 else None,
            max(values) if len(runs) > 1 else None,
            marked=p in MARKED,
        )
        for p in shared
    ]


def _thin(runs: Mapping[str, Mapping[float, float]]) -> dict[str, list[Point]]:
    if len(runs) < 2:
        return {}
    return {name: [Point(REACH[p], us, marked=False) for p, us in run.items()] for name, run in runs.items()}
