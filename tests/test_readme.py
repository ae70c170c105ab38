"""Everything that the README says can be typed is typed here, with small counts."""

from __future__ import annotations

import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from runner.store import schema
from tests import golden_transfers
from tests.databases import Database, needs_server
from tests.golden_db import golden
from tests.readme import README, SHOWN, replaced, tables, views

TEXT = README.read_text()
SMALL = {
    "request_response": ["operation.count=30", "operation.warmup=3"],
    "stream": ["operation.count=300", "operation.warmup=20"],
    "payload": ["operation.loops=50"],
    "backpressure": ["operation.quiet_s=[0.05]", "operation.settle_s=0"],
    "saturation": [
        *("operation.slo_p99_ms=1000", "operation.start_rate=10", "operation.step_s=0.3"),
        *("operation.precision=0.9", "operation.warmup=10"),
    ],
}
SMALL["upload"] = ["operation.records=500", "operation.warmup=100"]
# Where many protocols or connections are named, the lines that name fewer have tried them; here one will do.
SMALL["upload,download"] = [*SMALL["upload"], "protocol=grpc"]
SMALL["bulk"] = ["operation.records=1000", "operation.warmup=100", "repeats=1", "protocol=http"]
SMALL["hello"] = ["operation.requests=400", "operation.warmup=40"]
SMALL["threads_vs_async"] = [*SMALL["hello"], "repeats=1", "load.connections=25"]
SMALL["overhead"] = [*SMALL["stream"], "repeats=1", "protocol=tcp"]
OPEN_LOOP = {"load.rate": 20, "load.duration_s": 1.5}  # on a busy machine, too
SMALL["article"] = [*SMALL["stream"], *SMALL["payload"], *SMALL["backpressure"], "repeats=1"]
SMALL["backpressure_full"] = [*SMALL["backpressure"], "protocol=websocket"]


def blocks(language: str) -> list[str]:
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    return [block for named, block in fenced if named == language]


def commands(word: str) -> list[str]:
    lines = [line for block in blocks("") if not block.startswith("$ ") for line in block.splitlines()]
    return [line for line in lines if line.startswith(f"{word} ") or line == word]


# Words about what is stored already; they are run in order, over sweeps made for them.
KEEPING = [
    line for line in commands("bakeoff") if re.search(r" (runs|show|rerun|export|compare|check|delete) ", line)
]
MEASURING = [
    line
    for line in commands("bakeoff")
    if not re.search(r"report|serve|doctor|postgresql|--", line) and line not in KEEPING
]
READING = [
    line
    for line in commands("bakeoff")
    if re.search(r"report|--", line) and not re.search(r" merge |postgresql", line) and line not in KEEPING
]
QUERIES = blocks("sql")


def bakeoff(line: str, folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "runner", *shlex.split(line)[1:], *more]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=110)


