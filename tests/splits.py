"""Does the report claim differences where there are none? `python -m tests.splits [results.db]`

The good runs of a cell measured the same thing. Dealt out at random into two groups of five, as if they were two
cells, they should hardly ever be called different. For every cell of the last sweep with ten good runs or more:
SPLITS seeded ways to deal them out, and how many of those the report would call a difference.
"""

from __future__ import annotations

import random
import sqlite3
import sys
from collections.abc import Iterator, Sequence

from runner.report.stats import compare

SPLITS = 20
GROUP = 5  # runs on each side
SEED = 11
METRICS = {
    "request_response": ("p50_us", "p99_us"),
    "stream": ("messages_per_s",),
    "hello": ("requests_per_s",),
}


def claims(values: Sequence[float], splits: int = SPLITS, seed: int = SEED) -> int:
    """How many of `splits` random splits of the runs into two groups of GROUP are called different."""
    dealer = random.Random(seed)
    found = 0
    for _ in range(splits):
        dealt = dealer.sample(list(values), 2 * GROUP)
        compared = compare(dealt[:GROUP], dealt[GROUP:])
        found += bool(compared and compared.claimed)
    return found


def stored(path: str) -> Iterator[tuple[str, list[float]]]:
    """(cell and metric, its per-run values) of the last sweep of a database, where there are enough."""
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
        rows = database.execute(
            "SELECT run.operation, run.protocol, run.codec, run.connections, m.metric, m.value FROM run "
            "JOIN measurement AS m ON m.run_id = run.run_id WHERE run.verdict = 'ok' "
            "AND run.sweep_id = (SELECT max(sweep_id) FROM sweep) ORDER BY run.repeat"
        ).fetchall()
    database.close()
    cells: dict[str, list[float]] = {}
    for operation, protocol, codec, connections, metric, value in rows:
        if metric in METRICS.get(operation, ()):
            cells.setdefault(f"{operation} {protocol} {codec} connections={connections} {metric}", []).append(value)
    return ((name, values) for name, values in cells.items() if len(values) >= 2 * GROUP)


def main(path: str = "results.db") -> None:
    """Print a line for each cell and metric."""
    for name, values in stored(path):
        print(f"{name}: {claims(values)} of {SPLITS} splits of {len(values)} equal runs called different")


if __name__ == "__main__":
    main(*sys.argv[1:])
