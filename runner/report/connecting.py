"""What connecting cost, which is in no latency and no rate: columns that CSV and JSON have, and a sentence."""

from __future__ import annotations

from collections.abc import Sequence

from runner.report.figures import digits_for, number
from runner.report.rows import Row, Rows
from runner.report.stats import estimate
from runner.report.table import Cell, Column, middle

CONNECT, FIRST_CALL = "connect_ms", "first_call_ms"
DIGITS = 2
FEW = 12  # named one by one; of more, the tables for programs have each


def columns() -> list[Column]:
    """For the end of a table."""
    return [
        Column(CONNECT, "connect\nms", shown=False),
        Column(FIRST_CALL, "first\ncall\nms", shown=False),
    ]


def cells(row: Row) -> dict[str, Cell]:
    """Medians over runs; each run's value is the median over its connections."""
    return {name: middle(row.estimate(name), DIGITS) for name in (CONNECT, FIRST_CALL)}


def notes(rows: Rows) -> list[str]:
    """One sentence with what a connection took with each protocol, engine and variant; none where nobody knows."""
    measured = [row for row in rows.good if row.values(CONNECT) and row.values(FIRST_CALL)]
    groups: dict[str, list[Row]] = {}
    for row in measured:
        groups.setdefault(_name(row, measured), []).append(row)
    found = [(name, _median(group, CONNECT), _median(group, FIRST_CALL)) for name, group in groups.items()]
    if not found or len(found) > FEW:
        return []
    digits = digits_for(value for _, *both in found for value in both)
    said = (
        f"{name} {number(connect, digits)} ms, its first call {number(call, digits)} ms"
        for name, connect, call in found
    )
    return [f"connecting, before anything is timed (median): {'; '.join(said)}"]


def _name(row: Row, among: Sequence[Row]) -> str:
    """Protocol, and engine and variant where those tell it from others: no codec has a part in connecting."""
    protocol, engine, _, variant = row.key[:4]
    engines = {other.key[1] for other in among if other.key[0] == protocol}
    return " ".join([protocol, *([engine] if len(engines) > 1 else []), *([f"({variant})"] if variant else [])])


def _median(group: Sequence[Row], metric: str) -> float | None:
    found = estimate([value for row in group for value in row.values(metric)])
    return found.median if found else None
