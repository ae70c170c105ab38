"""Rows whose repeats are far apart: a warning with advice. They count, for nothing says which run is wrong."""

from __future__ import annotations

from collections.abc import Sequence

from runner.report.compare import named
from runner.report.figures import counted, number
from runner.report.rows import Row, Rows
from runner.report.stats import estimate

UNSTABLE_PCT = 10.0  # of the median, from the least to the most of the runs
FEW = 3  # rows; more of them are not named one by one where all are unstable
ADVICE = "more repeats narrow the bracket of the median; bakeoff doctor says what disturbs this machine"


def spread_pct(values: Sequence[float]) -> float | None:
    """From the least to the most of the per-run values, in % of their median; None for fewer than two."""
    found = estimate(values)
    if found is None or found.n < 2 or found.median <= 0:
        return None
    return 100 * (max(values) - min(values)) / found.median


def unstable(rows: Rows, metric: str) -> list[str]:
    """One sentence with the rows whose runs differ in `metric`, the table's headline, by more than UNSTABLE_PCT."""
    found = [(side, spread) for side in named(rows.good) if (spread := _over(side.row, metric)) is not None]
    if not found:
        return []
    what = f"unstable: the runs of a row lie more than {number(UNSTABLE_PCT)} % of their median apart"
    if len(found) == len(rows.good) > FEW:
        return [f"{what}: every row (up to {number(max(spread for _, spread in found))} %): {ADVICE}"]
    said = []
    for side, spread in found:
        where = rows.differing(side.row)
        name = f"{side.name}, {where}" if where else side.name
        said.append(f"{name} ({number(spread)} % over {counted(len(side.row.values(metric)), 'run')})")
    return [f"{what}: {'; '.join(said)}: {ADVICE}"]


def _over(row: Row, metric: str) -> float | None:
    spread = spread_pct(row.values(metric))
    return spread if spread is not None and spread > UNSTABLE_PCT else None
