"""Results on a PostgreSQL server: the same tables and views, the same care, and errors of one line.

tests/test_store.py and tests/test_store_rows.py run on both kinds of database; here is what differs.
"""

from __future__ import annotations

import importlib.util
import json
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, make_url

from runner.__main__ import main
from runner.store import Store, StoreError, SweepRecord, open_store, read_store, read_unsaved, schema, upgrade
from runner.store.located import without_password
from runner.store.merge import merge
from runner.store.postgresql import locate_server
from runner.store.views import COLUMNS, POSTGRESQL_VIEWS, VIEWS
from tests.databases import Database, needs_server, own_schema
from tests.golden_db import START, backpressure_run, golden, latency_run, payload_run, write_sweep
from tests.golden_transfers import OUT_OF_MEMORY, bulk_run, hello_run

SWEEP = SweepRecord("01KG0000000000000000000001", "article", "bakeoff suite=article", 4711, 2, START)
RUN = replace(latency_run("grpc", 0, 100.0), run_id="A", sweep_id=SWEEP.sweep_id, overrides=["protocol=grpc"])


def said(opening: Callable[[], object], url: str) -> str:
    """The one line that `opening` is refused with, after the name of the database, which has no password."""
    with pytest.raises(StoreError) as refused:
        opening()
    shown = locate_server(url)[1]
    message = str(refused.value)
    assert "\n" not in message
    assert message.startswith(f"{shown}: ")
    assert make_url(url).password is None or str(make_url(url).password) not in message
    return message.removeprefix(f"{shown}: ")


def changed(url: str, **parts: Any) -> str:
    return make_url(url).set(**parts).render_as_string(hide_password=False)


def saved(database: Database, *names: str) -> Database:
    with open_store(database.url) as store:
        store.begin_sweep(SWEEP)
        for name in names:
            store.save_run(replace(RUN, run_id=name))
    return database


def contents(url: str) -> dict[str, list[Any]]:
    """Every row of every table, as values of Python."""
    with read_store(url) as store, store.engine.connect() as connection:
        return {
            table.name: sorted((tuple(row) for row in connection.execute(table.select())), key=repr)
            for table in schema.metadata.sorted_tables
        }


# The same answers


@needs_server
def test_every_view_says_the_same_as_in_a_file(postgresql: Database) -> None:
    file = golden(postgresql.folder / "golden.db")
    knobs = {
        "protocol.bdp_probe": False,
        "protocol.lookahead_bytes": None,
        "new": 14,
        "loop": None,
        "peers_seen": 300,
    }
    facts = {"python": "3.13", "moon": ["full"], "loop": "asyncio", "cpus": 64, "memory_bytes": 2**40}
    nothing: dict[str, Any] = dict.fromkeys(["size_bytes", "hex", "encode_ns", "decode_ns"])
    runs = [
        latency_run("grpc", 0, 1 / 3, conditions=knobs, environment=facts, label="漢 '%s'"),
        latency_run("tcp", 1, 300.0, n=50, p99_us=None, server_cpu_us=None, conditions={}, environment={}),
        payload_run("protobuf", **nothing, message="int65", representable="no"),
        backpressure_run("grpc", 0, [5, None], quiet_s=[0.5, 2], surplus_kernel=999.5, surplus_unaccounted=-0.5),
        hello_run("http_threads", 0, 5_000, service_time_ms=2.5),
        hello_run("http", 0, verdict="failed", config={}),
        bulk_run("upload", "grpc", 0, 0.5),
        OUT_OF_MEMORY,
    ]
    write_sweep(file, runs, 3)
    with open_store(postgresql.url) as store:
        merge(store, [str(file)])
    with read_store(postgresql.url) as server, read_store(str(file)) as plain:
        for view in VIEWS:
            assert read(server, view) == read(plain, view), view


def read(store: Store, view: str) -> list[dict[str, Any]]:
    with store.engine.connect() as connection:
        found = connection.exec_driver_sql(f"SELECT * FROM {view}").mappings().all()
    columns = [name for name, _ in COLUMNS[view]]
    documents = ("knobs", "other_facts")
    rows = [{name: json.loads(row[name]) if name in documents else row[name] for name in columns} for row in found]
    return sorted(rows, key=lambda row: (row["run_id"], str(row.get("quiet_s")), str(row.get("name"))))


