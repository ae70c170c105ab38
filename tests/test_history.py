"""`bakeoff runs`, `show` and `delete`, over the hand-written database."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from runner.history import delete as deleting
from tests.golden_db import golden, latency_run, write_sweep
from tests.words import Bakeoff

ARTICLE = "01KG0000000000000000000002"
EARLIER = "01KG0000000000000000000001"
CONFIG = {"operation": {"name": "request_response", "count": 5000}, "load": {"connections": 16}}
SAMPLED = replace(latency_run("grpc", 0, 300), samples={"latency": [100, 200, 300]}, config=CONFIG)


@pytest.fixture
def bakeoff(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Bakeoff:
    return Bakeoff(capsys, monkeypatch, tmp_path)


@pytest.fixture
def stored(bakeoff: Bakeoff) -> Bakeoff:
    golden(bakeoff.path)
    return bakeoff


def count(path: Path, table: str) -> int:
    with closing(sqlite3.connect(path)) as connection:
        found: int = connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        return found


def test_the_runs_of_a_sweep_are_a_table(stored: Bakeoff) -> None:
    assert stored("runs", "--sweep", EARLIER) == (
        "RUNS · 2 runs, sweep 01KG0000000000000000000001\n"
        "\n"
        "run                         scenario          protocol  codec     variant  repeat\n"
        "--------------------------  ----------------  --------  --------  -------  ------\n"
        "01KG0000000000000000010000  request_response  grpc      protobuf  -             0\n"
        "01KG0000000000000000010001  request_response  grpc      protobuf  -             1\n"
        "\n"
        "run                         verdict  reason  started (UTC)        duration s\n"
        "--------------------------  -------  ------  -------------------  ----------\n"
        "01KG0000000000000000010000  ok       -       2026-03-01 13:00:00         2.0\n"
        "01KG0000000000000000010001  ok       -       2026-03-01 13:00:02         2.0\n"
    )


def test_the_last_sweep_is_meant_unless_told_otherwise(stored: Bakeoff) -> None:
    assert {row["sweep_id"] for row in stored.rows("runs")} == {ARTICLE}
    assert {row["sweep_id"] for row in stored.rows("runs", "--sweep", "last~1")} == {EARLIER}
    assert len(stored.rows("runs", "--all")) == 79
    assert "--------------------------  --------------------------" in stored("runs", "--all")


@pytest.mark.parametrize(
    ("where", "n"),
    [
        (["verdict=failed"], 1),
        (["verdict!=ok"], 4),
        (["protocol=grpc", "operation=request_response"], 3),
        (["protocol=grpc,rsocket", "operation=request_response"], 7),
        (["bounded_by=demand"], 5),  # a finding
        (["variant=bdp_probe=false lookahead_bytes=4096"], 1),
        (["connections=1", "hostname=golden", "protocol=websocket", "consumer=eager"], 3),
    ],
)
def test_where_selects_by_column_finding_or_condition(stored: Bakeoff, where: list[str], n: int) -> None:
    argv = [word for clause in where for word in ("--where", clause)]

    assert len(stored.rows("runs", *argv)) == n


def test_where_selects_by_a_key_of_the_configuration(bakeoff: Bakeoff) -> None:
    bakeoff.write([SAMPLED, replace(SAMPLED, config={"load": {"connections": 1}})])

    assert len(bakeoff.rows("runs", "--where", "load.connections=16")) == 1
    assert len(bakeoff.rows("runs", "--where", "load.connections=1,16")) == 2
    assert len(bakeoff.rows("runs", "--where", "operation.count=5e3")) == 1


def test_where_nothing_is_found_the_values_there_are_named(stored: Bakeoff) -> None:
    assert stored.lines("runs", "--sweep", EARLIER, "--where", "protocol=grcp") == [
        f"RUNS · 0 runs with protocol=grcp, sweep {EARLIER}",
        f"no run with protocol=grcp in sweep {EARLIER}",
        "  protocol there: grpc",
    ]
    assert stored.json("runs", "--where", "protocol=grcp")["rows"] == []


def test_mistakes_about_runs_name_the_way_out(stored: Bakeoff) -> None:
    assert stored.refused("runs", "--where", "protocl=grpc") == (
        "protocl=grpc: no run has protocl; did you mean protocol? (bakeoff show RUN prints what it has)"
    )
    assert stored.refused("runs", "--where", "grpc") == (
        "grpc: expected key=value, as in protocol=grpc or verdict!=ok"
    )
    assert stored.refused("runs", "--sweep", "last~2") == (
        "last~2: results.db holds 2 sweeps; the oldest is last~1"
    )
    assert stored.refused("runs", "--sweep", "X") == (
        f"sweep X: there is no such sweep; the last ones are: {EARLIER}, {ARTICLE}"
    )
    assert stored.refused("show", "01KG00000000000000000100") == (
        "run 01KG00000000000000000100: 2 runs begin like this; give more of the id"
    )
    assert stored.refused("show", "X_") == (
        "run X_: there is no such run; the last one is 01KG0000000000000000020076 (bakeoff runs lists them)"
    )


def test_a_run_is_shown_with_everything_that_is_known(bakeoff: Bakeoff) -> None:
    overrides = ["protocol=grpc", "label='a, b'"]
    bakeoff.write([replace(SAMPLED, overrides=overrides, label="a, b", errors={"timeout": 2})])
    lines = bakeoff.lines("show", "01kg00000000000000000100")

    for line in (
        "  label        a, b",
        "  p50_us                 300 us",
        "  mean_us                330 us",
        "  latency  3, from 100 to 300 ns",
        "series: none",
        "findings: none",
        "  timeout  2",
        "  gc                  frozen after warm-up",
        "  grpcio              1.85.3",
        "  demand         HTTP/2 window",
        "  operation.count   5000",
        "  protocol=grpc 'label='\"'\"'a, b'\"'\"''",
        "  bakeoff rerun 01KG0000000000000000010000",
    ):
        assert line in lines


def test_a_run_as_json_has_units_and_overrides(bakeoff: Bakeoff) -> None:
    bakeoff.write([replace(SAMPLED, overrides=["protocol=grpc"])])
    found = bakeoff.json("show", "01KG")

    assert found["measurements"]["p50_us"] == {"value": 300, "unit": "us"}
    assert found["overrides"] == ["protocol=grpc"]
    assert found["environment"]["hostname"] == "golden"
    assert found["samples"] == {"latency": {"n": 3, "min_ns": 100, "max_ns": 300}}


def test_deleting_takes_runs_samples_and_machines_that_no_other_sweep_has(bakeoff: Bakeoff) -> None:
    kept = bakeoff.write([latency_run("tcp", 0, 50)], 1)
    gone = bakeoff.write([replace(SAMPLED, environment={"hostname": "elsewhere"})], 2)

    assert bakeoff.lines("delete", "last", "--yes") == [
        f"results.db: sweep {gone}, 2026-03-01 14:00 UTC, bakeoff suite=article: 1 run, 22 measurements, 3 samples",
        "deleted: 1 sweep",
    ]
    assert [row["sweep_id"] for row in bakeoff.rows("runs", "--all")] == [kept]
    tables = ("sweep", "run", "measurement", "sample", "distribution", "environment")
    assert [count(bakeoff.path, table) for table in tables] == [1, 1, 22, 0, 0, 1]


def test_what_would_be_deleted_is_said_and_kept_where_nobody_can_be_asked(
    stored: Bakeoff, capsys: pytest.CaptureFixture[str]
) -> None:
    assert deleting.main(["last", EARLIER]) == 2
    out, err = capsys.readouterr()

    assert [line.split(", ")[0] for line in out.splitlines()] == [
        f"results.db: sweep {ARTICLE}",
        f"results.db: sweep {EARLIER}",
    ]
    assert err == "bakeoff delete: nothing was deleted; this is no terminal to ask at, so add --yes\n"
    assert count(stored.path, "sweep") == 2


@pytest.mark.parametrize(("answer", "code", "left"), [("y", 0, 1), ("", 1, 2), ("no", 1, 2)])
def test_at_a_terminal_it_asks(
    stored: Bakeoff, monkeypatch: pytest.MonkeyPatch, answer: str, code: int, left: int
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("builtins.input", lambda question: answer)

    assert stored("delete", "last", code=code).endswith("nothing was deleted\n" if code else "deleted: 1 sweep\n")
    assert count(stored.path, "sweep") == left


def test_one_unknown_sweep_and_nothing_is_deleted(stored: Bakeoff) -> None:
    assert stored.refused("delete", "last", "X", "--yes").startswith("sweep X: there is no such sweep")
    assert count(stored.path, "sweep") == 2


def test_a_sweep_that_did_not_end_is_said_to_be_unfinished(bakeoff: Bakeoff) -> None:
    write_sweep(bakeoff.path, [latency_run("tcp", 0, 50)], ended=False)

    assert "; it has not ended: still going, or it was killed" in bakeoff("delete", "last", "--yes")
