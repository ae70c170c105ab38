"""What can be wrong with a database or a record: one line that says so, at the right time, and nothing lost."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from runner.store import (
    RunRecord,
    Store,
    StoreError,
    SweepRecord,
    open_store,
    read_store,
    read_unsaved,
)
from tests.golden_db import START, golden, latency_run

SWEEP = SweepRecord("01KG0000000000000000000001", None, "bakeoff", 4711, 2, START)
SHORT_S = 0.2  # how long these tests wait for a lock that is never given back


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "results.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with open_store(str(path), busy_s=SHORT_S) as opened:
        opened.begin_sweep(SWEEP)
        yield opened


def a_run(name: str = "A", **changes: Any) -> RunRecord:
    return replace(latency_run("grpc", 0, 100.0), run_id=name, sweep_id=SWEEP.sweep_id, **changes)


def rows(path: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


def refusal(opening: Callable[[], object]) -> str:
    """The one line that `opening` is refused with."""
    with pytest.raises(StoreError) as refused:
        opening()
    assert "\n" not in str(refused.value)
    return str(refused.value)


def entries(folder: Path) -> dict[str, bytes]:
    return {entry.name: entry.read_bytes() for entry in folder.iterdir()}


def merge_later(path: Path, run_id: str = "A") -> str:
    kept = f"{path}.unsaved-{run_id}.json"
    return f"the run is kept in {kept}; later: bakeoff merge {kept} --db {path}"


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that other users may enter, unlike pytest's."""
    folder = Path(tempfile.mkdtemp(prefix="bakeoff-test-"))
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