def test_a_view_of_both_kinds_has_the_same_columns() -> None:
    assert list(POSTGRESQL_VIEWS) == list(VIEWS)
    for name, statement in POSTGRESQL_VIEWS.items():
        assert "json_extract" not in statement, f"{name}: a field must say what it is in PostgreSQL"
        assert "json_each" not in statement.replace("jsonb_each", ""), name


@needs_server
def test_what_goes_from_a_file_to_a_server_and_back_is_the_same(
    postgresql: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    file, back = golden(postgresql.folder / "golden.db"), postgresql.folder / "back.db"
    record = replace(
        RUN, samples={"latency": [3, 1, 2]}, series={"produced": [(0, 1.5), (1, None)]}, errors={"e": 2}
    )
    with open_store(str(file)) as store:
        store.begin_sweep(replace(SWEEP, sweep_id="S"))
        store.save_run(replace(record, sweep_id="S"))
    assert main(["merge", str(file), "--db", postgresql.url]) == 0
    assert main(["merge", postgresql.url, "--db", str(back)]) == 0
    assert str(make_url(postgresql.url).password) not in capsys.readouterr().out
    assert main(["merge", postgresql.url, "--db", postgresql.url]) == 2
    shown = locate_server(postgresql.url)[1]
    message = "it is the database that it would be merged into; give another --db"
    assert capsys.readouterr().err == f"bakeoff merge: {shown}: {message}\n"
    assert contents(str(file)) == contents(postgresql.url) == contents(str(back))
    with open_store(postgresql.url) as store:
        (again,) = merge(store, [str(back)])
    assert (again.sweeps, again.runs, again.runs_known) == (0, 0, 80)


@needs_server
def test_a_run_that_differs_is_refused_and_nothing_is_merged(
    postgresql: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    file = golden(postgresql.folder / "golden.db")
    assert main(["merge", str(file), "--db", postgresql.url]) == 0
    postgresql.change("UPDATE run SET reason = 'x' WHERE run_id = '01KG0000000000000000020003'")
    capsys.readouterr()
    before = contents(postgresql.url)
    assert main(["merge", str(file), "--db", postgresql.url]) == 2
    err = capsys.readouterr().err
    assert "run 01KG0000000000000000020003 is in postgresql+psycopg://" in err
    assert contents(postgresql.url) == before


@needs_server
def test_the_report_is_that_of_a_file(postgresql: Database, capsys: pytest.CaptureFixture[str]) -> None:
    file = golden(postgresql.folder / "golden.db")
    with open_store(postgresql.url) as store:
        merge(store, [str(file)])
    reports = []
    for url, shown in (str(file), str(file)), (postgresql.url, locate_server(postgresql.url)[1]):
        assert main(["report", "--all", "--format", "md", "--db", url]) == 0
        out = capsys.readouterr().out
        assert out.count(shown) == 2
        reports.append(out.replace(shown, "HERE"))
    assert reports[0] == reports[1]


@needs_server
def test_a_sweep_goes_to_the_server_and_its_password_nowhere(
    postgresql: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    words = ["scenario=payload", "operation.loops=50", "storage=postgresql", f"storage.url='{postgresql.url}'"]
    done = subprocess.run(
        [sys.executable, "-m", "runner", *words], cwd=postgresql.folder, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"bakeoff · {locate_server(postgresql.url)[1]} · sweep ")
    assert postgresql.rows("SELECT verdict, codec FROM runs") == [("ok", "json")]
    assert list(postgresql.folder.iterdir()) == []
    query = "SELECT command, overrides, config FROM run JOIN sweep USING (sweep_id)"
    ((command, overrides, config),) = postgresql.rows(query)
    assert config["storage"]["name"] == "postgresql"
    password = make_url(postgresql.url).password
    assert password
    assert str(password) not in done.stdout + done.stderr + command + json.dumps([overrides, config])
    assert ":***@" in command


@needs_server
def test_every_view_says_of_a_real_run_what_it_says_in_a_file(postgresql: Database) -> None:
    """A condition that is a number and not called one in runner.store.conditions would be text here."""
    words = ["load=constant,poisson", "load.rate=80.5", "load.duration_s=0.2", "protocol=tcp", "operation.warmup=2"]
    words += ["storage=postgresql", f'storage.url="{postgresql.url}"']
    command = [sys.executable, "-m", "runner", *words]
    done = subprocess.run(command, cwd=postgresql.folder, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    file = postgresql.folder / "copy.db"
    assert main(["merge", postgresql.url, "--db", str(file)]) == 0
    with read_store(postgresql.url) as server, read_store(str(file)) as plain:
        for view in VIEWS:
            assert sorted(read(server, view), key=str) == sorted(read(plain, view), key=str), view
        rates = [(row["arrival"], row["rate_per_s"]) for row in read(server, "conditions")]
    assert sorted(rates) == [("constant", 80.5), ("poisson", 80.5)]


# Ready to be written, or not


@needs_server
def test_a_database_without_our_tables_is_not_read_and_not_changed(postgresql: Database) -> None:
    message = "bakeoff has no tables there; run bakeoff first"
    assert said(lambda: read_store(postgresql.url), postgresql.url) == message
    assert said(lambda: open_store(postgresql.url, create=False), postgresql.url) == message
    assert postgresql.rows("SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()") == [(0,)]


@needs_server
@pytest.mark.parametrize("opening", [open_store, read_store])
def test_a_newer_version_is_refused_untouched(postgresql: Database, opening: Callable[[str], Store]) -> None:
    saved(postgresql, "A").change("UPDATE bakeoff_version SET version = 3")
    postgresql.change("DROP VIEW latency")
    message = "a newer bakeoff wrote it (version 3, this one knows 2); upgrade bakeoff or give another file"
    assert said(lambda: opening(postgresql.url), postgresql.url) == message
    assert postgresql.rows("SELECT version FROM bakeoff_version") == [(3,)]
    assert postgresql.rows("SELECT count(*) FROM pg_views WHERE schemaname = current_schema()") == [
        (len(VIEWS) - 1,)
    ]


@needs_server
def test_another_programs_tables_are_not_mixed_with_ours(postgresql: Database) -> None:
    postgresql.change("CREATE TABLE run (id int); CREATE VIEW latency AS SELECT 1; CREATE TABLE notes (id int)")
    message = "latency, run there is another program's; give another search_path"
    assert said(lambda: open_store(postgresql.url), postgresql.url) == message
    assert postgresql.rows("SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()") == [(2,)]


@needs_server
def test_tables_of_other_names_are_good_neighbours(postgresql: Database) -> None:
    postgresql.change("CREATE TABLE notes (id int)")
    assert saved(postgresql, "A").rows("SELECT run_id FROM latency") == [("A",)]


@needs_server
def test_a_store_opened_for_reading_does_not_write_and_sees_one_state(postgresql: Database) -> None:
    saved(postgresql, "A")
    with read_store(postgresql.url) as store:
        assert said(lambda: store.begin_sweep(SWEEP), postgresql.url).startswith("it cannot be written (")
        with store.engine.connect() as connection:
            count = "SELECT count(*) FROM run"
            assert connection.exec_driver_sql(count).scalar() == 1
            with open_store(postgresql.url) as writer:
                writer.save_run(replace(RUN, run_id="B"))
            assert connection.exec_driver_sql(count).scalar() == 1
    assert postgresql.rows(count) == [(2,)]


@needs_server
def test_an_older_version_is_upgraded_in_place_or_not_at_all(
    postgresql: Database, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    saved(postgresql, "A").change("CREATE VIEW mine AS SELECT label FROM run")
    step = postgresql.folder / "v0003_made_up.py"
    text = "import sqlalchemy as sa\nfrom alembic import op\nrevision, down_revision = '0003', '0002'\n\n\n"
    text += "def upgrade():\n"
    text += "    op.add_column('run', sa.Column('operator', sa.String))\n"
    step.write_text(f"{text}    op.drop_column('run', 'nothing')\n")
    monkeypatch.setattr(upgrade, "REVISIONS", [*upgrade.REVISIONS, postgresql.folder])
    monkeypatch.setattr(schema, "VERSION", 3)
    before = postgresql.rows("SELECT * FROM run")
    with pytest.raises(StoreError, match='column "nothing" of relation "run" does not exist'):
        open_store(postgresql.url)
    assert postgresql.rows("SELECT * FROM run") == before
    assert postgresql.rows("SELECT version FROM bakeoff_version") == [(2,)]
    step.write_text(text)
    capsys.readouterr()
    read_store(postgresql.url).close()
    assert capsys.readouterr().err.endswith(
        ": upgraded from version 2 to 3 in place; a copy is made by pg_dump, not here\n"
    )
    assert postgresql.rows("SELECT run_id, operator FROM run") == [("A", None)]
    assert postgresql.rows("SELECT run_id FROM latency") == [("A",)]
    assert postgresql.rows("SELECT label FROM mine") == [("",)]
    assert postgresql.rows("SELECT version FROM bakeoff_version") == [(3,)]


@needs_server
def test_the_revisions_make_the_same_tables_as_the_schema(postgresql: Database) -> None:
    described = (
        "SELECT table_name, column_name, data_type, is_nullable, character_maximum_length"
        " FROM information_schema.columns WHERE table_schema = current_schema() ORDER BY 1, 2"
    )
    constraints = (
        "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint"
        " WHERE connamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())"
        " AND contype <> 'n' ORDER BY 1"  # from version 18 on NOT NULL is one, named by the server
    )
    indexes = "SELECT indexname FROM pg_indexes WHERE schemaname = current_schema() ORDER BY 1"
    saved(postgresql)
    made = [postgresql.rows(query) for query in (described, constraints, indexes)]
    assert len(made[0]) > 60
    views = ", ".join(VIEWS)
    tables = ", ".join(table.name for table in schema.metadata.sorted_tables)
    postgresql.change(f"DROP VIEW {views}; DROP TABLE {tables}, bakeoff_version")
    engine = create_engine(postgresql.url)
    with engine.begin() as connection:
        upgrade.migrate(connection, 0, "stepwise")
    engine.dispose()
    assert [postgresql.rows(query) for query in (described, constraints, indexes)] == made


@needs_server
def test_views_follow_the_program_and_those_of_others_stay(postgresql: Database) -> None:
    saved(postgresql, "A").change("DROP VIEW latency; DROP VIEW stream; CREATE VIEW stream AS SELECT 1 AS n")
    postgresql.change("CREATE VIEW mine AS SELECT run_id FROM runs")
    open_store(postgresql.url).close()
    assert postgresql.rows("SELECT run_id FROM latency") == [("A",)]
    assert postgresql.rows("SELECT run_id, messages FROM stream") == []
    assert postgresql.rows("SELECT run_id FROM mine") == [("A",)]
    # One of ours that has to change while a stranger's depends on it: his is not dropped behind his back.
    postgresql.change("COMMENT ON VIEW runs IS 'made by an older bakeoff'")
    message = said(lambda: open_store(postgresql.url), postgresql.url)
    assert message.startswith("a view of bakeoff cannot be made anew (cannot drop view runs because other objects")
    assert postgresql.rows("SELECT run_id FROM mine") == [("A",)]


# While a sweep runs


@needs_server
def test_eight_writers_at_once_lose_no_run(postgresql: Database) -> None:
    def sweep(writer: int) -> None:
        together.wait(timeout=30)
        with open_store(postgresql.url, busy_s=60.0) as store:
            store.begin_sweep(replace(SWEEP, sweep_id=f"S{writer}"))
            for number in range(3):
                record = replace(RUN, run_id=f"{writer}-{number}", sweep_id=f"S{writer}")
                store.save_run(replace(record, samples={"latency": range(200)}))

    together = threading.Barrier(8)
    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(sweep, writer) for writer in range(8)]:
            done.result(timeout=100)
    assert postgresql.rows("SELECT count(*), count(DISTINCT sweep_id) FROM runs") == [(24, 8)]
    assert postgresql.rows("SELECT count(*) FROM sample") == [(24 * 200,)]
    assert postgresql.rows("SELECT count(*) FROM environment") == [(1,)]


@needs_server
def test_a_run_that_meets_a_lasting_lock_is_kept_and_can_be_merged(postgresql: Database) -> None:
    with open_store(postgresql.url, busy_s=0.2) as store:
        store.begin_sweep(SWEEP)
        with closing(postgresql.connect()) as other:
            other.execute("LOCK TABLE run")
            message = said(lambda: store.save_run(RUN), postgresql.url)
    reason = "it is locked by another program (waited 0.2 s); close that or give another database"
    kept = postgresql.folder / f"{make_url(postgresql.url).database}.unsaved-A.json"
    assert message.startswith(f"{reason}; the run is kept in {kept}; later: bakeoff merge {kept} --db ")
    assert read_unsaved(kept).run == RUN
    assert str(make_url(postgresql.url).password) not in kept.read_text()
    assert postgresql.rows("SELECT count(*) FROM measurement") == [(0,)]
    assert main(["merge", str(kept), "--db", postgresql.url]) == 0
    assert postgresql.rows("SELECT run_id FROM latency") == [("A",)]


@needs_server
def test_a_run_with_the_character_nul_is_kept_whole(postgresql: Database) -> None:
    with open_store(postgresql.url) as store:
        store.begin_sweep(SWEEP)
        for changes in {"label": "a\0b"}, {"findings": {"bound": "a\0b"}}:
            record = replace(RUN, **changes)  # type: ignore[arg-type]
            message = said(lambda: store.save_run(record), postgresql.url)  # noqa: B023
            reason = (
                "a text has the character NUL, which PostgreSQL does not keep; an SQLite file does; the run is kept"
            )
            assert message.startswith(reason)
            (kept,) = postgresql.folder.glob("*.unsaved-A.json")
            assert read_unsaved(kept).run == record
    assert postgresql.rows("SELECT count(*) FROM run") == [(0,)]


@needs_server
def test_a_connection_that_the_server_ended_between_two_runs_is_made_anew(postgresql: Database) -> None:
    with open_store(postgresql.url) as store:
        store.begin_sweep(SWEEP)
        with store.engine.connect() as connection:
            pid = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
        assert postgresql.rows(f"SELECT pg_terminate_backend({pid}, 10000)") == [(True,)]
        store.save_run(RUN)
    assert postgresql.rows("SELECT run_id FROM latency") == [("A",)]


# Errors of one line


@needs_server
def test_what_the_server_refuses_is_one_line(postgresql: Database) -> None:
    url = postgresql.url
    wrong = changed(url, password="wrong")
    assert said(lambda: open_store(wrong), wrong).startswith(
        "the server does not let you in (password authentication"
    )
    nowhere = changed(url, database="bakeoff_nowhere")
    message = 'the server does not let you in (database "bakeoff_nowhere" does not exist)'
    assert said(lambda: read_store(nowhere), nowhere) == f"{message}; check user, password and database"
    no_schema = own_schema(url, "bakeoff_nowhere")
    assert said(lambda: open_store(no_schema), no_schema) == (
        "there is no such schema; create it or give another search_path"
    )


def test_a_server_that_is_not_there_is_one_line_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    url = "postgresql+psycopg://me:secret@127.0.0.1:1/results"
    assert main(["report", "--db", url]) == 2
    err = capsys.readouterr().err
    assert err.startswith(
        "bakeoff report: postgresql+psycopg://me:***@127.0.0.1:1/results: the server cannot be reached ("
    )
    assert err.endswith("; start it or check host and port\n")
    assert err.count("\n") == 1
    assert "secret" not in err
    words = shlex.split(f"protocol=loopback storage=postgresql storage.url={url}")
    assert main(words) == 2
    err = capsys.readouterr().err
    assert "storage.url: postgresql+psycopg://me:***@127.0.0.1:1/results: the server cannot be reached (" in err
    assert "secret" not in err


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (
            "postgresql+asyncpg://h/d",
            "postgresql+asyncpg: that driver is not supported; write postgresql+psycopg://...",
        ),
        ("postgresql://h:port/d", "not a database URL; write postgresql+psycopg://user@host/database"),
    ],
)
def test_a_url_that_cannot_be_used_is_refused(url: str, message: str) -> None:
    for opening in open_store, read_store:
        with pytest.raises(StoreError) as refused:
            opening(url)
        assert str(refused.value) == message


def test_without_the_extra_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(StoreError) as refused:
        open_store("postgresql://me:secret@h/d")
    message = "PostgreSQL needs a library more; pip install 'bakeoff[postgresql]'"
    assert str(refused.value) == f"postgresql://me:***@h/d: {message}"


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("postgresql://me:secret@h/d", "postgresql://me:***@h/d"),
        ("bakeoff 'storage.url=postgresql+psycopg://me:se%40cret@h/d?a=b' x=1", None),
        ("postgresql://h/d?user=me&password=secret&a=b", "postgresql://h/d?user=me&password=***&a=b"),
        ("sqlite:///a:b@c.db", "sqlite:///a:b@c.db"),
        ("protocol=grpc label='a:b@c'", "protocol=grpc label='a:b@c'"),
        ("http://h:80/path@x", "http://h:80/path@x"),
    ],
)
def test_a_password_is_hidden_wherever_a_url_is_kept(text: str, hidden: str | None) -> None:
    expected = hidden or "bakeoff 'storage.url=postgresql+psycopg://me:***@h/d?a=b' x=1"
    assert without_password(text) == expected
    assert without_password(expected) == expected
