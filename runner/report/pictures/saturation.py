"""How response times grow with the rate of calls, up to where the objective is broken."""

from __future__ import annotations

from runner.report.compare import named
from runner.report.context import Context
from runner.report.figures import plain
from runner.report.pictures.chart import Axis, Chart, Mark, Picture, Point
from runner.report.pictures.looks import groups, looks_of
from runner.report.read import Run
from runner.report.tables.saturation import CURVE, OPERATION, in_the_middle

US_PER_MS = 1e3
X = Axis("calls/s asked for", log=True)
Y = Axis("p99 of the response time, µs", log=True)
NOTES = (
    "filled: the rate was kept; empty: it was not (slower than the objective, calls dropped or failed, or answers "
    "that fell behind); of repeats the one in the middle; void, failed and interrupted runs are not drawn",
)


def saturation(context: Context) -> Picture | None:
    """None without a search that tried rates."""
    rows = context.rows(OPERATION)
    looks = looks_of(context)
    charts = []
    for title, members in groups(rows):
        lines, marks = [], {}
        for side in named(members):
            run = in_the_middle(side.row)
            if run is None or not (points := _points(run)):
                continue
            lines.append(looks.line(side.name, run.protocol, points))
            if ms := run.metric("slo_p99_ms"):
                marks[ms] = Mark(ms * US_PER_MS, f"objective: {plain(ms)} ms")
        if lines:
            charts.append(Chart(title, X, Y, lines, list(marks.values())))
    question = "At which rate do answers become too slow?"
    return Picture("saturation_curve", question, CURVE, charts, NOTES) if charts else None


def _points(run: Run) -> list[Point]:
    found = [
        Point(rate, p99, hollow=not step.get("kept"))
        for step in run.steps
        if (rate := step.get("rate_per_s")) and (p99 := step.get("response_p99_us"))
    ]
    return sorted(found, key=lambda point: (point.x, point.y))
