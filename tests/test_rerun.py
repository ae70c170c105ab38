"""`bakeoff rerun RUN`: the stored overrides again, in a new sweep, and what is no longer the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from runner.__main__ import main
from runner.report.stored import Stored
from runner.rerun import replayed, told
from tests.golden_db import CONDITIONS, ENVIRONMENT, golden
from tests.words import Bakeoff

CONFIG: Mapping[str, Any] = {"operation": {"count": 5000}, "load": {"connections": 1}, "plan": {"position": 1}}


def stored(overrides: Sequence[str] = (), **changes: Any) -> Stored:
    words = ["scenario", "label", "operation", "protocol", "engine", "codec", "variant", "placement"]
    row = dict.fromkeys(words, "") | {
        "run_id": "R",
        "connections": 1,
        "overrides": list(overrides),
        "config": CONFIG,
        "conditions": CONDITIONS,
        "findings": {},
        "machine": ENVIRONMENT,
        "started_at": datetime(2026, 3, 1, tzinfo=UTC),
    }
    return Stored({**row, **changes})


def test_overrides_are_replayed_once_without_suite_and_files() -> None:
    line = "suite=article scenario=stream protocol=grpc protocol.bdp_probe=false repeats=5 report=report.txt"
    old = stored([*line.split(), "storage.url=sqlite:///a.db", "seed=7"])

    kept = ["scenario=stream", "protocol=grpc", "protocol.bdp_probe=false", "seed=7"]
    assert replayed(old, [], "results.db") == [*kept, "repeats=1"]
    assert replayed(old, ["repeats=3", "operation.count=9"], "results.db") == [
        *kept,
        "repeats=3",
        "operation.count=9",
    ]


def test_another_protocol_takes_the_old_ones_knobs_with_it() -> None:
    old = stored(["scenario=stream", "protocol=grpc", "protocol.bdp_probe=false"])

    assert replayed(old, ["protocol=tcp"], "results.db") == ["scenario=stream", "protocol=tcp", "repeats=1"]


def test_results_go_where_the_run_is() -> None:
    assert replayed(stored(), [], "it's.db") == [
        "repeats=1",
        "storage=sqlite",
        "storage.url='sqlite:///it\\'s.db'",
    ]


def test_what_is_the_same_is_said_to_be_so() -> None:
    assert told(stored(), [stored(config={**CONFIG, "plan": {"position": 9}})]) == [
        "compared with run R: the same settings, conditions and machine"
    ]


def test_what_is_no_longer_the_same_is_named_with_both_values() -> None:
    new = stored(
        config={"operation": {"count": 100}, "load": {"connections": 1}},
        conditions={**CONDITIONS, "loop": "asyncio"},
        machine={**ENVIRONMENT, "grpcio": "1.86.0", "hostname": "other"},
    )

    assert told(stored(), [new]) == [
        "compared with run R:",
        "  settings no longer the same: operation.count 5000 -> 100",
        "  conditions no longer the same: loop uvloop -> asyncio",
        "  machine no longer the same: hostname golden -> other, grpcio 1.85.3 -> 1.86.0",
    ]


def test_how_the_machine_felt_is_no_difference() -> None:
    old = stored(conditions={"load_average": 0.1, "cpu_mhz": 2000}, machine={"cpu_mhz_now": 2400})
    new = stored(conditions={"load_average": 3.1, "cpu_mhz": 3000}, machine={"cpu_mhz_now": 1200})

    assert len(told(old, [new])) == 1


def test_a_real_run_is_run_again_and_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    line = ["protocol=loopback", "operation.count=20", "operation.warmup=2", "storage.url=sqlite:///a.db"]
    assert main(line) == 0
    capsys.readouterr()

    assert main(["rerun", "0", "--db", "a.db", "operation.count=25"]) == 0
    lines = capsys.readouterr().out.splitlines()

    assert lines[0].startswith("again: bakeoff protocol=loopback operation.warmup=2 ")
    assert "repeats=1" in lines[0]
    assert lines[-1] == "  settings no longer the same: operation.count 20 -> 25"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.db"]


def test_what_is_not_there_is_one_line(bakeoff: Bakeoff) -> None:
    golden(bakeoff.path)

    assert bakeoff.refused("rerun", "X").startswith("run X: there is no such run; the last one is 01KG")
    assert bakeoff.refused("rerun", "01KG0000000000000000010000", "fast") == "fast: expected key=value"


@pytest.fixture
def bakeoff(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Bakeoff:
    return Bakeoff(capsys, monkeypatch, tmp_path)
