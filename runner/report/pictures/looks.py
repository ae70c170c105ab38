"""What the lines of a picture are called, and how they are told apart without colour."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from runner.report.compare import named
from runner.report.context import Context
from runner.report.pictures.chart import Line, Point
from runner.report.rows import Row, Rows


@dataclass
class Looks:
    """Each protocol has a colour and a marker, the same in every picture of a sweep; its lines differ in dashes,
    and a line that is in several charts of a picture has the same ones in each.
    """

    protocols: Sequence[str]
    _dashes: dict[str, dict[str, int]] = field(default_factory=dict)

    def line(
        self,
        name: str,
        protocol: str,
        points: Sequence[Point],
        repeats: Mapping[str, Sequence[Point]] | None = None,
    ) -> Line:
        """The line `name` of `protocol`."""
        known = self._dashes.setdefault(protocol, {})
        dash = known.setdefault(name, len(known))
        return Line(name, self.protocols.index(protocol), dash, points, repeats or {})


def looks_of(context: Context) -> Looks:
    """For one picture of a sweep."""
    return Looks(list(dict.fromkeys(protocol for protocol, _ in context.sweep.engines)))


def groups(rows: Rows, *along: str) -> Iterator[tuple[str, list[Row]]]:
    """The good rows that share every condition but those `along` an axis, with what tells them from the others."""
    found: dict[tuple[str, ...], list[Row]] = {}
    for row in rows.good:
        place = tuple(str(value) for key, value in row.under.items() if key not in along)
        found.setdefault(place, []).append(row)
    for members in found.values():
        yield rows.differing(members[0], along), members


def titled(*parts: str) -> str:
    """The title of a chart."""
    return ", ".join(part for part in parts if part)


def by_name(rows: Rows, members: Sequence[Row]) -> dict[str, list[Row]]:
    """`members` with the same key, under the shortest name that tells them from all good rows."""
    found: dict[str, list[Row]] = {}
    for side in named(rows.good):
        if side.row in members:
            found.setdefault(side.name, []).append(side.row)
    return found
