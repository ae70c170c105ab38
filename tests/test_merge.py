"""`bakeoff merge`: everything arrives, twice is once, and nothing of ours is written over."""

from __future__ import annotations

import shlex
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from runner.__main__ import main
from runner.store import StoreError, SweepRecord, open_store, read_unsaved, schema
from runner.store.save import write_unsaved
from tests.golden_db import START, golden, latency_run, write_sweep

RECORD = replace(
    latency_run("grpc", 0, 100.0),
    run_id="A",
    sweep_id="S",
    label="漢 \n=1+1",
    samples={"latency": list(range(300))},
    series={"produced": [(0, 1.5), (1, None)]},
    errors={"timeout": 3},
    config={"record": {"samples_max": 100}, "suite": "article", "seed": 7},
)
SWEEP = SweepRecord("S", "article", "bakeoff suite=article", 4711, 2, START)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """results.db of the current folder, not yet there."""
    monkeypatch.chdir(tmp_path)
    return tmp_path / "results.db"


def rows(path: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


def contents(path: Path) -> dict[str, list[Any]]:
    """Every row of every table."""
    return {t.name: sorted(rows(path, f"SELECT * FROM {t.name}"), key=repr) for t in schema.metadata.sorted_tables}


def change(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
        connection.commit()


def saved(path: Path, *names: str, sweep_id: str = "S") -> Path:
    with open_store(str(path)) as store:
        store.begin_sweep(replace(SWEEP, sweep_id=sweep_id))
        for name in names:
            store.save_run(replace(RECORD, run_id=name, sweep_id=sweep_id))
    return path


def refusal(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["merge", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    return err.removeprefix("bakeoff merge: ").rstrip("\n")


def test_everything_of_another_database_arrives(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = golden(path.with_name("other.db"))
    saved(other, "A", "B")
    before = other.read_bytes()
    assert main(["merge", "other.db"]) == 0
    assert capsys.readouterr().out == (
        "results.db: 81 runs and 3 sweeps added, 0 runs there already from other.db\n"
    )
    assert contents(path) == contents(other)
    assert len(contents(path)["sample"]) == 200
    assert other.read_bytes() == before
    assert rows(path, "SELECT count(*) FROM latency") == [(26,)]


def test_merging_again_changes_nothing(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved(path.with_name("other.db"), "A", "B")
    assert main(["merge", "other.db", "other.db"]) == 0
    before = contents(path)
    assert main(["merge", "other.db"]) == 0
    assert contents(path) == before
    assert capsys.readouterr().out.splitlines() == [
        "results.db: 2 runs and 1 sweep added, 0 runs there already from other.db",
        "results.db: 0 runs and 0 sweeps added, 2 runs there already from other.db",
        "results.db: 0 runs and 0 sweeps added, 2 runs there already from other.db",
    ]


def test_what_two_machines_measured_stands_side_by_side(path: Path) -> None:
    write_sweep(path, [latency_run("grpc", 0, 1.0)], 1)
    write_sweep(path.with_name("b.db"), [latency_run("tcp", 0, 2.0, environment={"cpu": "another"})], 2)
    write_sweep(path.with_name("c.db"), [latency_run("tcp", 0, 3.0, environment={"cpu": "another"})], 3)
    assert main(["merge", "b.db", "c.db"]) == 0
    found = rows(path, "SELECT p50_us, cpu FROM latency JOIN conditions USING (run_id) ORDER BY 1")
    assert found == [(1.0, "Test CPU"), (2.0, "another"), (3.0, "another")]
    assert rows(path, "SELECT count(*) FROM environment") == [(2,)]


def test_runs_that_came_later_are_added_to_a_sweep_that_is_there_and_it_ends(path: Path) -> None:
    other = saved(path.with_name("other.db"), "A")
    shutil.copy(other, path)
    with open_store(str(other)) as store:
        store.save_run(replace(RECORD, run_id="B"))
        store.end_sweep("S", START)
    assert main(["merge", "other.db"]) == 0
    assert contents(path) == contents(other)
    saved(path.with_name("still.db"), "C")  # a copy from before the end
    assert main(["merge", "still.db"]) == 0
    assert rows(path, "SELECT run_id, ended_at FROM runs JOIN sweep USING (sweep_id) ORDER BY 1") == [
        (name, "2026-03-01T12:00:00.000000Z") for name in "ABC"
    ]


@pytest.mark.parametrize(
    ("difference", "what"),
    [
        ("UPDATE run SET reason = 'x' WHERE run_id = 'B'", "run B"),
        ("UPDATE run SET findings = '{}', errors = '{}' WHERE run_id = 'B'", "run B"),
        ("UPDATE measurement SET value = 101 WHERE run_id = 'B' AND metric = 'p50_us'", "run B"),
        ("DELETE FROM measurement WHERE run_id = 'B' AND metric = 'p50_us'", "run B"),
        ("UPDATE sample SET value_ns = 1 WHERE run_id = 'B' AND seq = 0", "run B"),
        ("UPDATE distribution SET n = 1 WHERE run_id = 'B'", "run B"),
        ("UPDATE series SET value = 2 WHERE run_id = 'B' AND t_ns = 1", "run B"),
        ("UPDATE environment SET facts = '{}'", "run A"),
        ("UPDATE sweep SET seed = 1", "sweep S"),
        ("UPDATE sweep SET ended_at = '2026-03-01T12:00:01.000000Z'", "sweep S"),
    ],
)
def test_an_id_with_other_content_is_refused_and_nothing_is_merged(
    path: Path, capsys: pytest.CaptureFixture[str], difference: str, what: str
) -> None:
    with open_store(str(saved(path, "A", "B"))) as store:
        store.end_sweep("S", START)
    shutil.copy(path, path.with_name("other.db"))
    change(path.with_name("other.db"), difference)
    saved(path.with_name("new.db"), "N", sweep_id="T")
    before = contents(path)
    message = f"other.db: {what} is in results.db too, with other content; nothing was merged, give another --db"
    assert refusal(capsys, "new.db", "other.db") == message
    assert contents(path) == before


# Runs that could not be saved


def kept(path: Path, sweep: SweepRecord | None = SWEEP) -> str:
    return str(write_unsaved(path, RECORD, "the disk is full", sweep))


def test_the_message_about_a_run_that_was_not_saved_says_how_to_bring_it_in(path: Path) -> None:
    with open_store("results.db") as store:
        store.begin_sweep(SWEEP)
        store.save_run(replace(RECORD, run_id="before"))
        with store.engine.connect() as connection:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
            connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StoreError) as refused:
            store.save_run(RECORD)
    command = shlex.split(str(refused.value).partition("later: ")[2])
    assert command == ["bakeoff", "merge", f"{path}.unsaved-A.json"]
    assert main(command[1:]) == main(command[1:]) == 0
    direct = saved(path.with_name("direct.db"), "before", "A")
    assert contents(path) == contents(direct)


def test_the_message_names_the_database_if_it_is_not_the_usual_one(path: Path) -> None:
    other = path.with_name("my other.db")
    with open_store(str(other)) as store, pytest.raises(StoreError) as refused:
        store.save_run(RECORD)  # its sweep has not begun
    command = shlex.split(str(refused.value).partition("later: ")[2])
    assert command == ["bakeoff", "merge", f"{other}.unsaved-A.json", "--db", str(other)]
    assert main(command[1:]) == 0
    assert rows(other, "SELECT run_id FROM runs") == [("A",)]


def test_a_kept_run_arrives_with_its_sweep_where_the_database_was_lost(path: Path) -> None:
    with open_store("results.db") as store:
        store.begin_sweep(SWEEP)
        path.unlink()
        with pytest.raises(StoreError):
            store.save_run(RECORD)
    assert main(["merge", "results.db.unsaved-A.json"]) == 0
    assert contents(path) == contents(saved(path.with_name("direct.db"), "A"))


def test_of_a_sweep_that_nobody_knows_any_more_a_kept_run_tells_what_it_can(path: Path) -> None:
    assert main(["merge", kept(path, None)]) == 0
    assert rows(path, "SELECT sweep_id, suite, command, seed, started_at FROM sweep") == [
        ("S", "article", "", 7, "2026-03-01T12:00:00.000000Z")
    ]
    assert rows(path, "SELECT count(*) FROM sample") == [(100,)]


def test_a_guess_does_not_touch_the_sweep_that_is_there(path: Path) -> None:
    saved(path)
    assert main(["merge", kept(path, None)]) == 0
    assert rows(path, "SELECT command, seed FROM sweep") == [("bakeoff suite=article", 4711)]
    assert rows(path, "SELECT run_id FROM runs") == [("A",)]


def test_a_kept_run_that_differs_from_the_one_that_is_there_is_refused(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved(path, "A")
    change(path, "UPDATE measurement SET value = 101 WHERE metric = 'p50_us'")
    before = contents(path)
    assert "run A is in results.db too, with other content" in refusal(capsys, kept(path))
    assert contents(path) == before


def test_a_kept_run_of_an_earlier_bakeoff_which_did_not_keep_the_sweep_is_read(path: Path) -> None:
    file = Path(kept(path))
    document = msgspec.json.decode(file.read_bytes())
    del document["sweep"]
    file.write_bytes(msgspec.json.encode(document))
    assert read_unsaved(file).sweep is None
    assert main(["merge", file.name]) == 0


# Refused


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"notes", "it is not a database; give another file"),
        (b"{}", "neither a database nor a run that bakeoff kept (Object missing required field `format`)"),
        (
            b'{"format": 1',
            "neither a database nor a run that bakeoff kept (Expected `str`, got `int` - at `$.format`)",
        ),
    ],
)
def test_what_is_neither_is_refused(
    path: Path, capsys: pytest.CaptureFixture[str], content: bytes, message: str
) -> None:
    path.with_name("other").write_bytes(content)
    assert refusal(capsys, "other").startswith(f"other: {message}")


def test_a_kept_run_of_another_format_is_refused(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = Path(kept(path))
    file.write_text(file.read_text().replace("unsaved run 1", "unsaved run 2"))
    message = "'bakeoff unsaved run 2' is of another bakeoff, this one knows 'bakeoff unsaved run 1'"
    assert refusal(capsys, file.name) == f"{file.name}: {message}"


def test_a_missing_source_is_refused(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    message = "nowhere.db: there is no such file; give a database or a run that bakeoff kept"
    assert refusal(capsys, "nowhere.db") == message
    assert list(path.parent.iterdir()) == []
    assert refusal(capsys, "sqlite:///nowhere.db") == "nowhere.db not found; run bakeoff first"


def test_a_database_is_not_merged_into_itself(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved(path, "A")
    message = "./results.db: it is the database that it would be merged into; give another --db"
    assert refusal(capsys, "./results.db") == message


def test_a_mistake_in_the_command_line_is_one_line(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert refusal(capsys) == "the following arguments are required: FILE (bakeoff merge --help)"


def test_help_shows_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["merge", "--help"]) == 0
    assert "bakeoff merge laptop.db desktop.db " in capsys.readouterr().out
