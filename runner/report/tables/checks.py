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
        narrow="records",
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
    least, most, unit = row["least"], row["most"], _sign(row["unit"])
    if least is not None and least == most:
        said = plain(least)
    elif least is not None and most is not None:
        said = f"{plain(least)} to {plain(most)}"
    elif least is not None:
        said = f"{plain(least)} or more"
    elif most is not None:
        said = f"{plain(most)} or less"
    else:
        return NOTHING
    return words(f"{said} {unit}".strip())


def _sign(unit: str) -> str:
    return {"us": "µs"}.get(unit, unit)
