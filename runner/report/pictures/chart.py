"""What every picture is before it is drawn: a question, and charts of lines over two axes with units.

`runner.report.pictures.svg` knows only this; the modules beside it only make it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Axis:
    """`label` says what and in which unit. `ticks`: value -> how it reads, in place of round numbers."""

    label: str
    log: bool = False
    ticks: Mapping[float, str] | None = field(default=None, hash=False)


@dataclass(frozen=True)
class Point:
    """A value, with the least and the most of the runs where there are several. `marked`: whether a marker is
    drawn; `hollow`: whether it is an empty one.
    """

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    marked: bool = True
    hollow: bool = False


@dataclass(frozen=True)
class Line:
    """`look`: which colour and marker (one for each protocol); `dash`: which dashes (of the lines of one look).

    `repeats`: runs of the same thing, drawn thin, by what each is called.
    """

    name: str
    look: int
    dash: int
    points: Sequence[Point]
    repeats: Mapping[str, Sequence[Point]] = field(default_factory=dict)


@dataclass(frozen=True)
class Mark:
    """A level to compare with."""

    y: float
    label: str


@dataclass(frozen=True)
class Chart:
    """`title`: what tells it from the other charts of its picture, "" where it is the only one."""

    title: str
    x: Axis
    y: Axis
    lines: Sequence[Line]
    marks: Sequence[Mark] = ()


@dataclass(frozen=True)
class Picture:
    """`question`: what it answers. `table`: the table with the numbers. `notes`: how to read it.

    Charts that share an axis share its scale.
    """

    name: str
    question: str
    table: str
    charts: Sequence[Chart]
    notes: Sequence[str] = ()

    def extent(self, axis: Axis) -> tuple[float, float]:
        """The least and the most of all that is drawn along `axis`; above 0 only where it is logarithmic."""
        found: list[float] = []
        for chart in self.charts:
            curves = [points for line in chart.lines for points in (line.points, *line.repeats.values())]
            drawn = [point for points in curves for point in points]
            if chart.x == axis:
                found += [point.x for point in drawn]
            if chart.y == axis:
                found += [value for p in drawn for value in (p.y, p.low, p.high) if value is not None]
                found += [mark.y for mark in chart.marks]
        kept = [value for value in found if value > 0 or not axis.log]
        return min(kept), max(kept)


def drawable(points: Sequence[Point], x: Axis, y: Axis) -> list[Point]:
    """Those that the axes can show: a logarithmic one has no place for 0 and less."""
    return [point for point in points if (point.x > 0 or not x.log) and (point.y > 0 or not y.log)]
