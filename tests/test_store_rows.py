"""A record as rows: what no database keeps unchanged is refused before anything is written, by name."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from runner.store import RunRecord, Store, SweepRecord, Unstorable, open_store
from tests.databases import Database
from tests.golden_db import START, latency_run

SWEEP = SweepRecord("01KG0000000000000000000001", None, "bakeoff", 4711, 2, START)


@pytest.fixture
def store(database: Database) -> Iterator[Store]:
    with open_store(database.url) as opened:
        opened.begin_sweep(SWEEP)
        yield opened


def a_run(name: str = "A", **changes: Any) -> RunRecord:
    return replace(latency_run("grpc", 0, 100.0), run_id=name, sweep_id=SWEEP.sweep_id, **changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"measurements": {"p50_us": (math.nan, "us")}}, "measurement p50_us: nan is not a finite number"),
        ({"measurements": {"p50_us": (math.inf, "us")}}, "measurement p50_us: inf is not a finite number"),
        ({"measurements": {"p50_us": (None, "us")}}, "measurement p50_us: None is not a number"),
        ({"measurements": {"p50_us": ("9", "us")}}, "measurement p50_us: '9' is not a number"),
        ({"measurements": {"n": (2**64, "calls")}}, "measurement n: 18446744073709551616 needs more than 64 bits"),
        (
            {"measurements": {"n": (2**53 + 1, "calls")}},
            "measurement n: 9007199254740993 has more digits than a 64-bit float keeps",
        ),
        ({"duration_s": math.nan}, "duration_s: nan is not a finite number"),
        ({"samples": {"gap": [1, -2]}}, "samples gap: -2 is a negative time"),
        ({"samples": {"gap": [1.5]}}, "samples gap: not all are whole 64-bit nanoseconds"),
        ({"samples": {"gap": [2**63]}}, "samples gap: not all are whole 64-bit nanoseconds"),
        ({"series": {"produced": [(0, math.nan)]}}, "series produced: nan is not a finite number"),
        ({"series": {"produced": [(2**63, 1.0)]}}, "series produced, t_ns: 9223372036854775808 needs more than"),
        ({"series": {"produced": [(5, 1.0), (5, 2.0)]}}, "series produced: two values at the same t_ns"),
        ({"conditions": {"a": {"b": [0, math.inf]}}}, "conditions.a.b[1]: inf is not a finite number"),
        ({"errors": {"timeout": 2**63}}, "errors.timeout: 9223372036854775808 needs more than 64 bits"),
        ({"config": {"a": {1, 2}}}, "config.a: {1, 2} is not a number"),
        ({"config": {1: 2}}, "a key of config: 1 is not text"),
        ({"reason": "bad \udcff byte"}, "reason: character 4 is '\\udcff', half of a surrogate pair"),
        ({"findings": {"bound": "\ud83e"}}, "findings.bound: character 0 is '\\ud83e', half of a surrogate pair"),
        ({"repeat": 1.0}, "repeat: 1.0 is not a whole number"),
        ({"started_at": datetime(2026, 3, 1)}, "started_at: 2026-03-01T00:00:00 has no time zone"),
    ],
)
def test_what_no_database_keeps_unchanged_is_refused_by_name(
    store: Store, database: Database, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(Unstorable) as refused:
        store.save_run(a_run(**changes))
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)
    assert database.rows("SELECT count(*) FROM run") == [(0,)]
    assert not list(database.folder.glob("*.unsaved-*"))


def test_a_refused_run_can_be_corrected_and_saved(store: Store, database: Database) -> None:
    with pytest.raises(Unstorable) as refused:
        store.save_run(a_run(measurements={"p50_us": (math.nan, "us")}))
    store.save_run(a_run(measurements={}, verdict="failed", reason=str(refused.value)))
    assert database.rows("SELECT verdict, reason FROM runs") == [
        ("failed", "measurement p50_us: nan is not a finite number")
    ]


def test_extreme_but_storable_numbers_come_back_exactly(store: Store, database: Database) -> None:
    values = {"a": 5e-324, "b": 1.7976931348623157e308, "c": 2**53, "d": -(2**62), "e": 0.1 + 0.2}
    store.save_run(
        a_run(measurements={name: (value, "1") for name, value in values.items()}, samples={"s": [0, 2**63 - 1]})
    )
    assert dict(database.rows("SELECT metric, value FROM measurement")) == values
    assert database.rows("SELECT value_ns FROM sample ORDER BY seq") == [(0,), (2**63 - 1,)]
