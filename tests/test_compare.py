"""`bakeoff compare`: cells are paired by what was swept, and whatever else is not the same is said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.__main__ import main
from runner.history.compare import ONLY
from runner.report.better import more_is_better
from runner.store import RunRecord
from tests.golden_db import CONDITIONS, ENVIRONMENT, backpressure_run, golden, latency_run, stream_run
from tests.words import Bakeoff

THREE = (0.98, 1.0, 1.02)


@pytest.fixture
def bakeoff(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Bakeoff:
    return Bakeoff(capsys, monkeypatch, tmp_path)


def calls(protocol: str, p50_us: float, **changes: Any) -> list[RunRecord]:
    """Three runs of one cell; `settings` goes into the configuration."""
    config = changes.pop("config", {})
    runs = [latency_run(protocol, i, p50_us * factor, **changes) for i, factor in enumerate(THREE)]
    return [replace(run, config=config) for run in runs]


def verdicts(rows: Sequence[dict[str, str]]) -> dict[tuple[str, str], str]:
    return {(row["cell"], row["metric"]): row["verdict"] for row in rows}


def test_two_sweeps_are_compared_cell_by_cell(bakeoff: Bakeoff) -> None:
    golden(bakeoff.path)

    assert bakeoff.lines("compare", "last~1", "last")[:9] == [
        "BASE results.db · sweep 01KG0000000000000000000001 · bakeoff protocol=grpc label=before repeats=2 · "
        "started 2026-03-01",
        "  13:00 UTC",
        "NEW results.db · sweep 01KG0000000000000000000002 · bakeoff suite=article · started 2026-03-01 14:00 UTC",
        "",
        "COMPARE · 1 cell in both sweeps; 2 better",
        "",
        "cell                   metric  BASE  NEW               ratio  NEW is",
        "---------------------  ------  ----  ---  ------------------  ------",
        "request_response grpc  p50_us   405  300  0.74x [0.72, 0.77]  better",
    ]


def test_what_is_in_one_sweep_only_is_listed(bakeoff: Bakeoff) -> None:
    bakeoff.write([*calls("grpc", 300), *calls("tcp", 50)], 1)
    bakeoff.write([*calls("grpc", 300), *calls("rsocket", 290)], 2)
    found = bakeoff.json("compare", "last~1", "last")

    assert found["only_in_base"] == ["request_response tcp"]
    assert found["only_in_new"] == ["request_response rsocket"]
    assert "only in BASE: request_response tcp, 3 runs" in bakeoff.lines("compare", "last~1", "last")


def test_direction_and_claim_follow_the_metric(bakeoff: Bakeoff) -> None:
    bakeoff.write([*calls("grpc", 300), *(stream_run("tcp", i, 1000 * f) for i, f in enumerate(THREE))], 1)
    bakeoff.write([*calls("grpc", 360), *(stream_run("tcp", i, 1500 * f) for i, f in enumerate(THREE))], 2)

    assert verdicts(bakeoff.rows("compare", "last~1", "last")) == {
        ("request_response grpc", "p50_us"): "worse",
        ("request_response grpc", "p99_us"): "worse",
        ("stream tcp", "messages_per_s"): "better",
    }
    assert verdicts(bakeoff.rows("compare", "last", "last~1", "--metric", "calls_per_s")) == {
        ("request_response grpc", "calls_per_s"): "better"
    }
    assert [more_is_better(name) for name in ("requests_per_server_cpu_s", "server_cpu_us", "n")] == [
        True,
        False,
        None,
    ]


def test_the_ratio_has_its_bracket_in_every_format(bakeoff: Bakeoff) -> None:
    bakeoff.write(calls("grpc", 300), 1)
    bakeoff.write(calls("grpc", 600), 2)
    [row] = bakeoff.rows("compare", "last~1", "last", "--metric", "p50_us")

    assert [float(row[key]) for key in ("base", "base_low", "base_high", "new")] == [300, 294, 306, 600]
    assert [round(float(row[key]), 6) for key in ("ratio", "ratio_low", "ratio_high")] == [2, 1.921569, 2.081633]
    assert "2.00x [1.92, 2.08]" in bakeoff("compare", "last~1", "last", "--format", "md")


def test_little_differences_and_single_runs_are_not_claimed(bakeoff: Bakeoff) -> None:
    bakeoff.write([*calls("grpc", 300), latency_run("tcp", 0, 50)], 1)
    bakeoff.write([*calls("grpc", 305), latency_run("tcp", 0, 99)], 2)

    assert verdicts(bakeoff.rows("compare", "last~1", "last", "--metric", "p50_us")) == {
        ("request_response grpc", "p50_us"): "no clear difference",
        ("request_response tcp", "p50_us"): "n=1",
    }


def test_some_runs_of_a_sweep_are_compared_with_others_of_it(bakeoff: Bakeoff) -> None:
    """Interleaved in one sweep, so that whatever comes and goes meanwhile is on both sides."""
    slower = {"operation": {"service_time_ms": 0.55}}
    bakeoff.write(
        [
            *calls("grpc", 1_000, label="a", config={"operation": {"service_time_ms": 0.5}}),
            *calls("grpc", 1_100, label="b", config=slower),
            *calls("tcp", 50, label="b"),
        ]
    )
    found = bakeoff.json("compare", "last@label=a", "last@label=b@protocol=grpc", "--metric", "p50_us")
    [row] = found["rows"]

    assert (row["cell"], row["verdict"], row["ratio"]) == ("request_response grpc", "worse", pytest.approx(1.1))
    assert "service_time_ms 0.5 -> 0.55" in row["differs"]
    head = " ".join(bakeoff.lines("compare", "last@label=a", "last@label=b@protocol=grpc")[:6])
    assert "BASE results.db · runs with label=a of sweep 01KG" in head
    assert "NEW results.db · runs with label=b and protocol=grpc of sweep 01KG" in head


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("last@label=c", "no run of sweep 01KG0000000000000000000001 has label=c (bakeoff runs lists them)"),
        ("last@lable=a", "lable=a: no run has lable; did you mean label? (bakeoff show RUN prints what it has)"),
    ],
)
def test_runs_that_a_sweep_does_not_have_cannot_be_compared(bakeoff: Bakeoff, reference: str, said: str) -> None:
    bakeoff.write(calls("grpc", 1_000, label="a"))

    assert bakeoff.refused("compare", "last", reference) == said


def test_a_password_in_an_address_is_no_choice_of_runs() -> None:
    address = "postgresql+psycopg://me:a=b@host/name?options=x"

    assert ONLY.search(address) is None
    found = ONLY.search(f"{address}@label=a")
    assert found is not None
    assert found[1] == "label=a"


def test_what_is_equivalent_in_practice_can_be_said(bakeoff: Bakeoff) -> None:
    bakeoff.write(calls("grpc", 300), 1)
    bakeoff.write(calls("grpc", 360), 2)
    asked = ("compare", "last~1", "last", "--metric", "p50_us")

    assert bakeoff.rows(*asked)[0]["verdict"] == "worse"
    assert bakeoff.rows(*asked, "--equivalent-pct", "21")[0]["verdict"] == "no clear difference"
    assert "excludes 1 and is over 21 %." in " ".join(bakeoff.lines(*asked, "--equivalent-pct", "21"))
    assert bakeoff.refused(*asked, "--equivalent-pct", "-1") == (
        "argument --equivalent-pct: expected a number of per cent, 0 or more, got '-1' (bakeoff compare --help)"
    )


def test_cells_are_paired_by_what_was_swept(bakeoff: Bakeoff) -> None:
    def at(connections: int, p50_us: float) -> list[RunRecord]:
        config = {"load": {"connections": connections}, "operation": {"size_bytes": 64}}
        return calls("grpc", p50_us, connections=connections, config=config)

    bakeoff.write([*at(1, 300), *at(16, 900)], 1)
    bakeoff.write([*at(16, 450), *at(64, 990)], 2)
    rows = bakeoff.rows("compare", "last~1", "last", "--metric", "p50_us")

    assert [(row["cell"], row["base"], row["new"]) for row in rows] == [
        ("request_response grpc connections=16", "900", "450")
    ]
    assert bakeoff.json("compare", "last~1", "last")["only_in_base"] == ["request_response grpc connections=1"]


def test_a_setting_that_differs_between_the_sweeps_marks_the_pair(bakeoff: Bakeoff) -> None:
    bakeoff.write(calls("grpc", 300, config={"operation": {"service_time_ms": 5}, "load": {"seed": 1}}), 1)
    bakeoff.write(
        calls(
            "grpc",
            360,
            codec="json",
            config={"operation": {"service_time_ms": 6}, "load": {"seed": 2}},
            conditions={**CONDITIONS, "loop": "asyncio"},
        ),
        2,
    )
    lines = bakeoff.lines("compare", "last~1", "last", "--metric", "p50_us")

    assert "request_response grpc  p50_us   300  360  1.20x [1.15, 1.25]  worse   (a)" in lines
    assert (
        "(a) not the same: codec protobuf -> json; operation.service_time_ms 5 -> 6; loop uvloop -> asyncio"
        in lines
    )


def test_another_machine_is_a_warning_that_names_what_differs(bakeoff: Bakeoff) -> None:
    other = {**ENVIRONMENT, "hostname": "other", "grpcio": "1.86.0", "governor": "powersave"}
    bakeoff.write(calls("grpc", 300), 1)
    bakeoff.write(calls("grpc", 300, environment=other), 2)

    changes = "governor performance -> powersave; grpcio 1.85.3 -> 1.86.0; hostname golden -> other"
    line = f"the environment is not the same: {changes}"
    assert line in bakeoff.lines("compare", "last~1", "last")
    assert bakeoff.json("compare", "last~1", "last")["environment"] == [
        {"key": "governor", "base": "performance", "new": "powersave"},
        {"key": "grpcio", "base": "1.85.3", "new": "1.86.0"},
        {"key": "hostname", "base": "golden", "new": "other"},
    ]


def test_clock_speed_load_and_drawn_seeds_are_no_difference(bakeoff: Bakeoff) -> None:
    for number, mhz in ((1, 2000), (2, 3400)):
        conditions = {
            **CONDITIONS,
            "load_average": mhz / 1000,
            "cpu_mhz": mhz,
            "arrival_seed": number,
            "steal_pct": number,
        }
        bakeoff.write(
            calls("grpc", 300, conditions=conditions, environment={**ENVIRONMENT, "current_mhz": mhz}), number
        )
    printed = bakeoff("compare", "last~1", "last")

    assert "not the same" not in printed


def test_void_and_failed_runs_count_for_nothing_and_are_said(bakeoff: Bakeoff) -> None:
    bakeoff.write(calls("grpc", 300), 1)
    bad = latency_run("grpc", 3, 9000, verdict="void", reason="2 % errors")
    bakeoff.write([*calls("grpc", 300), bad], 2)

    assert "left out of NEW: request_response grpc, 1 void" in bakeoff.lines("compare", "last~1", "last")
    assert {row["ratio"] for row in bakeoff.rows("compare", "last~1", "last")} == {"1"}


def test_words_and_zeros_are_compared_too(bakeoff: Bakeoff) -> None:
    bakeoff.write([backpressure_run("grpc", i, [100, 100, 100]) for i in range(2)], 1)
    bakeoff.write([backpressure_run("grpc", i, [5000, 5000, 5000]) for i in range(2)], 2)

    assert verdicts(bakeoff.rows("compare", "last~1", "last")) == {
        ("backpressure grpc", "plateau_messages"): "worse",
        ("backpressure grpc", "plateau_bytes"): "worse",
        ("backpressure grpc", "bounded_by"): "changed",
    }
    assert set(verdicts(bakeoff.rows("compare", "last", "last")).values()) == {"same"}


def test_databases_and_sweeps_in_them_can_be_named(bakeoff: Bakeoff) -> None:
    bakeoff.write(calls("grpc", 100), 1, path=bakeoff.folder / "a.db")
    bakeoff.write(calls("grpc", 200), 2, path=bakeoff.folder / "a.db")
    bakeoff.write(calls("grpc", 400), 3, path=bakeoff.folder / "b.db")

    def ratio(base: str, new: str) -> float:
        return float(bakeoff.rows("compare", base, new, "--metric", "p50_us")[0]["ratio"])

    assert [ratio("a.db", "b.db"), ratio("a.db:last~1", "b.db"), ratio("b.db", "sqlite:///a.db")] == [2, 4, 0.5]


def test_mistakes_name_the_way_out(bakeoff: Bakeoff) -> None:
    assert bakeoff.refused("compare", "last~1", "last") == "results.db not found; run bakeoff first"
    bakeoff.write(calls("grpc", 100), 1)
    bakeoff.write(calls("tcp", 100), 2)

    assert bakeoff.refused("compare", "last~1", "last") == (
        "no cell is in both; BASE has request_response grpc; NEW has request_response tcp"
    )
    assert bakeoff.refused("compare", "last", "last", "--metric", "p9_us") == (
        "--metric p9_us: neither sweep has it; did you mean p99_us?"
    )
    assert bakeoff.refused("compare", "no.db", "last") == "no.db not found; run bakeoff first"
    assert bakeoff.refused("compare", "last") == (
        "the following arguments are required: NEW (bakeoff compare --help)"
    )


def test_two_real_sweeps_of_which_one_serves_more_slowly(
    bakeoff: Bakeoff, capsys: pytest.CaptureFixture[str]
) -> None:
    """Waiting 20 and 24 ms per call: 20 % that no noise hides, or makes."""
    for service_time_ms in (20, 24):
        line = f"protocol=tcp operation.service_time_ms={service_time_ms} operation.count=15 operation.warmup=2"
        assert main([*line.split(), "repeats=2"]) == 0
    capsys.readouterr()
    found = bakeoff.json("compare", "last~1", "last", "--metric", "p50_us")

    [row] = found["rows"]
    assert (row["cell"], row["runs_base"], row["runs_new"]) == ("request_response tcp", 2, 2)
    assert row["new"] > row["base"] >= 20_000
    assert row["verdict"] == "worse"
    assert row["differs"] == "operation.service_time_ms 20 -> 24"
    assert found["environment"] == []
