"""Makes a database as large as years of use: by default 10,000 runs with 5,000,000 samples.

    python -m tests.big_db big.db
    python -m tests.big_db big.db --runs 20000 --samples 100

Every sweep is the article's of tests.golden_db, its runs with `--samples` samples of each call, a histogram of them
and, for back-pressure, a series. Times, ids and values are the same each time. To measure how long commands take:

    time bakeoff report --db big.db
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from runner.store import RunRecord, SweepRecord, open_store
from runner.store.rows import run_rows
from runner.store.save import insert_run, insert_sweep
from tests.golden_db import START, article_runs

RUNS, SAMPLES = 10_000, 500
SERIES_POINTS = 120
SEED = 20_260_901
US = 1_000


def make(path: Path, runs: int, samples: int) -> int:
    """Writes the database; how many sweeps it has."""
    kinds = [_with_samples(record, samples, number) for number, record in enumerate(article_runs())]
    sweeps = 0
    with open_store(str(path)) as store:
        for sweeps, part in enumerate(_parts(runs, len(kinds)), 1):
            sweep_id, start = f"01KG{sweeps:022d}", START + timedelta(hours=sweeps)
            sweep = SweepRecord(sweep_id, "article", "bakeoff suite=article", 4711, part, start)
            sweep.ended_at = start + timedelta(minutes=3)
            with store.writing() as connection:
                insert_sweep(connection, sweep)
                for position, record in enumerate(kinds[:part]):
                    own = replace(
                        record,
                        run_id=f"01KG{sweeps:018d}{position:04d}",
                        sweep_id=sweep_id,
                        position=position,
                        started_at=start + timedelta(seconds=2 * position),
                    )
                    insert_run(connection, run_rows(own))
    return sweeps


def _parts(runs: int, most: int) -> Iterator[int]:
    while runs > 0:
        yield min(runs, most)
        runs -= most


def _with_samples(record: RunRecord, samples: int, seed: int) -> RunRecord:
    """`record` with `samples` timings around its p50, and with a series where it watched."""
    value, _ = record.measurements.get("p50_us", (100.0, "us"))
    drawn = random.Random(SEED + seed)
    timings = [round(value * US * drawn.lognormvariate(0, 0.3)) for _ in range(samples)]
    series = dict(record.series)
    if record.operation == "backpressure":
        series["produced"] = [(i * 50_000_000, 100.0 + 10 * i) for i in range(SERIES_POINTS)]
    return replace(record, samples={"latency": timings}, series=series)


def main(argv: list[str]) -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.big_db", description="Make a large database.")
    parser.add_argument("path", type=Path)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--samples", type=int, default=SAMPLES, help="of each run")
    asked = parser.parse_args(argv)
    if asked.path.exists():
        print(f"{asked.path} exists; give another name", file=sys.stderr)
        return 2
    sweeps = make(asked.path, asked.runs, asked.samples)
    print(f"{asked.path}: {asked.runs:,} runs in {sweeps:,} sweeps, {asked.runs * asked.samples:,} samples")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
