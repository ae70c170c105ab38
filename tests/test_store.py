"""Saving and reading back: what goes into results.db comes out of it, and one file holds it all."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hdrh.histogram import HdrHistogram
from sqlalchemy import select

from runner.store import RunRecord, Store, SweepRecord, new_id, open_store, schema
from runner.store.histogram import DIGITS, decode, encode
from tests.databases import Database
from tests.golden_db import CONDITIONS, ENVIRONMENT, START, latency_run, payload_run

SWEEP = SweepRecord("01KG0000000000000000000001", "article", "bakeoff suite=article", 4711, 2, START)


@pytest.fixture
def store(database: Database) -> Iterator[Store]:
    with open_store(database.url) as opened:
        opened.begin_sweep(SWEEP)
        yield opened


def a_run(name: str = "A", **changes: Any) -> RunRecord:
    return replace(latency_run("grpc", 0, 100.0), run_id=name, sweep_id=SWEEP.sweep_id, **changes)


def document(kept: Any) -> Any:
    """A JSON column: text in a file, parsed already by PostgreSQL's driver."""
    return json.loads(kept) if isinstance(kept, str) else kept


# Ids


def test_ids_are_26_characters_and_sort_by_the_time_they_were_made() -> None:
    ids = [new_id() for _ in range(10_000)]
    assert {len(one) for one in ids} == {26}
    assert ids == sorted(set(ids))


def test_an_id_begins_with_the_milliseconds_since_1970(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: (2**48 - 1) * 1_000_000)
    monkeypatch.setattr("runner.store.ids._last", 0)
    assert new_id()[:10] == "7ZZZZZZZZZ"


def test_ids_rise_when_the_clock_is_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    before = new_id()
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    assert before < new_id() < new_id()


def test_two_processes_that_make_ids_at_once_share_none() -> None:
    script = "from runner.store.ids import new_id\nprint(*(new_id() for _ in range(5000)))"
    with (
        subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as one,
        subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as other,
    ):
        made = [child.communicate(timeout=60)[0].split() for child in (one, other)]
    assert len(set(made[0]) | set(made[1])) == 10_000


# A run and its rows


def test_a_run_comes_back_with_every_value_it_was_saved_with(store: Store, database: Database) -> None:
    local = timezone(timedelta(hours=2))
    store.save_run(
        RunRecord(
            run_id="R1",
            sweep_id=SWEEP.sweep_id,
            scenario="stream",
            label="before",
            operation="stream",
            protocol="grpc",
            engine="aio",
            codec="json",
            variant="bdp_probe=false",
            placement="split",
            connections=4,
            repeat=2,
            position=17,
            verdict="void",
            reason="2 errors",
            started_at=datetime(2026, 3, 1, 14, 0, 0, 5, tzinfo=local),
            duration_s=2.25,
            overrides=("protocol=grpc", "repeats=3"),
            config={"operation": {"quiet_s": [0.5, 1]}, "tls": False},
            conditions={"loop": "uvloop", "protocol.lookahead_bytes": None},
            environment={"python": "3.11.7", "cpus": 2},
            facts={"transport": "HTTP/2"},
            measurements={"messages": (50_000, "messages"), "seconds": (0.1, "s"), "first_ms": (1 / 3, "ms")},
            findings={"bound": "driver"},
            errors={"timeout": 2},
            samples={"gap": [30, 10, 20]},
            series={"produced": [(0, 100.0), (50_000_000, None), (100_000_000, 2.5)]},
        )
    )
    with store.engine.connect() as connection:
        kept = connection.execute(select(schema.run)).mappings().one()
    assert dict(kept) == {
        "run_id": "R1",
        "sweep_id": SWEEP.sweep_id,
        "environment_hash": kept["environment_hash"],
        "position": 17,
        "scenario": "stream",
        "label": "before",
        "operation": "stream",
        "protocol": "grpc",
        "engine": "aio",
        "codec": "json",
        "variant": "bdp_probe=false",
        "placement": "split",
        "connections": 4,
        "repeat": 2,
        "verdict": "void",
        "reason": "2 errors",
        "started_at": datetime(2026, 3, 1, 12, 0, 0, 5, tzinfo=UTC),
        "duration_s": 2.25,
        "overrides": ["protocol=grpc", "repeats=3"],
        "config": {"operation": {"quiet_s": [0.5, 1]}, "tls": False},
        "conditions": {"loop": "uvloop", "protocol.lookahead_bytes": None},
        "facts": {"transport": "HTTP/2"},
        "findings": {"bound": "driver"},
        "errors": {"timeout": 2},
    }
    assert database.rows("SELECT started_at FROM run") == [("2026-03-01T12:00:00.000005Z",)]
    ((facts,),) = database.rows("SELECT facts FROM environment")
    assert document(facts) == {"cpus": 2, "python": "3.11.7"}
    assert database.rows("SELECT * FROM measurement ORDER BY metric") == [
        ("R1", "first_ms", 1 / 3, "ms"),
        ("R1", "messages", 50_000.0, "messages"),
        ("R1", "seconds", 0.1, "s"),
    ]
    assert database.rows("SELECT * FROM sample ORDER BY seq") == [
        ("R1", "gap", 0, 30),
        ("R1", "gap", 1, 10),
        ("R1", "gap", 2, 20),
    ]
    assert database.rows("SELECT run_id, name, n, min_ns, max_ns, encoding FROM distribution") == [
        ("R1", "gap", 3, 10, 30, "hdrhistogram-v2-deflate")
    ]
    assert database.rows("SELECT * FROM series ORDER BY t_ns") == [
        ("R1", "produced", 0, 100.0),
        ("R1", "produced", 50_000_000, None),
        ("R1", "produced", 100_000_000, 2.5),
    ]


