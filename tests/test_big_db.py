"""What a report costs grows with what it shows, not with what else is in the database."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from runner.report.command import main
from tests import big_db
from tests.golden_db import article_runs

LARGE = ("run", "measurement", "sample", "distribution", "series")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("big") / "big.db"
    assert big_db.main([str(made), "--runs", "160", "--samples", "5"]) == 0
    return made


@pytest.fixture
def asked() -> Iterator[list[tuple[str, Any]]]:
    """Every statement with its parameters."""
    found: list[tuple[str, Any]] = []

    def note(connection: Any, cursor: Any, statement: str, parameters: Any, *rest: Any) -> None:
        found.append((statement, parameters))

    event.listen(Engine, "before_cursor_execute", note)
    yield found
    event.remove(Engine, "before_cursor_execute", note)


def test_the_generator_makes_what_it_says(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        runs, sweeps = connection.execute("SELECT count(*), count(DISTINCT sweep_id) FROM run").fetchone()
        [samples] = connection.execute("SELECT count(*) FROM sample").fetchone()

    assert (runs, samples) == (160, 800)
    assert sweeps == math.ceil(160 / len(article_runs()))


def test_the_generator_overwrites_nothing(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert big_db.main([str(path)]) == 2
    assert "exists; give another name" in capsys.readouterr().err


@pytest.mark.parametrize("argv", [[], ["--html", "report.html"], ["--format", "json"]])
def test_no_query_of_the_report_reads_a_whole_table(
    path: Path, asked: list[tuple[str, Any]], argv: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert main(["--db", str(path), *argv]) == 0

    queries = [(statement, given) for statement, given in asked if statement.lstrip().startswith("SELECT")]
    assert len(queries) > 5
    with closing(sqlite3.connect(path)) as connection:
        for statement, given in queries:
            plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", given)]
            aliases = [name for name in LARGE for word in (name, f"{name} AS {name[0]}") if word in statement]
            names = {*aliases, *(name[0] for name in aliases)}
            assert [step for step in plan if step.startswith("SCAN") and step.split()[1] in names] == [], statement


def test_the_number_of_queries_does_not_grow_with_history(
    path: Path, asked: list[tuple[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    big_db.make(tmp_path / "small.db", len(article_runs()), 5)
    counts = []
    for db in (tmp_path / "small.db", path):
        asked.clear()
        assert main(["--db", str(db), "--sweep", f"01KG{1:022d}"]) == 0
        counts.append(len(asked))

    assert counts[0] == counts[1]
