"""CHECKS: why each verdict is what it is: everything that was looked at, with its value and its limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runner.report.context import Context
from runner.report.figures import plain
from runner.report.table import NOTHING, Cell, Column, Table, words

READING = (
    "a run is void where a check does not hold; excused: outside its limits by no more than measuring itself adds",
    "percentages and ratios are of the measured window",
)


def build(context: Context) -> Table | None:
    """None where no run has checks: they are kept since version 2 of the database."""
    found = context.sweep.checks()
    if not found:
        return None
    variants, labels = (any(row[name] for row in found) for name in ("variant", "label"))
    columns = [
        Column("operation", "operation", "key"),
        Column("protocol", "protocol", "key"),
        Column("engine", "engine", "key"),
        Column("codec", "codec", "key"),
        Column("variant", "variant", "key", shown=variants, wrapped=True),
        Column("label", "label", "key", shown=labels),
        Column("connections", "connections", "key", shown=len({row["connections"] for row in found}) > 1),
        Column("repeat", "repeat", "key"),
        Column("verdict", "verdict", "text"),
        Column("check", "check", "text"),
        Column("found", "found", "text"),
        Column("limits", "limits", "text"),
        Column("holds", "holds", "text"),
        Column("reason", "why not", "prose"),
    ]
    return Table(
        "checks",
        "CHECKS",
        "why each verdict is what it is",
        [],
        columns,
        [_cells(row) for row in found],
        READING,
        by_itself=False,
    )


def _cells(row: Mapping[str, Any]) -> dict[str, Cell]:
    passed = bool(row["passed"])
    holds = "yes" if passed and _inside(row) else "excused" if passed else f"no: {row['weight']}"
    return {
        **{name: words(row[name]) for name in ("operation", "protocol", "engine", "codec", "variant", "label")},
        **{name: Cell(str(row[name]), row[name]) for name in ("connections", "repeat")},
        "verdict": words(row["verdict"]),
        "check": words(row["name"]),
        "found": words(f"{plain(row['value'])} {_sign(row['unit'])}".strip()),
        "limits": _limits(row),
        "holds": words(holds),
        "reason": NOTHING if passed else words(row["reason"]),
    }


def _inside(row: Mapping[str, Any]) -> bool:
    least, most = row["least"], row["most"]
    return bool((least is None or row["value"] >= least) and (most is None or row["value"] <= most))


def _limits(row: Mapping[str, Any]) -> Cell:
    unit = _sign(row["unit"])
    least, most = (None if row[end] is None else f"{plain(row[end])} {unit}".strip() for end in ("least", "most"))
    if least is None and most is None:
        return NOTHING
    if least == most:
        return words(least)
    if most is None:
        return words(f"{least} or more")
    return words(f"{most} or less" if least is None else f"{least} to {most}")


def _sign(unit: str) -> str:
    return {"us": "µs"}.get(unit, unit)
