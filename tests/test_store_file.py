"""One file: where it is, what it is while a sweep writes, and what is left of it at the end, also after a kill."""

from __future__ import annotations

import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.store import RunRecord, Store, SweepRecord, open_store, read_store
from tests.golden_db import START, latency_run

SWEEP = SweepRecord("01KG0000000000000000000001", "article", "bakeoff suite=article", 4711, 2, START)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "results.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with open_store(str(path)) as opened:
        opened.begin_sweep(SWEEP)
        yield opened


def a_run(name: str = "A", **changes: Any) -> RunRecord:
    return replace(latency_run("grpc", 0, 100.0), run_id=name, sweep_id=SWEEP.sweep_id, **changes)


def rows(path: Path, sql: str) -> list[tuple[Any, ...]]:
    """What a stranger with nothing but SQLite sees."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


def test_a_relative_path_starts_at_the_folder_where_the_store_was_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with open_store("sqlite:///results.db") as opened:
        monkeypatch.chdir(tmp_path / "elsewhere")
        opened.begin_sweep(SWEEP)
        opened.save_run(a_run())
    assert rows(tmp_path / "results.db", "SELECT run_id FROM runs") == [("A",)]
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize("name", ["plain.db", "a b.db", "per%20cent?.db", "ha#sh.db", "漢.db"])
def test_a_path_is_taken_as_it_is(tmp_path: Path, name: str) -> None:
    with open_store(str(tmp_path / name)) as opened:
        opened.begin_sweep(SWEEP)
    with read_store(str(tmp_path / name)) as opened, opened.engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT suite FROM sweep").all() == [("article",)]
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


def test_after_closing_a_copy_of_the_one_file_has_everything(path: Path, tmp_path: Path) -> None:
    with open_store(str(path)) as opened:
        opened.begin_sweep(SWEEP)
        for name in "ABC":
            opened.save_run(a_run(name, samples={"latency": [1, 2, 3]}))
        assert (tmp_path / "results.db-wal").exists()
    assert [entry.name for entry in tmp_path.iterdir()] == ["results.db"]
    copy = Path(shutil.copy(path, tmp_path / "copy.db"))
    assert rows(copy, "SELECT run_id, count(*) FROM sample GROUP BY run_id") == [("A", 3), ("B", 3), ("C", 3)]
    assert rows(copy, "PRAGMA integrity_check") == [("ok",)]
    assert rows(copy, "PRAGMA foreign_key_check") == []
    assert rows(copy, "PRAGMA journal_mode") == [("delete",)]


def test_a_copy_is_complete_even_while_another_program_keeps_the_file_open(path: Path, tmp_path: Path) -> None:
    opened = open_store(str(path))
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("SELECT count(*) FROM run").fetchall() == [(0,)]
        opened.begin_sweep(SWEEP)
        opened.save_run(a_run())
        opened.close()
        copy = Path(shutil.copy(path, tmp_path / "copy.db"))
        assert rows(copy, "SELECT run_id FROM runs") == [("A",)]


def test_a_reader_that_closes_last_leaves_one_file(path: Path, tmp_path: Path) -> None:
    writer = open_store(str(path))
    writer.begin_sweep(SWEEP)
    with read_store(str(path)) as reader, reader.engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM sweep").scalar() == 1
        writer.close()
    assert [entry.name for entry in tmp_path.iterdir()] == ["results.db"]


def test_readers_see_finished_runs_while_a_sweep_writes(store: Store, path: Path) -> None:
    with read_store(str(path)) as reader:
        for name in "AB":
            store.save_run(a_run(name))
            with reader.engine.connect() as connection:
                assert connection.exec_driver_sql("SELECT max(run_id) FROM runs").scalar() == name


def test_a_second_sweep_is_added_to_the_first(path: Path) -> None:
    for number in "12":
        with open_store(str(path)) as opened:
            opened.begin_sweep(replace(SWEEP, sweep_id=number))
            opened.save_run(replace(a_run(number), sweep_id=number))
    assert rows(path, "SELECT sweep_id, run_id FROM runs") == [("1", "1"), ("2", "2")]


WRITER = """
import sys
from dataclasses import replace
from tests.golden_db import START, latency_run
from runner.store import SweepRecord, new_id, open_store

with open_store(sys.argv[1]) as store:
    sweep_id = new_id()
    store.begin_sweep(SweepRecord(sweep_id, None, "", 1, 5, START))
    for repeat in range(int(sys.argv[2])):
        record = latency_run("grpc", repeat, 100.0, samples={"latency": list(range(2000))})
        store.save_run(replace(record, run_id=new_id(), sweep_id=sweep_id))
        print(repeat, flush=True)
"""


@contextmanager
def writer(path: Path, runs: int) -> Iterator[subprocess.Popen[str]]:
    """A process of its own that saves so many runs, with a line for each."""
    child = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), str(runs)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parent.parent,
    )
    with child:
        try:
            yield child
        finally:
            child.kill()


def test_two_sweeps_that_write_one_new_file_at_once_are_both_complete(path: Path, tmp_path: Path) -> None:
    with writer(path, 8) as one, writer(path, 8) as other:
        for child in one, other:
            _, errors = child.communicate(timeout=60)
            assert (child.returncode, errors) == (0, "")
    assert rows(path, "SELECT count(*), count(DISTINCT repeat) FROM runs GROUP BY sweep_id") == [(8, 8), (8, 8)]
    assert rows(path, "SELECT count(*) FROM sample") == [(2 * 8 * 2000,)]
    assert rows(path, "PRAGMA integrity_check") == [("ok",)]
    assert [entry.name for entry in tmp_path.iterdir()] == ["results.db"]


def test_many_may_open_and_close_one_new_file_at_once(tmp_path: Path) -> None:
    def sweep(path: Path, name: str) -> None:
        together.wait(timeout=30)
        with open_store(str(path)) as opened:
            opened.begin_sweep(replace(SWEEP, sweep_id=name))

    together = threading.Barrier(4)
    with ThreadPoolExecutor(4) as pool:
        for turn in range(20):
            path = tmp_path / f"{turn}.db"
            for done in [pool.submit(sweep, path, name) for name in "ABCD"]:
                done.result(timeout=60)
            assert rows(path, "SELECT sweep_id FROM sweep ORDER BY 1") == [("A",), ("B",), ("C",), ("D",)]


def test_a_killed_sweep_leaves_every_run_that_it_had_saved(path: Path) -> None:
    with writer(path, 100_000) as child:
        assert child.stdout is not None
        seen = [child.stdout.readline() for _ in range(5)]
    assert seen[-1] == "4\n"
    assert child.returncode == -signal.SIGKILL
    assert rows(path, "PRAGMA integrity_check") == [("ok",)]
    assert rows(path, "SELECT repeat FROM runs LIMIT 5") == [(0,), (1,), (2,), (3,), (4,)]
    assert rows(path, "SELECT count(*) FROM sample GROUP BY run_id HAVING count(*) <> 2000") == []
    with open_store(str(path)) as opened:  # goes on where it was
        opened.begin_sweep(SWEEP)
        opened.save_run(a_run())
    assert rows(path, "SELECT count(*) FROM runs WHERE run_id = 'A'") == [(1,)]
    assert [entry.name for entry in path.parent.iterdir()] == ["results.db"]


def test_the_file_says_what_it_is_and_which_version(store: Store, path: Path) -> None:
    assert rows(path, "PRAGMA application_id") == [(0x42414B45,)]
    assert rows(path, "PRAGMA user_version") == [(2,)]
