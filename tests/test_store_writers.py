"""Several programs at one file: every run arrives, whoever reads meanwhile."""

from __future__ import annotations

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.store import RunRecord, SweepRecord, open_store, read_store
from runner.store.merge import merge
from tests.golden_db import START, latency_run

SWEEP = SweepRecord("01KG0000000000000000000001", None, "bakeoff", 4711, 2, START)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "results.db"


def a_run(name: str, sweep_id: str = SWEEP.sweep_id) -> RunRecord:
    record = latency_run("grpc", 0, 100.0, samples={"latency": list(range(500))})
    return replace(record, run_id=name, sweep_id=sweep_id)


def rows(path: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


def test_eight_writers_at_once_lose_no_run(path: Path) -> None:
    def sweep(writer: int) -> None:
        together.wait(timeout=30)
        with open_store(str(path), busy_s=60.0) as store:
            store.begin_sweep(replace(SWEEP, sweep_id=f"S{writer}"))
            for number in range(6):
                store.save_run(a_run(f"{writer}-{number}", f"S{writer}"))
            store.end_sweep(f"S{writer}", START)

    together = threading.Barrier(8)
    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(sweep, writer) for writer in range(8)]:
            done.result(timeout=100)
    assert rows(path, "SELECT count(*), count(DISTINCT sweep_id) FROM runs") == [(48, 8)]
    assert rows(path, "SELECT DISTINCT count(*) FROM sample GROUP BY run_id") == [(500,)]
    assert rows(path, "SELECT count(*) FROM sweep WHERE ended_at IS NOT NULL") == [(8,)]
    assert rows(path, "PRAGMA integrity_check") == [("ok",)]
    assert [entry.name for entry in path.parent.iterdir()] == ["results.db"]


def test_a_reader_that_holds_a_transaction_delays_no_run_and_loses_none(path: Path) -> None:
    with open_store(str(path), busy_s=0.2) as store:
        store.begin_sweep(SWEEP)
        store.save_run(a_run("A"))
        with read_store(str(path)) as reader, reader.engine.connect() as connection:
            seen = "SELECT count(*) FROM run"
            assert connection.exec_driver_sql(seen).scalar() == 1
            for name in "BCD":  # a wait would end after 0.2 s, with a refusal
                store.save_run(a_run(name))
            assert connection.exec_driver_sql(seen).scalar() == 1  # the reader's view does not move
            store.close()
            assert connection.exec_driver_sql(seen).scalar() == 1
    assert rows(path, "SELECT run_id FROM runs ORDER BY 1") == [("A",), ("B",), ("C",), ("D",)]
    assert [entry.name for entry in path.parent.iterdir()] == ["results.db"]


def test_a_merge_waits_for_a_sweep_that_is_saving_a_run(path: Path, tmp_path: Path) -> None:
    with open_store(str(tmp_path / "other.db")) as other:
        other.begin_sweep(replace(SWEEP, sweep_id="other"))
        other.save_run(a_run("B", "other"))
    with open_store(str(path), busy_s=30.0) as sweeping, open_store(str(path), busy_s=30.0) as merging:
        sweeping.begin_sweep(SWEEP)
        with ThreadPoolExecutor(1) as pool:
            with sweeping.writing() as connection:
                merged = pool.submit(merge, merging, [str(tmp_path / "other.db")])
                connection.exec_driver_sql("UPDATE sweep SET suite = 'saving'")
                assert not merged.done()
            assert merged.result(timeout=60)[0].runs == 1
        sweeping.save_run(a_run("A"))
    assert rows(path, "SELECT run_id, suite FROM runs ORDER BY 1") == [("A", "saving"), ("B", None)]
