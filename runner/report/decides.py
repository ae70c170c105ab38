"""What decides memory, bytes and time of a bulk transfer: streaming, the codec or the protocol.

Each of the three is looked at alone: ratios between good rows that differ in this one thing and share every
condition, at the most records for which there are such rows. The one with the largest median ratio is said to
decide, if a difference can be claimed at all.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from runner.report.figures import counted, ratio
from runner.report.read import Run
from runner.report.rows import Row, Rows
from runner.report.stats import Comparison, compare

STREAMING = "streaming"
STREAMED = ("single", "batched")
LEAST_GROWTH_BYTES = 1e6  # resident memory comes and goes by less than this whatever is sent
MEMORY = "memory (growth of both sides' peak, under 1 MB counted as 1 MB)"

Values = Callable[[Run], float | None]


@dataclass(frozen=True)
class Effect:
    """`axis`: what differs; `ratios`: one for each set of rows that differ in it alone; `records`: how many."""

    axis: str
    ratios: Sequence[Comparison]
    records: float
    equivalent_pct: float

    @property
    def size(self) -> float:
        """The median ratio, whichever way round."""
        return statistics.median(max(found.ratio, 1 / found.ratio) for found in self.ratios)

    @property
    def claimed(self) -> bool:
        """Whether a difference is claimed of at least half of the sets."""
        return 2 * sum(bool(found.claimed) for found in self.ratios) >= len(self.ratios)

    def words(self) -> str:
        low, high = min(found.ratio for found in self.ratios), max(found.ratio for found in self.ratios)
        many = f"{ratio(low)} to {ratio(high)}" if ratio(low) != ratio(high) else ratio(low)
        return f"{self.axis}{' against one body' if self.axis == STREAMING else ''} {many}"


def growth(run: Run) -> float | None:
    """Bytes by which the peak of both sides grew, at least LEAST_GROWTH_BYTES; None where one was not measured."""
    both = [run.metric("driver_rss_growth_bytes"), run.metric("server_rss_growth_bytes")]
    found = [value for value in both if value is not None]
    return max(sum(found), LEAST_GROWTH_BYTES) if len(found) == len(both) else None


def decides(rows: Rows) -> list[str]:
    """Three sentences at most under one heading; none where nothing can be compared."""
    measured: list[tuple[str, Values, bool]] = [
        (MEMORY, growth, False),
        ("bytes per record", lambda run: run.metric("bytes_per_record"), True),
        ("seconds", lambda run: run.metric("seconds"), False),
    ]
    lines = [line for what, values, exact in measured if (line := _sentence(rows, what, values, exact))]
    heading = "what decides; ratios between rows that differ in this alone:"
    return [heading, *lines] if lines else []


def _sentence(rows: Rows, what: str, values: Values, exact: bool) -> str:
    effects = [
        effect
        for axis, members, tell in _axes(exact)
        if (effect := _effect(rows, axis, members, tell, values)) is not None
    ]
    if not effects:
        return ""
    ranked = sorted(effects, key=lambda effect: -effect.size)
    numbers = {effect.records for effect in ranked}
    at = {records: f" at {counted(records, 'record')}" for records in numbers}
    said = ", ".join(f"{effect.words()}{at[effect.records] if len(at) > 1 else ''}" for effect in ranked)
    what += at[numbers.pop()] if len(at) == 1 else ""
    first = ranked[0]
    if not exact and not any(found.claimed is not None for effect in ranked for found in effect.ratios):
        return f"  {what}: {said}: nothing is claimed of single runs"
    if first.size <= 1 + first.equivalent_pct / 100 or not (exact or first.claimed):
        return f"  {what}: {said}: no clear difference by any"
    if len(ranked) == 1:
        return f"  {what}: {said}"
    return f"  {what}: {said}: {first.axis} decides"


Group = tuple[str, ...]


def _axes(exact: bool) -> Iterator[tuple[str, Callable[[Row], Group | None], Callable[[Row], str]]]:
    """(how it is called, what its rows share or None where it is not about them, what differs among them)."""
    yield (
        STREAMING,
        lambda row: (*row.key[:4], *row.key[5:]) if row.key[4] in STREAMED else None,
        lambda row: row.key[4],
    )
    # What one codec makes of the records is the same bytes over any protocol, but for how they are parted.
    yield (
        "the codec",
        (lambda row: (row.key[3], *row.key[4:])) if exact else (lambda row: (*row.key[:2], *row.key[3:])),
        lambda row: row.key[2],
    )
    yield "the protocol", lambda row: row.key[2:], lambda row: row.key[0]


def _effect(
    rows: Rows, axis: str, members: Callable[[Row], Group | None], tell: Callable[[Row], str], values: Values
) -> Effect | None:
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows.good:
        group = members(row)
        if group is not None and row.first.protocol != rows.floor and _values(row, values):
            groups.setdefault((row.under["records"], group, *map(str, row.under.values())), []).append(row)
    found: dict[float, list[Comparison]] = {}
    for name, group_rows in groups.items():
        records = name[0]
        if len({tell(row) for row in group_rows}) < 2 or not isinstance(records, int | float):
            continue
        if compared := _ends(axis, group_rows, values, tell):
            found.setdefault(records, []).append(compared)
    return Effect(axis, found[max(found)], max(found), rows.all[0].equivalent_pct) if found else None


def _ends(axis: str, rows: Sequence[Row], values: Values, tell: Callable[[Row], str]) -> Comparison | None:
    """Streaming against one body; of the others, the highest against the lowest."""
    ordered = sorted(rows, key=lambda row: statistics.median(_values(row, values)))
    first, last = ordered[-1], ordered[0]
    if axis == STREAMING:
        first, last = sorted(rows, key=tell)[0], sorted(rows, key=tell)[-1]  # batched, single
    return compare(_values(first, values), _values(last, values), first.equivalent_pct)


def _values(row: Row, values: Values) -> list[float]:
    return [found for run in row.runs if (found := values(run)) is not None]