@contextmanager
def not_root() -> Iterator[None]:
    """Root may write anywhere, so the question is asked as somebody else."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@contextmanager
def locked(path: Path) -> Iterator[sqlite3.Connection]:
    """Another program that holds the lock for writing."""
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield other


# Refused when opened, before a load starts


@pytest.mark.parametrize("opening", [open_store, read_store])
def test_a_folder_is_refused(tmp_path: Path, opening: Callable[[str], Store]) -> None:
    message = refusal(lambda: opening(str(tmp_path)))
    assert message == f"{tmp_path}: it is a folder; give the name of a file in it"


@pytest.mark.parametrize("opening", [open_store, read_store])
def test_a_missing_folder_is_refused(tmp_path: Path, opening: Callable[[str], Store]) -> None:
    message = refusal(lambda: opening(f"sqlite:///{tmp_path}/sub/results.db"))
    assert (
        message == f"{tmp_path}/sub/results.db: there is no folder {tmp_path}/sub; create it or give another file"
    )
    assert not list(tmp_path.iterdir())


def test_reading_a_missing_database_says_to_run_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert refusal(lambda: read_store("results.db")) == "results.db not found; run bakeoff first"
    assert refusal(lambda: read_store("sqlite:///results.db")) == "results.db not found; run bakeoff first"
    assert refusal(lambda: open_store("results.db", create=False)) == "results.db not found; run bakeoff first"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("", "'' names no file; give a path or sqlite:///results.db"),
        ("sqlite://", "'sqlite://' names no file; give a path or sqlite:///results.db"),
        ("sqlite:///:memory:", "'sqlite:///:memory:' names no file; give a path or sqlite:///results.db"),
        ("sqlite://results.db", "sqlite://results.db: a sqlite URL has three slashes; write sqlite:///results.db"),
        (
            "sqlite:///results.db?mode=ro",
            "sqlite:///results.db?mode=ro: a sqlite URL takes no options here; leave out ? and what follows",
        ),
        (
            "mysql://me:secret@host/results",
            "mysql databases are not supported; use sqlite:///results.db or postgresql+psycopg://user@host/database",
        ),
        ("://", "not a database URL; give a path or sqlite:///results.db"),
    ],
)
def test_a_url_that_names_no_file_is_refused(url: str, message: str) -> None:
    assert refusal(lambda: open_store(url)) == message
    assert refusal(lambda: read_store(url)) == message


@pytest.mark.parametrize("content", [b"notes\n", b"SQLite format 3\0", b"\0" * 4096, b"x" * 10_000])
@pytest.mark.parametrize("opening", [open_store, read_store])
def test_a_file_that_is_no_database_is_refused_untouched(
    path: Path, opening: Callable[[str], Store], content: bytes
) -> None:
    path.write_bytes(content)
    message = refusal(lambda: opening(str(path)))
    assert message == f"{path}: it is not a database; give another file"
    assert entries(path.parent) == {"results.db": content}


@pytest.mark.parametrize("mode", ["delete", "wal"])
@pytest.mark.parametrize("opening", [open_store, read_store])
def test_another_programs_database_is_refused_untouched(
    path: Path, opening: Callable[[str], Store], mode: str
) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute(f"PRAGMA journal_mode = {mode}")
        other.execute("CREATE TABLE run (run_id)")
        other.commit()
    before = entries(path.parent)
    assert refusal(lambda: opening(str(path))) == f"{path}: it is another program's database; give another file"
    assert entries(path.parent) == before


@pytest.mark.parametrize("opening", [open_store, read_store])
def test_another_programs_database_is_not_even_recovered(
    tmp_path: Path, path: Path, opening: Callable[[str], Store]
) -> None:
    with closing(sqlite3.connect(tmp_path / "theirs.db")) as other:
        other.execute("PRAGMA journal_mode = WAL")
        other.execute("CREATE TABLE notes (text)")
        other.commit()
        for ending in "", "-wal":  # as a killed program leaves it
            shutil.move(shutil.copy(f"{tmp_path}/theirs.db{ending}", f"{path}.copy"), f"{path}{ending}")
    (tmp_path / "theirs.db").unlink()
    before = entries(tmp_path)
    assert set(before) == {"results.db", "results.db-wal"}
    assert refusal(lambda: opening(str(path))) == f"{path}: it is another program's database; give another file"
    assert entries(tmp_path) == before


@pytest.mark.parametrize("opening", [open_store, read_store])
@pytest.mark.parametrize(
    ("version", "message"),
    [
        (3, "a newer bakeoff wrote it (version 3, this one knows 2); upgrade bakeoff or give another file"),
        (0, "its version 0 is unknown; give another file"),
    ],
)
def test_another_version_is_refused_untouched(
    path: Path, opening: Callable[[str], Store], version: int, message: str
) -> None:
    open_store(str(path)).close()
    with closing(sqlite3.connect(path)) as other:
        other.execute(f"PRAGMA user_version = {version}")
    before = entries(path.parent)
    assert refusal(lambda: opening(str(path))) == f"{path}: {message}"
    assert entries(path.parent) == before


def test_a_newer_version_that_is_still_in_the_wal_is_refused(path: Path) -> None:
    open_store(str(path)).close()
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA journal_mode = WAL")
        other.execute("PRAGMA user_version = 3")
        for opening in open_store, read_store:
            assert "a newer bakeoff wrote it" in refusal(lambda: opening(str(path)))  # noqa: B023
        assert other.execute("PRAGMA user_version").fetchall() == [(3,)]


def test_an_empty_file_becomes_a_database_but_cannot_be_read(path: Path) -> None:
    path.touch()
    assert refusal(lambda: read_store(str(path))) == f"{path} not found; run bakeoff first"
    open_store(str(path)).close()
    read_store(str(path)).close()


def test_a_folder_that_cannot_be_written_is_refused_before_anything_starts(public_folder: Path) -> None:
    path = public_folder / "results.db"
    public_folder.chmod(0o555)
    with not_root():
        message = refusal(lambda: open_store(str(path)))
    assert message == (
        f"{path}: it cannot be opened; make it and its folder readable and writable or give another file"
    )
    assert entries(public_folder) == {}


def test_an_existing_database_in_such_a_folder_is_refused_but_can_be_read(public_folder: Path) -> None:
    path = golden(public_folder / "results.db")
    path.chmod(0o666)
    public_folder.chmod(0o555)
    before = entries(public_folder)
    with not_root():
        assert refusal(lambda: open_store(str(path))).startswith(f"{path}: it cannot be ")
        with read_store(str(path)) as opened, opened.engine.connect() as connection:
            assert connection.exec_driver_sql("SELECT count(*) FROM sweep").scalar() == 2
    assert entries(public_folder) == before


def test_a_read_only_file_is_refused_but_can_be_read(public_folder: Path) -> None:
    path = golden(public_folder / "results.db")
    path.chmod(0o444)
    public_folder.chmod(0o777)
    before = entries(public_folder)
    with not_root():
        message = refusal(lambda: open_store(str(path)))
        assert message == f"{path}: it cannot be written; make it and its folder writable or give another file"
        with read_store(str(path)) as opened, opened.engine.connect() as connection:
            assert connection.exec_driver_sql("SELECT count(*) FROM sweep").scalar() == 2
    assert entries(public_folder) == before


def test_a_file_that_may_not_be_read_is_refused(public_folder: Path) -> None:
    path = golden(public_folder / "results.db")
    path.chmod(0o000)
    with not_root():
        message = refusal(lambda: read_store(str(path)))
    assert message == f"{path}: Permission denied; change that or give another file"


@pytest.mark.parametrize("opening", [open_store, read_store])
def test_a_lock_that_is_never_given_back_is_refused_after_the_wait(
    path: Path, opening: Callable[..., Store]
) -> None:
    golden(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        message = refusal(lambda: opening(str(path), busy_s=SHORT_S))
    assert message == (f"{path}: it is locked by another program (waited 0.2 s); close that or give another file")


# Damage


@pytest.mark.parametrize("opening", [open_store, read_store])
def test_a_cut_off_database_is_one_line(path: Path, opening: Callable[[str], Store]) -> None:
    golden(path)
    path.write_bytes(path.read_bytes()[:5000])
    message = refusal(lambda: _read_everything(opening(str(path))))
    assert message == f"{path}: the database is damaged; move it away or put back a copy"


def test_damage_that_shows_only_later_is_one_line_and_the_run_is_kept(path: Path) -> None:
    golden(path)
    size = rows(path, "PRAGMA page_size")[0][0]
    whole = path.read_bytes()
    pages = rows(path, "SELECT rootpage FROM sqlite_master WHERE rootpage > 0")
    broken = bytearray(whole)
    for (page,) in pages:
        broken[(page - 1) * size : page * size] = b"\xff" * size
    path.write_bytes(broken)
    damaged = f"{path}: the database is damaged; move it away or put back a copy"
    assert refusal(lambda: _read_everything(read_store(str(path)))) == damaged
    with open_store(str(path)) as opened:
        message = refusal(lambda: opened.save_run(a_run()))
    kept = path.with_name("results.db.unsaved-A.json")
    assert message == f"{damaged}; {merge_later(path)}"
    assert read_unsaved(kept).run.run_id == "A"


def _read_everything(opened: Store) -> None:
    with opened, opened.engine.connect() as connection:
        connection.exec_driver_sql("SELECT count(*) FROM run, measurement").all()


# While a sweep runs


def test_a_lock_that_is_given_back_in_time_delays_the_run_and_loses_nothing(path: Path) -> None:
    with open_store(str(path), busy_s=30.0) as opened:
        opened.begin_sweep(SWEEP)
        with locked(path) as other:
            release = threading.Timer(0.3, other.execute, ["ROLLBACK"])
            release.start()
            opened.save_run(a_run())
            release.join()
    assert rows(path, "SELECT run_id FROM runs") == [("A",)]
    assert not list(path.parent.glob("*.unsaved-*"))


def test_a_run_that_meets_a_lasting_lock_is_kept_whole_beside_the_database(store: Store, path: Path) -> None:
    record = a_run(
        label="漢 \x00",
        samples={"latency": list(range(20_000))},
        series={"produced": [(0, 1.5), (1, None)]},
        errors={"timeout": 3},
        overrides=["protocol=grpc"],
        config={"record": {"samples_max": 10}, "tls": False},
    )
    with locked(path):
        message = refusal(lambda: store.save_run(record))
    kept = path.with_name("results.db.unsaved-A.json")
    reason = f"{path}: it is locked by another program (waited 0.2 s); close that or give another file"
    assert message == f"{reason}; {merge_later(path)}"
    unsaved = read_unsaved(kept)
    assert (unsaved.format, unsaved.reason) == ("bakeoff unsaved run 1", reason)
    assert unsaved.run == record
    assert unsaved.sweep == SWEEP
    document = msgspec.json.decode(kept.read_bytes())
    assert document["run"]["samples"]["latency"][-1] == 19_999
    assert document["run"]["measurements"]["p50_us"] == [100.0, "us"]
    # The next run is saved as ever, and so is the one that was kept.
    store.save_run(a_run("B"))
    store.save_run(unsaved.run)
    assert rows(path, "SELECT run_id FROM runs ORDER BY run_id") == [("A",), ("B",)]
    assert rows(path, "SELECT count(*), max(seq) FROM sample") == [(10, 18_000)]


def test_a_transaction_holds_the_lock_from_its_beginning(store: Store, path: Path) -> None:
    with store.engine.begin(), closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as other:
        with pytest.raises(sqlite3.OperationalError, match="database is locked"):
            other.execute("BEGIN IMMEDIATE")


def test_a_sweep_row_that_meets_a_lasting_lock_is_one_line(store: Store, path: Path) -> None:
    reason = f"{path}: it is locked by another program (waited 0.2 s); close that or give another file"
    with locked(path):
        assert refusal(lambda: store.begin_sweep(replace(SWEEP, sweep_id="other"))) == reason
        assert refusal(lambda: store.end_sweep(SWEEP.sweep_id, START)) == reason


def test_closing_does_not_fail_while_another_program_holds_a_lock(path: Path) -> None:
    opened = open_store(str(path))
    opened.begin_sweep(SWEEP)
    with locked(path):
        opened.close()
    opened.close()
    assert rows(path, "SELECT count(*) FROM sweep") == [(1,)]


def test_a_run_is_saved_all_of_it_or_nothing(store: Store, path: Path) -> None:
    with store.engine.connect() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages + 3}")
    message = refusal(lambda: store.save_run(a_run(samples={"latency": list(range(9_000))})))
    kept = path.with_name("results.db.unsaved-A.json")
    assert message == f"{path}: the disk is full; make room or give another file; {merge_later(path)}"
    for table in "run", "environment", "measurement", "sample", "distribution", "series":
        assert rows(path, f"SELECT count(*) FROM {table}") == [(0,)]
    assert len(read_unsaved(kept).run.samples["latency"]) == 9_000


def test_a_database_that_was_deleted_meanwhile_is_noticed_and_the_run_kept(store: Store, path: Path) -> None:
    path.unlink()
    message = refusal(lambda: store.save_run(a_run()))
    kept = path.with_name("results.db.unsaved-A.json")
    assert message == (f"{path}: the file was deleted or replaced while it was in use; {merge_later(path)}")
    assert read_unsaved(kept).run.run_id == "A"
    path.write_text("somebody else's")
    store.close()
    assert path.read_text() == "somebody else's"


def test_where_the_folder_is_gone_the_run_is_kept_in_the_temporary_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, elsewhere = tmp_path / "gone", tmp_path / "temporary"
    folder.mkdir()
    elsewhere.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(elsewhere))
    with open_store(str(folder / "results.db")) as opened:
        opened.begin_sweep(SWEEP)
        shutil.rmtree(folder)
        message = refusal(lambda: opened.save_run(a_run()))
        assert f"; the run is kept in {elsewhere}/results.db.unsaved-A.json; later: bakeoff merge " in message
        shutil.rmtree(elsewhere)
        assert "; run B is lost, its file could not be written either: " in refusal(
            lambda: opened.save_run(a_run("B"))
        )
    assert not list(tmp_path.iterdir())


def test_a_run_whose_sweep_has_not_begun_is_kept_beside_the_database(store: Store, path: Path) -> None:
    message = refusal(lambda: store.save_run(replace(a_run(), sweep_id="unknown")))
    assert "FOREIGN KEY constraint failed" in message
    assert read_unsaved(path.with_name("results.db.unsaved-A.json")).run.sweep_id == "unknown"


def test_a_store_opened_for_reading_does_not_write(path: Path) -> None:
    golden(path)
    before = path.read_bytes()
    with read_store(str(path)) as opened:
        assert "it cannot be written" in refusal(lambda: opened.begin_sweep(SWEEP))
    assert entries(path.parent) == {"results.db": before}


def test_a_mistake_in_a_query_is_not_taken_for_a_damaged_file(path: Path) -> None:
    golden(path)
    with (
        read_store(str(path)) as opened,
        opened.engine.connect() as connection,
        pytest.raises(Exception, match="no such column: speed") as mistake,
    ):
        connection.exec_driver_sql("SELECT speed FROM latency")
    assert not isinstance(mistake.value, StoreError)