def test_a_sweep_has_its_end_once_it_has_ended(store: Store, database: Database) -> None:
    kept = (SWEEP.sweep_id, "article", "bakeoff suite=article", 4711, 2, "2026-03-01T12:00:00.000000Z")
    assert database.rows("SELECT * FROM sweep") == [(*kept, None)]
    store.end_sweep(SWEEP.sweep_id, START + timedelta(seconds=90))
    assert database.rows("SELECT * FROM sweep") == [(*kept, "2026-03-01T12:01:30.000000Z")]


def test_runs_with_equal_environments_share_one_row(store: Store, database: Database) -> None:
    turned = dict(reversed(ENVIRONMENT.items()))
    for name, environment in ("A", ENVIRONMENT), ("B", turned), ("C", {**ENVIRONMENT, "kernel": "Linux 6.2"}):
        store.save_run(a_run(name, environment=environment))
    query = "SELECT run_id, environment.facts FROM run JOIN environment USING (environment_hash)"
    kept = {run_id: document(facts) for run_id, facts in database.rows(query)}
    assert kept["A"] == kept["B"] == ENVIRONMENT
    assert kept["C"]["kernel"] == "Linux 6.2"
    assert database.rows("SELECT count(*) FROM environment") == [(2,)]


@pytest.mark.parametrize(
    "text",
    [
        "漢字",
        "🥁🍰",
        "e\u0301 \u202e",
        "a\nb\tc\r\"'\\",
        "\x01\x1f\x7f",
        "\u2028\ufffe\uffff",
        "",
        "=1+1",
        "%s ? :a {}",
    ],
)
def test_any_unicode_survives(store: Store, database: Database, text: str) -> None:
    store.save_run(a_run(label=text, reason=text, findings={"bound": text}, config={text: [text]}))
    with store.engine.connect() as connection:
        kept = connection.execute(select(schema.run)).mappings().one()
    assert (kept["label"], kept["reason"]) == (text, text)
    assert (kept["findings"], kept["config"]) == ({"bound": text}, {text: [text]})


def test_the_character_nul_survives_in_a_file(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "results.db")) as store:
        store.begin_sweep(SWEEP)
        store.save_run(a_run(label="\0", findings={"bound": "\0"}))
        with store.engine.connect() as connection:
            kept = connection.execute(select(schema.run)).mappings().one()
    assert (kept["label"], kept["findings"]) == ("\0", {"bound": "\0"})


