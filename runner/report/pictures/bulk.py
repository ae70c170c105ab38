"""What many records cost: seconds and memory by their number."""

from __future__ import annotations

from collections.abc import Sequence

from runner.report.context import Context
from runner.report.pictures.chart import Axis, Chart, Line, Picture, Point, drawable
from runner.report.pictures.looks import Looks, by_name, groups, looks_of, titled
from runner.report.rows import Row

LINES_MOST = 6  # in one chart: with more, each shape has a chart of its own
BYTES_PER_MB = 1e6
X = Axis("records", log=True)
SECONDS = Axis("seconds", log=True)
MEMORY = Axis("growth of resident memory, MB", log=True)
# metric -> what its charts are called, their axis, and how many of the metric's unit make one of the axis'.
METRICS = {
    "seconds": ("time", SECONDS, 1.0),
    "driver_rss_growth_bytes": ("memory of the driver", MEMORY, BYTES_PER_MB),
    "server_rss_growth_bytes": ("memory of the server", MEMORY, BYTES_PER_MB),
}
NOTES = (
    "medians; bars: least and most of the runs, or the interval; runs that did not end well are not drawn",
    "a growth of 0 or less has no place on a logarithmic axis: it is in the table",
)
QUESTIONS = {
    "upload": "What does it take to send many records?",
    "download": "What does it take to fetch many records?",
}


def upload(context: Context) -> Picture | None:
    """None unless some way was measured with different numbers of records."""
    return _build(context, "upload")


def download(context: Context) -> Picture | None:
    """None unless some way was measured with different numbers of records."""
    return _build(context, "download")


def _build(context: Context, operation: str) -> Picture | None:
    rows = context.rows(operation)
    if len({row.under["records"] for row in rows.good}) < 2:
        return None
    looks = looks_of(context)
    charts = []
    # Only the batched shape has a batch: as a condition it would part what belongs together.
    for title, members in groups(rows, "records", "batch"):
        ways = by_name(rows, members)
        shapes = list(dict.fromkeys(row.key[4] for row in members))
        parts = [[shape] for shape in shapes] if len(ways) > LINES_MOST else [shapes]
        for metric, (what, axis, scale) in METRICS.items():
            for part in parts:
                inside = {name: own for name, own in ways.items() if own[0].key[4] in part}
                shape = part[0] if len(shapes) > 1 and len(part) == 1 else ""
                chart = Chart(titled(what, shape, title), X, axis, _lines(inside, metric, scale, looks))
                charts += [chart] if any(drawable(line.points, X, axis) for line in chart.lines) else []
    return Picture(f"{operation}_by_records", QUESTIONS[operation], operation, charts, NOTES) if charts else None


def _lines(ways: dict[str, list[Row]], metric: str, scale: float, looks: Looks) -> list[Line]:
    lines = []
    for name, own in ways.items():
        if points := measured(own, "records", metric, scale):
            lines.append(looks.line(name, own[0].first.protocol, points))
    return lines


def measured(rows: Sequence[Row], along: str, metric: str, scale: float = 1.0) -> list[Point]:
    """The medians of `metric` by the condition `along`, with their brackets, in units of `scale`."""
    found = []
    for row in sorted(rows, key=lambda row: float(row.under[along])):
        estimate = row.estimate(metric)
        if estimate is not None:
            alone = estimate.kind == "single"
            low, high = (None, None) if alone else (estimate.low / scale, estimate.high / scale)
            found.append(Point(float(row.under[along]), estimate.median / scale, low, high))
    return found
