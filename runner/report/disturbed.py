"""Rows whose numbers other programs had a share in: the machine was busy, or kept the core from them.

What an older database did not record is not spoken of.
"""

from __future__ import annotations

from collections.abc import Sequence

from runner.report.compare import named
from runner.report.figures import number
from runner.report.read import Run
from runner.report.rows import Row, Rows

# Our own last run is in the average: two processes, which fill two cores. What is above that is somebody else's.
LOAD_OVER_CPUS = 1.0
FEW = 3  # rows; more of them are not named one by one where all were disturbed
LEAST_BUSY_PCT = 85.0  # of one core, by server and driver together where they share it


def disturbed(rows: Rows) -> list[str]:
    """One sentence for each kind of disturbance, with the rows that it touched."""
    return [*_loaded(rows), *_deprived(rows)]


def _loaded(rows: Rows) -> list[str]:
    found = []
    for row, name in _named(rows):
        over = [load for run in row.runs if (load := _overload(run)) is not None]
        if over:
            found.append(f"{name} (up to {number(max(over), 1)} in {len(over)}/{len(row.runs)})")
    what = "disturbed: at launch the 1-minute load average was over the number of CPUs by more than 1"
    if len(found) == len(rows.good) > FEW:
        return [f"{what}: every row (up to {number(max(filter(None, map(_overload, _runs(rows)))), 1)})"]
    return [f"{what}: {', '.join(found)}"] if found else []


def _runs(rows: Rows) -> Sequence[Run]:
    return [run for row in rows.good for run in row.runs]


def _overload(run: Run) -> float | None:
    """The load average before launch where other programs must have been part of it."""
    load, cpus = run.condition("load_average"), run.condition("cpus")
    if not isinstance(load, int | float) or not isinstance(cpus, int | float):
        return None
    return float(load) if load > cpus + LOAD_OVER_CPUS else None


def _deprived(rows: Rows) -> list[str]:
    found = []
    for row, name in _named(rows):
        busy = row.estimate("busy_pct")
        if row.first.placement == "same" and busy and busy.median < LEAST_BUSY_PCT:
            found.append(f"{name} ({number(busy.median)} %)")
    what = (
        f"disturbed: both processes together got less of their core than {number(LEAST_BUSY_PCT)} %, so that "
        "p99 and rates are not the protocol's alone"
    )
    return [f"{what}: {', '.join(found)}"] if found else []


def _named(rows: Rows) -> Sequence[tuple[Row, str]]:
    """The good rows, each with its name and what else tells it apart."""
    found = []
    for side in named(rows.good):
        where = rows.differing(side.row)
        found.append((side.row, f"{side.name}, {where}" if where else side.name))
    return found
