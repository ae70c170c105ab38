"""What a verdict rests on: limits, what the machine does to a run, and where it is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runner.checks import Check, failed, machine_checks, within
from runner.store import open_store
from tests.golden_db import latency_run, write_sweep
from tests.reports import Reporter

SECOND = 1_000_000_000


@pytest.fixture
def reporter(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Reporter:
    return Reporter(capsys, monkeypatch, tmp_path)


APART: dict[str, Any] = {"one_core": False, "alternating": False, "max_waited_pct": 50}
SHARED: dict[str, Any] = {**APART, "one_core": True, "alternating": True}
QUIET: dict[str, Any] = {"python_debug": False, "asyncio_debug": False, "debug_logging": False}


@pytest.mark.parametrize(
    ("value", "least", "most", "passed"),
    [(5, 5, 5, True), (4.99, 5, None, False), (5, 5, None, True), (1.01, None, 1, False), (1, None, 1, True)],
)
def test_a_limit_belongs_to_what_is_allowed(
    value: float, least: float | None, most: float | None, passed: bool
) -> None:
    assert within("x", value, "", "why", least=least, most=most).passed is passed


def test_only_a_check_that_weighs_void_makes_a_run_void() -> None:
    checks = [
        within("a", 2, "", "a is over", most=1),
        within("b", 2, "", "b is over", most=1, weight="warning"),
        within("c", 0, "", "c is over", most=1),
    ]

    assert failed(checks) == ["a is over"]


def names(checks: list[Check]) -> list[str]:
    return [check.name for check in checks if not check.passed]


@pytest.mark.parametrize("mode", ["python_debug", "asyncio_debug", "debug_logging"])
def test_a_debug_mode_is_what_is_measured(mode: str) -> None:
    assert names(machine_checks({}, SECOND, {**QUIET, mode: True}, **APART)) == [mode]
    assert names(machine_checks({}, SECOND, QUIET, **APART)) == []


def test_a_process_that_waited_for_its_cpu_was_not_measured_alone() -> None:
    usage = {
        "server": {"waited_ns": 510_000_000, "cpu_ns": 400_000_000},
        "driver": {"waited_ns": 490_000_000, "cpu_ns": 400_000_000},
    }
    [check] = [c for c in machine_checks(usage, SECOND, QUIET, **APART) if not c.passed]

    assert (check.name, check.value, check.most) == ("server_waited_pct", 51.0, 50.0)
    assert check.reason == (
        "the server waited for a CPU for 51 % of the window (over 50 % is void: other programs had it)"
    )


def test_threads_of_one_process_that_wait_for_each_other_are_not_held_up_by_others() -> None:
    usage = {"server": {"waited_ns": 3 * SECOND, "cpu_ns": 990_000_000}}
    [check] = [c for c in machine_checks(usage, SECOND, QUIET, **APART) if c.name == "server_waited_pct"]

    assert (check.value, check.passed) == (1.0, True)


def test_two_that_share_a_core_must_have_had_half_of_it() -> None:
    usage = {"server": {"cpu_ns": 200_000_000}, "driver": {"cpu_ns": 290_000_000}}

    assert names(machine_checks(usage, SECOND, QUIET, **SHARED)) == ["busy_pct"]
    usage["driver"]["cpu_ns"] = 310_000_000
    assert names(machine_checks(usage, SECOND, QUIET, **SHARED)) == []


def test_on_one_core_a_process_also_waits_for_the_other_one_of_ours() -> None:
    usage = {
        "server": {"waited_ns": 0, "cpu_ns": 520_000_000},
        "driver": {"waited_ns": 530_000_000, "cpu_ns": 200_000_000},
    }
    on_one = machine_checks(usage, SECOND, QUIET, **{**APART, "one_core": True})

    assert {c.name: c.value for c in on_one if c.unit == "%"} == {
        "server_waited_pct": 0.0,
        "driver_waited_pct": 28.0,
    }
    assert names(machine_checks(usage, SECOND, QUIET, **APART)) == ["driver_waited_pct"]


def test_time_that_the_host_took_is_nobodys() -> None:
    assert names(machine_checks({"driver": {"steal_ppm": 60_000}}, SECOND, QUIET, **APART)) == ["steal_pct"]
    assert names(machine_checks({"driver": {"steal_ppm": 40_000}}, SECOND, QUIET, **APART)) == []


def test_shares_of_a_short_window_are_chance() -> None:
    usage = {"server": {"waited_ns": 90_000_000, "cpu_ns": 0}, "driver": {"steal_ppm": 500_000}}

    assert names(machine_checks(usage, SECOND // 10, QUIET, **APART)) == []


def test_checks_are_kept_with_their_limits_in_the_database(reporter: Reporter) -> None:
    check = Check("littles_law", 0.85, "x", False, "rate x mean latency is 0.85", 0.9, 1.1)
    write_sweep(reporter.path, [latency_run("grpc", 0, 300, checks=(check,), verdict="void", reason=check.reason)])

    with open_store(str(reporter.path)) as store, store.engine.connect() as connection:
        row = dict(connection.exec_driver_sql("SELECT * FROM checks").mappings().one())
    assert {name: row[name] for name in ("protocol", "verdict", "name", "value", "unit", "least", "most")} == {
        "protocol": "grpc",
        "verdict": "void",
        "name": "littles_law",
        "value": 0.85,
        "unit": "x",
        "least": 0.9,
        "most": 1.1,
    }
    assert (row["passed"], row["weight"], row["reason"]) == (0, "void", "rate x mean latency is 0.85")


def test_explain_adds_why_to_any_table(reporter: Reporter) -> None:
    check = within("samples", 5000, "", "too few samples", least=10)
    runs = [latency_run(p, n, v + n, checks=(check,)) for p, v in (("grpc", 300), ("rsocket", 400)) for n in (0, 1)]
    reporter.write(runs)
    plain, explained = reporter("request_response"), reporter("request_response", "--explain")

    assert "COMPARISONS" not in plain
    assert "CHECKS" not in plain
    assert "COMPARISONS · why each difference is claimed or not" in explained
    assert "CHECKS · why each verdict is what it is" in explained
    [row] = [row for row in reporter.rows("comparisons") if row["measure"] == "p50"]
    assert (row["of"], row["against"], row["runs"], row["verdict"]) == (
        "grpc",
        "rsocket",
        "2 and 2",
        "grpc is faster",
    )
    assert float(row["p_ratio"]) == pytest.approx(1 / 3)
    assert row["because"] == "the range excludes 1; the medians differ by 33.3 %, over 5 %"


def test_labels_of_one_cell_are_compared(reporter: Reporter) -> None:
    runs = [
        latency_run("grpc", n, value, label=label)
        for label, values in (("a", [100, 101, 102]), ("b", [120, 121, 122]))
        for n, value in enumerate(values)
    ]
    reporter.write(runs)
    notes = reporter.notes("request_response")

    assert "p50 as a ratio, between labels:" in notes
    assert "grpc a against grpc b: 0.83x [0.82, 0.85]: grpc a is faster" in notes


@pytest.mark.parametrize(("asked", "claimed"), [([], True), (["--equivalent-pct", "17"], False)])
def test_what_is_equivalent_in_practice_can_be_said(reporter: Reporter, asked: list[str], claimed: bool) -> None:
    runs = [
        latency_run("grpc", n, value, label=label)
        for label, values in (("a", [100, 101, 102]), ("b", [116, 117, 118]))
        for n, value in enumerate(values)
    ]
    reporter.write(runs)
    notes = reporter.notes("request_response", *asked)
    explained = reporter("comparisons", *asked)

    said = "grpc a is faster" if claimed else "no clear difference"
    assert f"grpc a against grpc b: 0.86x [0.85, 0.88]: {said}" in notes
    assert f"differ by more than {'5' if claimed else '17'} %" in " ".join(reporter(*asked).split())
    assert f"the medians differ by 15.8 %, {'over 5' if claimed else 'not over 17'} %" in " ".join(
        explained.split()
    )