def test_json_columns_of_a_file_hold_characters_as_themselves_and_keys_in_order(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    with open_store(str(path)) as store:
        store.begin_sweep(SWEEP)
        store.save_run(a_run(findings={"producer": "漢", "bound": "é"}))
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT findings FROM run").fetchall() == [('{"bound":"é","producer":"漢"}',)]


# Samples and histograms


@pytest.mark.parametrize(
    ("count", "most", "positions"),
    [
        (0, 10, []),
        (10, 10, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        (11, 10, [0, 2, 4, 6, 8, 10]),
        (25, 10, [0, 3, 6, 9, 12, 15, 18, 21, 24]),
        (25, 1, [0]),
        (25, 0, []),
    ],
)
def test_of_more_samples_than_the_limit_every_kth_is_kept_with_its_true_position(
    store: Store, database: Database, count: int, most: int, positions: list[int]
) -> None:
    store.save_run(a_run(samples={"latency": [1000 + seq for seq in range(count)]}), samples_max=most)
    assert database.rows("SELECT seq, value_ns FROM sample ORDER BY seq") == [
        (seq, 1000 + seq) for seq in positions
    ]
    histograms = [(count, 1000, 999 + count)] if count else []
    assert database.rows("SELECT n, min_ns, max_ns FROM distribution") == histograms


def test_the_limit_is_the_configured_one_and_10000_where_none_is(store: Store, database: Database) -> None:
    store.save_run(a_run("A", samples={"latency": range(30)}, config={"record": {"samples_max": 15}}))
    store.save_run(a_run("B", samples={"latency": range(30_000)}, config={}))
    assert database.rows("SELECT run_id, count(*), max(seq) FROM sample GROUP BY run_id ORDER BY run_id") == [
        ("A", 15, 28),
        ("B", 10_000, 29_997),
    ]
    assert database.rows("SELECT run_id, n FROM distribution ORDER BY run_id") == [("A", 30), ("B", 30_000)]


def test_the_histogram_has_every_sample_to_three_digits(store: Store, database: Database) -> None:
    values = [1_000 * (seq + 1) for seq in range(10_000)]
    store.save_run(a_run(samples={"latency": values}), samples_max=10)
    ((data,),) = database.rows("SELECT data FROM distribution")
    histogram = decode(data)
    assert histogram.total_count == 10_000
    for percentile, exact in (50, 5_000_000), (90, 9_000_000), (99, 9_900_000), (99.9, 9_990_000):
        assert histogram.get_value_at_percentile(percentile) == pytest.approx(exact, rel=1e-3)


def test_a_histogram_has_the_bytes_that_recording_one_value_after_the_other_gives() -> None:
    values = [0, 1, 2047, 2048, 2049, 4095, 4097, 10**6 + 1, 3_599_999_999_999, 7, 7]
    slow = HdrHistogram(1, 3_600_000_000_000, DIGITS, b64_wrap=False)
    for value in values:
        slow.record_value(value)
    assert encode(values) == slow.encode()


def test_a_histogram_holds_values_beyond_an_hour() -> None:
    histogram = decode(encode([5, 10**13]))
    assert histogram.total_count == 2
    assert histogram.get_value_at_percentile(100) == pytest.approx(10**13, rel=1e-3)


def test_histograms_of_two_runs_can_be_added() -> None:
    both = decode(encode([1_000] * 3))
    both.add(decode(encode([2_000_000] * 5)))
    assert (both.total_count, both.get_count_at_value(1_000)) == (8, 3)


# The tables


def test_the_narrow_tables_have_the_documented_columns(store: Store, database: Database) -> None:
    tables = {
        "measurement": ["run_id", "metric", "value", "unit"],
        "sample": ["run_id", "name", "seq", "value_ns"],
        "distribution": ["run_id", "name", "n", "min_ns", "max_ns", "encoding", "data"],
        "series": ["run_id", "name", "t_ns", "value"],
    }
    for table, columns in tables.items():
        with closing(database.connect()) as connection:
            described = connection.execute(f"SELECT * FROM {table}").description
        assert [column[0] for column in described] == columns


def test_deleting_a_run_takes_its_rows_along(store: Store, database: Database) -> None:
    store.save_run(replace(payload_run("json"), run_id="A", sweep_id=SWEEP.sweep_id, conditions=CONDITIONS))
    database.change("DELETE FROM run")
    assert database.rows("SELECT count(*) FROM measurement") == [(0,)]