def small(line: str) -> str:
    """`line` with counts that take a moment."""
    words = shlex.split(line)
    kind = "request_response"
    for word in words:
        if word.startswith(("scenario=", "suite=")):
            kind = word.partition("=")[2]
    keys = {key.partition("=")[0] for key in SMALL[kind]}
    kept = [word for word in words if word.partition("=")[0] not in {*keys, "repeats"}]
    if any(word.startswith("load=") for word in kept):
        kept = [word for word in kept if not word.startswith(tuple(OPEN_LOOP))]
        kept += [f"{key}={value}" for key, value in OPEN_LOOP.items()]
    return shlex.join([*kept, *SMALL[kind], "limits.max_waited_pct=10000"])  # other tests run meanwhile


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which something was measured."""
    folder = tmp_path_factory.mktemp("measured")
    for line in ("bakeoff protocol=tcp", "bakeoff scenario=stream protocol=tcp,websocket"):
        done = bakeoff(small(line), folder)
        assert done.returncode == 0, done.stderr
    return folder


def test_there_is_something_to_test() -> None:
    assert len(MEASURING) >= 10
    assert len(READING) >= 5
    assert len(QUERIES) == 10


@pytest.mark.parametrize("line", MEASURING)
def test_a_measuring_command_of_the_readme_works(line: str, tmp_path: Path) -> None:
    done = bakeoff(small(line), tmp_path)

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("bakeoff · results.db · sweep ")
    assert {path.name for path in tmp_path.iterdir()} <= {"results.db", "report.txt"}
    with closing(sqlite3.connect(tmp_path / "results.db")) as db:
        bad = db.execute("select protocol, operation, reason from runs where verdict = 'failed'").fetchall()
        assert bad == []
        assert db.execute("select count(*) from runs where verdict = 'ok'").fetchone()[0] >= 1


@pytest.mark.parametrize("line", READING)
def test_a_reading_command_of_the_readme_works(line: str, measured: Path) -> None:
    done = bakeoff(line.replace("backpressure --format", "stream --format"), measured)

    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_the_doctor_of_the_readme_comes_to_a_verdict(tmp_path: Path) -> None:
    (line,) = (line for line in commands("bakeoff") if " doctor" in line)
    done = bakeoff(line, tmp_path)
    assert done.stderr == ""
    verdict = "fit to measure (" if done.returncode == 0 else "not fit to measure: "
    assert done.stdout.splitlines()[-1].startswith(verdict)
    assert list(tmp_path.iterdir()) == []


def test_the_merging_command_of_the_readme_works(tmp_path: Path) -> None:
    golden(tmp_path / "laptop.db")
    (line,) = (line for line in commands("bakeoff") if " merge laptop.db" in line)
    done = bakeoff(line, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "all.db: 79 runs and 2 sweeps added, 0 runs there already from laptop.db\n"


@needs_server
def test_the_commands_of_the_readme_about_postgresql_work(postgresql: Database) -> None:
    golden(postgresql.folder / "results.db")
    lines = [line for line in commands("bakeoff") if "postgresql" in line]
    assert [re.split("[ =]", line)[1] for line in lines] == ["suite", "report", "merge"]
    for line in lines:
        said = line.replace("suite=article", "scenario=payload operation.loops=50")
        storage = shlex.quote(f'storage.url="{postgresql.url}"')
        said = re.sub(r"storage\.url=\S+", lambda _: storage, said)  # noqa: B023
        said = re.sub(r"--db \S+", lambda _: f"--db {shlex.quote(postgresql.url)}", said)
        done = bakeoff(said, postgresql.folder)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip()
    assert postgresql.rows("SELECT count(*) FROM sweep") == [(3,)]


def test_the_keeping_commands_of_the_readme_work_one_after_the_other(tmp_path: Path) -> None:
    for _ in range(2):
        assert bakeoff(small("bakeoff protocol=tcp"), tmp_path).returncode == 0
    with closing(sqlite3.connect(tmp_path / "results.db")) as db:
        run, sweep = db.execute("select run_id, sweep_id from run order by run_id limit 1").fetchone()
    shutil.copytree(README.parent / "conf" / "thresholds", tmp_path / "conf" / "thresholds")

    assert len(KEEPING) == 7
    for line in KEEPING:
        done = bakeoff(line.replace("RUN", run).replace("SWEEP", sweep), tmp_path)
        # Nothing was measured that all of the example's rules are about.
        assert done.returncode == (1 if " check " in line else 0), (line, done.stderr)
        assert done.stdout.strip()
    assert {path.name for path in tmp_path.iterdir()} == {"results.db", "conf", "samples.csv", "latency.hlog"}


def test_what_make_can_do_is_in_the_makefile() -> None:
    rules = re.findall(r"^([a-z]+):", (README.parent / "Makefile").read_text(), re.MULTILINE)

    assert commands("make") == ["make run", "make test"]
    assert {"run", "test"} <= set(rules)


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_of_the_readme_finds_rows(query: str, tmp_path: Path, measured: Path) -> None:
    """Over the hand-written database; that one has no raw samples, so for those over what was measured."""
    if "from sample" in query:
        path = measured / "results.db"
    else:
        path = golden_transfers.golden(golden(tmp_path / "results.db"))
    with closing(sqlite3.connect(path)) as db:
        assert len(db.execute(query).fetchall()) >= 1


def test_the_median_query_takes_the_middle_run(tmp_path: Path) -> None:
    query = next(query for query in QUERIES if "row_number" in query)
    with closing(sqlite3.connect(golden(tmp_path / "results.db"))) as db:
        # The first sweep of the hand-written database has three runs of each cell.
        first = query.replace("select max(sweep_id)", "select min(sweep_id)")
        found = db.execute(first).fetchall()
        assert found
        for protocol, engine, codec, variant, connections, _, p50_us in found:
            runs = db.execute(
                "select p50_us from latency where verdict = 'ok' and protocol = ? and engine = ? and codec = ? "
                "and variant = ? and connections = ? and sweep_id = (select min(sweep_id) from latency) "
                "order by p50_us",
                (protocol, engine, codec, variant, connections),
            ).fetchall()
            assert p50_us == runs[(len(runs) + 1) // 2 - 1][0]


def test_the_scenario_of_the_readme_runs(tmp_path: Path) -> None:
    (example,) = blocks("yaml")
    (tmp_path / "scenario").mkdir()
    (tmp_path / "scenario" / "my_question.yaml").write_text(example)
    done = bakeoff(f"bakeoff --config-dir {tmp_path} scenario=my_question", tmp_path, *SMALL["backpressure"])

    assert done.returncode == 0, done.stderr
    with closing(sqlite3.connect(tmp_path / "results.db")) as db:
        row = db.execute("select scenario, protocol, variant, asked from backpressure").fetchone()
    assert row == ("my_question", "grpc", "bdp_probe=false lookahead_bytes=262144", 1000)


def test_the_columns_of_the_views_are_described_as_they_are() -> None:
    assert replaced(TEXT, "views", views()) == TEXT


def test_every_table_and_column_is_described_as_it_is() -> None:
    described = [table.comment for table in schema.metadata.tables.values()]
    described += [column.comment for table in schema.metadata.tables.values() for column in table.columns]
    assert all(described)
    assert len(described) > 50
    assert replaced(TEXT, "tables", tables()) == TEXT


def test_the_first_screen_shows_what_the_tool_printed() -> None:
    printed = re.search(r"<!-- generated:.*?-->\n(.*?)<!-- end -->", TEXT, re.DOTALL)

    assert printed is not None
    assert f"$ bakeoff report {' '.join(SHOWN)}" in printed[1]
    for title in ("REQUEST/RESPONSE", "BACK-PRESSURE", "CHOOSING"):
        assert title in printed[1]
