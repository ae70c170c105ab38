"""How many requests a server answers as connections become more."""

from __future__ import annotations

from runner.report.context import Context
from runner.report.figures import number
from runner.report.pictures.bulk import measured
from runner.report.pictures.chart import Axis, Chart, Picture
from runner.report.pictures.looks import by_name, groups, looks_of

OPERATION = "hello"
Y = Axis("requests/s")
NOTES = (
    "medians; bars: least and most of the runs, or the interval; void, failed and interrupted runs are not drawn",
)


def hello(context: Context) -> Picture | None:
    """None unless it was measured with different numbers of connections."""
    rows = context.rows(OPERATION)
    steps = sorted({row.first.connections for row in rows.good})
    if len(steps) < 2:
        return None
    x = Axis("connections", True, {float(n): number(n) for n in steps})
    looks = looks_of(context)
    charts = []
    for title, members in groups(rows, "connections"):
        lines = [
            looks.line(name, own[0].first.protocol, points)
            for name, own in by_name(rows, members).items()
            if (points := measured(own, "connections", "requests_per_s"))
        ]
        if lines:
            charts.append(Chart(title, x, Y, lines))
    question = "Do more connections mean more requests per second?"
    return Picture("hello_ladder", question, OPERATION, charts, NOTES) if charts else None
