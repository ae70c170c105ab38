"""One number wherever it is read: from the samples in Python, in SQL, from a view, an export, a report."""

from __future__ import annotations

import csv
import random
import sqlite3
import statistics
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.samples import latency_measurements, nearest_rank
from runner.store import RunRecord
from tests.golden_db import latency_run
from tests.words import Bakeoff

QUOTED = {"p50_us": 50.0, "p90_us": 90.0, "p99_us": 99.0, "p999_us": 99.9, "max_us": 100.0}
# The smallest value with at least q % of all at or below it.
IN_SQL = """
select min(value_ns) / 1000.0 from (
  select value_ns, 100.0 * cume_dist() over (order by value_ns) as reached
  from sample where run_id = ? and name = 'latency'
) where reached >= ? - 1e-9
"""


def sampled_runs() -> list[RunRecord]:
    dealer = random.Random(41)
    runs = []
    for repeat in range(3):
        values = [round(dealer.lognormvariate(11, 0.5)) for _ in range(1_000 + 37 * repeat)]
        values[5] = values[6]  # a tie
        record = latency_run("grpc", repeat, 300)
        measurements = {**record.measurements, **latency_measurements(values), "n": (len(values), "calls")}
        runs.append(replace(record, samples={"latency": values}, measurements=measurements))
    return runs


@pytest.fixture
def bakeoff(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Bakeoff:
    return Bakeoff(capsys, monkeypatch, tmp_path)


def test_percentiles_are_the_same_from_samples_in_python_and_sql_from_the_view_and_from_an_export(
    bakeoff: Bakeoff,
) -> None:
    runs = sampled_runs()
    bakeoff.write(runs)
    with closing(sqlite3.connect(bakeoff.path)) as database:
        database.row_factory = sqlite3.Row
        views = database.execute("select * from latency order by repeat").fetchall()
        for record, view in zip(runs, views, strict=True):
            ordered = sorted(record.samples["latency"])
            bakeoff("export", view["run_id"], "--samples", "samples.csv", "--force")
            with (bakeoff.path.parent / "samples.csv").open(newline="") as file:
                exported = sorted(int(row["value_ns"]) for row in csv.DictReader(file))
            assert exported == ordered
            for name, q in QUOTED.items():
                rank = nearest_rank(ordered, q)
                assert rank is not None
                [in_sql] = database.execute(IN_SQL, (view["run_id"], q)).fetchone()
                assert in_sql == view[name] == rank / 1_000, name
            assert view["mean_us"] == pytest.approx(statistics.fmean(ordered) / 1_000)


def test_the_report_has_the_median_of_what_the_view_has(bakeoff: Bakeoff) -> None:
    bakeoff.write(sampled_runs())
    [printed] = bakeoff.rows("report", "request_response")
    [table] = bakeoff.json("report", "request_response")["sweeps"][0]["tables"]
    [row] = table["rows"]
    with closing(sqlite3.connect(bakeoff.path)) as database:
        for name in (*QUOTED, "mean_us"):
            values: list[Any] = [value for (value,) in database.execute(f"select {name} from latency")]
            assert len(values) == 3
            assert row[name] == statistics.median(values)
            assert float(printed[name]) == row[name]
