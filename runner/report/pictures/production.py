"""What a server makes for a reader that went quiet: messages over the quiet period."""

from __future__ import annotations

import math
from collections.abc import Sequence

from runner.report.compare import named
from runner.report.context import Context
from runner.report.curves import series
from runner.report.figures import number
from runner.report.pictures.chart import Axis, Chart, Mark, Picture, Point
from runner.report.pictures.looks import groups, looks_of, titled
from runner.report.read import Run
from runner.report.rows import Row, style

OPERATION = "backpressure"
SERIES = "produced"
X = Axis("s since the reader went quiet")
Y = Axis("messages made", log=True)
POINTS_MOST = 60
MARKERS = 6
NOTES = (
    "the dashed level: what the reader had asked for; a line ends where the watch did: once the count stood still, "
    "at the memory ceiling, or at the end of the time",
    "thick: of the repeats the one in the middle; thin: the others; void and failed runs are not drawn",
)


def production(context: Context) -> Picture | None:
    """None without runs that were watched."""
    rows = context.rows(OPERATION)
    if not rows.good:
        return None
    watched = series(context.sweep, OPERATION, SERIES)
    looks = looks_of(context)
    charts = []
    for title, members in groups(rows):
        asked = members[0].under.get("asked")
        marks = [Mark(asked, f"asked for: {number(asked)}")] if asked else []
        for producer in dict.fromkeys(style(row.first, "producer") for row in members):
            lines = []
            for side in named([row for row in members if style(row.first, "producer") == producer]):
                found = [(run, _points(run, watched.get(run.run_id))) for run in side.row.runs]
                drawn = sorted((one for one in found if one[1]), key=lambda one: one[1][-1].y)
                if not drawn:
                    continue
                _, middle = drawn.pop((len(drawn) - 1) // 2)
                thin = {f"repeat {run.repeat}": [_unmarked(p) for p in points] for run, points in drawn}
                lines.append(looks.line(_name(side.name, side.row), side.row.first.protocol, middle, thin))
            if lines:
                charts.append(Chart(titled(f"producer {producer}", title), X, Y, lines, marks))
    question = "When the reader goes quiet, how much does the server still make?"
    return Picture("production", question, OPERATION, charts, NOTES) if charts else None


def _name(name: str, row: Row) -> str:
    """With the consumer, as the same protocol may have a line in another chart with another one."""
    consumer = style(row.first, "consumer")
    return name if not consumer or name.endswith(f" {consumer}") else f"{name} {consumer}"


def _points(run: Run, watched: Sequence[tuple[float, float]] | None) -> list[Point]:
    """At most POINTS_MOST of the moments, the first and the last among them; without any, those of the table."""
    found = watched or [(quiet_s, made) for quiet_s, made in sorted(run.quiet.items()) if made is not None]
    found = [moment for moment in found if moment[1] > 0]
    every = max(1, math.ceil((len(found) - 1) / (POINTS_MOST - 1)))
    kept = [*found[:-1:every], *found[-1:]]
    marked = max(1, math.ceil((len(kept) - 1) / MARKERS))
    return [Point(s, made, marked=i % marked == 0 or i == len(kept) - 1) for i, (s, made) in enumerate(kept)]


def _unmarked(point: Point) -> Point:
    return Point(point.x, point.y, marked=False)
