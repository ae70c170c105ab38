"""From version to version: what an older file becomes, what is left of it if that fails, and views that follow."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.store import StoreError, open_store, read_store, schema, upgrade
from runner.store.layout import refresh_views
from runner.store.views import VIEWS
from tests.golden_db import golden, latency_run, write_sweep

# A made-up version 3: a column more, and a table that is rebuilt because one of its columns changes its name.
STEP = """
import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade():
    op.add_column("sweep", sa.Column("operator", sa.String))
    with op.batch_alter_table("run") as run:
        run.alter_column("label", new_column_name="tag")
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return golden(tmp_path / "results.db")


@pytest.fixture
def step(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of the made-up version 3, which is this program's version from now on."""
    folder = tmp_path_factory.mktemp("revisions")
    (folder / "v0003_made_up.py").write_text(STEP)
    monkeypatch.setattr(upgrade, "REVISIONS", [*upgrade.REVISIONS, folder])
    monkeypatch.setattr(schema, "VERSION", 3)
    renamed = {name: text.replace("run.label AS", "run.tag AS") for name, text in VIEWS.items()}
    monkeypatch.setattr("runner.store.layout.VIEWS", renamed)
    return folder / "v0003_made_up.py"


def rows(path: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


def contents(path: Path) -> list[str]:
    """Tables, views and every row."""
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


def counted(path: Path) -> dict[str, int]:
    return {
        table.name: rows(path, f"SELECT count(*) FROM {table.name}")[0][0]
        for table in schema.metadata.sorted_tables
    }


@pytest.mark.parametrize("opening", [open_store, read_store])
def test_an_older_file_is_upgraded_after_a_copy_whose_name_is_printed(
    path: Path, step: Path, opening: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    before, count = contents(path), counted(path)
    opening(str(path)).close()
    copy = path.with_name("results.db.version-2")
    assert capsys.readouterr().err == f"{path}: upgraded from version 2 to 3; as it was: {copy}\n"
    assert contents(copy) == before
    assert rows(copy, "PRAGMA user_version") == [(2,)]
    assert rows(copy, "PRAGMA application_id") == rows(path, "PRAGMA application_id") == [(schema.APPLICATION_ID,)]
    assert rows(path, "PRAGMA user_version") == [(3,)]
    assert rows(path, "SELECT DISTINCT operator FROM sweep") == [(None,)]
    assert rows(path, "SELECT tag, count(*) FROM run GROUP BY tag") == [("", 77), ("before", 2)]
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["results.db", "results.db.version-2"]
    assert counted(path) == count  # the rows of the rebuilt table's children too
    assert rows(path, "PRAGMA foreign_key_check") == []
    assert rows(path, "SELECT label, count(*) FROM latency GROUP BY 1") == [("", 22), ("before", 2)]


def test_an_upgraded_file_is_not_upgraded_again(path: Path, step: Path, capsys: pytest.CaptureFixture[str]) -> None:
    open_store(str(path)).close()
    capsys.readouterr()
    open_store(str(path)).close()
    assert capsys.readouterr().err == ""
    assert len(list(path.parent.iterdir())) == 2


def test_an_earlier_copy_is_not_written_over(path: Path, step: Path) -> None:
    earlier = path.with_name("results.db.version-2")
    earlier.write_text("mine")
    open_store(str(path)).close()
    assert earlier.read_text() == "mine"
    assert rows(path.with_name("results.db.version-2-2"), "SELECT count(*) FROM run") == [(79,)]


def test_with_foreign_keys_on_a_rebuild_would_have_deleted_the_rows_that_refer_to_the_table(
    path: Path, step: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Why upgrade_file turns them off: nothing else would be noticed."""
    assert counted(path)["measurement"] > 0
    with_pragmas = upgrade.engine_for

    def careless(*given: Any) -> Any:
        return with_pragmas(*given[:4], ["foreign_keys = ON"], given[5])

    monkeypatch.setattr(upgrade, "engine_for", careless)
    open_store(str(path)).close()
    assert counted(path) == {**counted(path), "run": 79, "measurement": 0, "series": 0}


def test_with_its_views_in_place_a_table_could_not_be_rebuilt(
    path: Path, step: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Why migrate drops them first."""
    monkeypatch.setattr("runner.store.layout.drop_views", lambda connection: {})
    before = contents(path)
    with pytest.raises(StoreError, match=r"upgrading it from version 2 failed: .*error in view"):
        open_store(str(path))
    assert contents(path) == before


def test_a_view_of_the_users_own_survives_an_upgrade(path: Path, step: Path) -> None:
    mine = 'CREATE VIEW "my ""own""" AS SELECT count(*) AS n FROM latency'
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(mine)
    open_store(str(path)).close()
    assert rows(path, """SELECT n FROM "my ""own\"\"\"""") == [(24,)]


@pytest.mark.parametrize("error", ["KeyboardInterrupt", "OSError('the disk is gone')"])
def test_an_interrupted_upgrade_leaves_the_file_as_it_was(path: Path, step: Path, error: str) -> None:
    step.write_text(f"{STEP}\n    raise {error}\n")
    before = path.read_bytes()
    with pytest.raises((KeyboardInterrupt, OSError)):
        open_store(str(path))
    assert [entry.name for entry in path.parent.iterdir()] == ["results.db"]
    assert path.read_bytes() == before


def test_a_step_that_fails_is_one_line_and_leaves_the_file_as_it_was(path: Path, step: Path) -> None:
    step.write_text(f"{STEP}\n    op.drop_column('run', 'nothing')\n")
    before = path.read_bytes()
    with pytest.raises(StoreError) as refused:
        open_store(str(path))
    assert str(refused.value).startswith(f"{path}: upgrading it from version 2 failed: ")
    assert "\n" not in str(refused.value)
    assert path.read_bytes() == before


def test_a_step_that_loses_a_row_that_others_refer_to_is_undone(path: Path, step: Path) -> None:
    step.write_text(f"{STEP}\n    op.execute('DELETE FROM sweep')\n")
    before = path.read_bytes()
    with pytest.raises(StoreError, match="79 rows refer to nothing after upgrading; it stays as it was"):
        open_store(str(path))
    assert path.read_bytes() == before


KILLED = """
import sys
from pathlib import Path
from runner.store import open_store, schema, upgrade
upgrade.REVISIONS.append(Path(sys.argv[2]))
schema.VERSION = 3
open_store(sys.argv[1])
"""


def test_a_killed_upgrade_leaves_the_file_as_it_was_and_a_complete_copy(path: Path, step: Path) -> None:
    step.write_text(f"{STEP}\n    import os\n    os.kill(os.getpid(), {int(signal.SIGKILL)})\n")
    before = contents(path)
    command = [sys.executable, "-c", KILLED, str(path), str(step.parent)]
    done = subprocess.run(command, cwd=Path(__file__).parent.parent, timeout=60)
    assert done.returncode == -signal.SIGKILL
    assert contents(path) == before
    assert rows(path, "PRAGMA user_version") == [(2,)]
    assert contents(path.with_name("results.db.version-2")) == before


def test_without_room_for_a_copy_there_is_no_upgrade(
    path: Path, step: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Path, mode: str) -> Any:
        if "x" in mode:
            raise OSError(28, "No space left on device")
        return opened(self, mode)

    opened = Path.open

    before = path.read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", full)
        with pytest.raises(StoreError) as refused:
            open_store(str(path))
    assert str(refused.value) == (
        f"{path}: its version 2 needs an upgrade, and no copy could be made first ([Errno 28] No space left on "
        "device); make room beside it, make its folder writable, or give another file"
    )
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == ["results.db"]


def test_a_copy_has_what_is_still_in_the_wal(path: Path, step: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA journal_mode = WAL")
        other.execute("UPDATE run SET label = 'after'")
        other.commit()
        open_store(str(path)).close()
    copy = path.with_name("results.db.version-2")
    assert (
        rows(copy, "SELECT DISTINCT label FROM run") == rows(path, "SELECT DISTINCT tag FROM run") == [("after",)]
    )


# The revisions and runner/store/schema.py


def test_the_revisions_make_the_same_tables_as_the_schema(tmp_path: Path) -> None:
    new, stepwise = tmp_path / "new.db", tmp_path / "stepwise.db"
    open_store(str(new)).close()
    engine = upgrade.engine_for(stepwise, "stepwise.db", "rwc", 1.0, [], "BEGIN IMMEDIATE")
    with engine.begin() as connection:
        upgrade.migrate(connection, 0, "stepwise.db")
    engine.dispose()
    assert structure(stepwise) == structure(new)


def structure(path: Path) -> dict[str, list[str]]:
    """Name -> the lines of the statement that made it; of a table in any order."""
    made = rows(path, "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL")
    return {
        name: sorted(line.strip().rstrip(",") for line in sql.splitlines()) if kind == "table" else [sql]
        for kind, name, sql in made
    }


def test_the_newest_revision_is_the_version_of_the_schema() -> None:
    newest = max(file.stem for file in upgrade.REVISIONS[0].glob("v*.py"))
    assert newest.startswith(f"v{schema.VERSION:04d}_")


# Views follow the program, without a new version


def test_a_missing_view_and_one_of_another_text_are_made_again_and_no_other(path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.executescript(
            "DROP VIEW latency; DROP VIEW stream; CREATE VIEW stream AS SELECT 1; CREATE VIEW mine AS SELECT 2"
        )
    order = "SELECT rowid, name FROM sqlite_master WHERE type = 'view'"
    before = {name: rowid for rowid, name in rows(path, order)}
    open_store(str(path)).close()
    assert dict(rows(path, "SELECT name, sql FROM sqlite_master WHERE type = 'view'")) == {
        **VIEWS,
        "mine": "CREATE VIEW mine AS SELECT 2",
    }
    assert rows(path, "PRAGMA user_version") == [(2,)]
    after = {name: rowid for rowid, name in rows(path, order)}
    untouched = {"runs", "payload", "backpressure", "conditions", "mine"}
    assert {name: after[name] for name in untouched} == {name: before[name] for name in untouched}


def test_opening_a_file_whose_views_are_right_writes_nothing(path: Path) -> None:
    engine = upgrade.engine_for(path, "results.db", "rw", 1.0, [], "BEGIN IMMEDIATE")
    with engine.begin() as connection:
        connection.exec_driver_sql("PRAGMA query_only = ON")
        refresh_views(connection, "results.db")
    engine.dispose()


def test_a_table_with_the_name_of_a_new_view_is_one_line(path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.executescript("DROP VIEW stream; CREATE TABLE Stream (mine)")
    with pytest.raises(StoreError) as refused:
        open_store(str(path))
    message = "it has a table stream, which is the name of a view of bakeoff; rename it"
    assert str(refused.value) == f"{path}: {message}"
    assert rows(path, "SELECT count(*) FROM Stream") == [(0,)]


def test_runs_of_before_and_after_an_upgrade_stand_side_by_side(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "VERSION", 3)
    folder = path.parent / "revisions"
    folder.mkdir()
    (folder / "v0003_index.py").write_text(
        "from alembic import op\nrevision, down_revision = '0003', '0002'\n"
        "def upgrade():\n    op.create_index('ix_run_operation', 'run', ['operation'])\n"
    )
    monkeypatch.setattr(upgrade, "REVISIONS", [*upgrade.REVISIONS, folder])
    write_sweep(path, [replace(latency_run("grpc", 0, 300.0), label="new")], 3)
    assert rows(path, "SELECT count(*) FROM latency") == [(25,)]
