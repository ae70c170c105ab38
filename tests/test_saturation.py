"""The saturation search: pure, on a clock that jumps, and against a real server whose limit is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from adapters.api import CallFailed, ConnectionLost
from adapters.codecs import CODECS
from runner import engine
from runner.config import check
from runner.drive import Drive
from runner.fields import ConstantLoad, Limits
from runner.operations.api import Raw, Summary
from runner.operations.rate_search import RateSearch
from runner.operations.saturation import STEP, Saturation, limiting_side
from tests.cells import config, option
from tests.drives import LIMITS, OpenGate
from tests.test_open_loop import Slow, values
from tests.virtual_time import VirtualTimer, clock, virtually


def searched(start: float, precision: float, kept: Callable[[float], bool]) -> tuple[RateSearch, list[float]]:
    search, tried = RateSearch(start, precision), []
    while search.rate is not None:
        tried.append(search.rate)
        search.told(kept(search.rate))
    return search, tried


@pytest.mark.parametrize("start", [1.0, 100.0, 299.0, 301.0, 50_000.0])
@pytest.mark.parametrize("precision", [0.01, 0.05, 0.5])
def test_the_search_finds_a_limit_from_either_side(start: float, precision: float) -> None:
    search, tried = searched(start, precision, lambda rate: rate <= 300)

    assert search.kept is not None
    assert search.broken is not None
    assert search.kept <= 300 < search.broken <= search.kept * (1 + precision) + 1e-9
    assert len(tried) < 50


def test_rates_double_until_one_breaks_twice_and_are_bisected_in_ratios() -> None:
    _, tried = searched(100, 0.5, lambda rate: rate <= 300)

    assert tried == pytest.approx([100, 200, 400, 400, 282.84], abs=0.01)


def test_a_rate_that_breaks_once_and_is_kept_then_is_kept() -> None:
    hiccups = [200.0]

    def kept(rate: float) -> bool:
        if rate in hiccups:
            hiccups.remove(rate)
            return False
        return rate <= 300

    search, tried = searched(100, 0.05, kept)

    assert tried[:4] == [100, 200, 200, 400]
    assert search.kept == pytest.approx(300, rel=0.05)


def test_where_no_rate_is_kept_the_search_ends() -> None:
    search, tried = searched(1024, 0.05, lambda rate: False)

    assert (search.kept, search.broken, min(tried)) == (None, 1.0, 1.0)


def operation(**knobs: Any) -> Saturation:
    usual = {"slo_p99_ms": 40.0, "start_rate": 50.0, "step_s": 2.0, "precision": 0.02, "warmup": 0}
    return Saturation(name="saturation", size_bytes=None, **{**usual, **knobs})


def load(connections: int, rate: float = 50.0) -> ConstantLoad:
    return ConstantLoad(
        name="constant",
        arrival="constant",
        rate=rate,
        connections=connections,
        duration_s=None,
        max_in_flight=10_000,
        multiplex=False,
        placement="auto",
    )


def measured(service: Slow, connections: int, run_s: float = 1_000, **knobs: Any) -> tuple[Drive, Summary]:
    limits = Limits(**{**LIMITS.__dict__, "run_s": run_s})
    drive = Drive(
        peers=[service] * connections,
        codec=CODECS["json"](),
        load=load(connections),
        limits=limits,
        gate=OpenGate(),
        clock=clock,
        timer=VirtualTimer(),
    )
    virtually(operation(**knobs).drive(drive))
    return drive, operation(**knobs).summarize(drive.raw, drive.codec, {})


@pytest.mark.parametrize(("connections", "takes_s"), [(1, 0.01), (4, 0.02), (16, 0.03)])
def test_the_limit_that_connections_and_service_time_set_is_found_within_five_per_cent(
    connections: int, takes_s: float
) -> None:
    drive, summary = measured(Slow(lambda n: takes_s), connections)
    limit = connections / takes_s

    assert summary.void == []
    assert values(summary)["sustained_per_s"] == pytest.approx(limit, rel=0.05)
    assert values(summary)["broken_per_s"] > values(summary)["sustained_per_s"]
    assert values(summary)["response_p99_us"] <= 40_000
    assert values(summary)["p50_us"] == pytest.approx(takes_s * 1e6)
    assert drive.over  # the supervisor need not look any more


def test_the_curve_has_a_point_for_each_step() -> None:
    _, summary = measured(Slow(lambda n: 0.01), 2)
    steps = int(values(summary)["steps"])
    rates = [rate for _, rate in summary.series["step_rate_per_s"]]
    kept = [flag for _, flag in summary.series["step_kept"]]

    assert {name: len(summary.series[name]) for name in STEP} == dict.fromkeys(STEP, steps)
    assert rates[:4] == [50, 100, 200, 400]
    assert kept[:4] == [1, 1, 1, 0]
    assert max(rate for rate, flag in zip(rates, kept, strict=True) if flag) == values(summary)["sustained_per_s"]
    assert [t for t, _ in summary.series["step_response_p99_us"]] == sorted(
        t for t, _ in summary.series["step_response_p99_us"]
    )


def test_errors_break_an_objective_that_time_alone_would_keep() -> None:
    def fail(n: int) -> Any:
        return CallFailed("resource_exhausted", "full") if n > 300 and not n % 10 else None

    drive, summary = measured(Slow(lambda n: 0.001, fail), 4)

    assert values(summary)["sustained_per_s"] < 200  # it would be 4,000
    assert values(summary)["errors"] == 0  # of the rate that was kept
    assert drive.raw.errors == {}


def test_where_nothing_is_kept_the_run_is_void_and_says_so() -> None:
    _, summary = measured(Slow(lambda n: 0.05), 4)

    assert summary.void == ["no rate kept p99 at 40 ms or less, down to 0.0488281 calls/s"]
    assert "sustained_per_s" not in values(summary)


def test_a_search_that_runs_out_of_time_is_void_and_says_so() -> None:
    _, summary = measured(Slow(lambda n: 0.01), 4, run_s=7)

    assert summary.void == ["the search did not end within limits.run_s (7 s)"]
    assert values(summary)["sustained_per_s"] == 100


def test_a_lost_connection_ends_the_search_and_releases_the_supervisor() -> None:
    drive = Drive(
        peers=[Slow(lambda n: 0.01, {30: ConnectionLost("gone")}.get)],
        codec=CODECS["json"](),
        load=load(1),
        limits=LIMITS,
        gate=OpenGate(),
        clock=clock,
        timer=VirtualTimer(),
    )
    with pytest.raises(ConnectionLost):
        virtually(operation(step_s=0.9).drive(drive))
    assert drive.over


@pytest.mark.parametrize(
    ("used", "shared", "side"),
    [
        ({"server": 99.0, "driver": 60.0}, False, "server"),
        ({"server": 70.0, "driver": 95.0}, False, "driver"),
        ({"server": 70.0, "driver": 60.0}, False, "neither"),
        ({"server": 60.0, "driver": 39.0}, True, "server"),
        ({"server": 40.0, "driver": 30.0}, True, "neither"),
        ({}, False, "neither"),
    ],
)
def test_the_limiting_side_is_the_one_that_used_up_its_core(
    used: dict[str, float], shared: bool, side: str
) -> None:
    assert limiting_side(used, shared=shared) == side


def test_the_cpu_of_a_step_is_read_from_the_looks_around_it() -> None:
    second = 1_000_000_000
    raw = Raw(facts={"arrival": "constant", "timer": "virtual"})
    raw.series = {
        "step_rate_per_s": [(second, 100.0), (3 * second, 200.0)],
        "step_kept": [(second, 1), (3 * second, 0)],
        "step_seconds": [(second, 1.0), (3 * second, 1.0)],
        "sustained": [(0, 100.0)],
        # Looked at between the steps' ends: 20 % of a core until 2.5 s, all of it from then on.
        "server_cpu_ns": [(0, 0), (5 * second // 2, second // 2), (9 * second // 2, 5 * second // 2)],
        "driver_cpu_ns": [(0, 0), (5 * second, second)],
    }
    summary = operation().summarize(raw, CODECS["json"](), {})

    assert summary.series["step_server_cpu_pct"] == [(second, 20.0), (3 * second, 100.0)]
    assert summary.series["step_driver_cpu_pct"] == [(second, 20.0), (3 * second, 20.0)]
    assert summary.findings["saturated"] == "server"
    assert values(summary)["server_cpu_pct"] == 100.0


STEPS = [  # rate, kept, server's and driver's share of a CPU
    (100.0, 1, 40.0, 30.0),
    (200.0, 0, 75.0, 60.0),  # once, and kept when it was tried again
    (200.0, 1, 70.0, 60.0),
    (400.0, 0, 99.0, 80.0),
    (400.0, 0, 97.0, 81.0),
    (300.0, 0, 88.0, 70.0),  # the objective breaks by waits, before a CPU is used up
    (300.0, 0, 86.0, 71.0),
]


@pytest.mark.parametrize(
    ("steps", "side", "at", "server_pct"),
    [
        (STEPS, "server", 400.0, 99.0),
        ([*STEPS[:3], *STEPS[5:]], "neither", None, 88.0),
        (STEPS[:1], "neither", None, None),
    ],
)
def test_the_limit_is_the_side_that_used_up_its_cpu_first_as_the_rate_rose_beyond(
    steps: list[tuple[float, int, float, float]], side: str, at: float | None, server_pct: float | None
) -> None:
    second = 1_000_000_000
    raw = Raw(facts={"arrival": "constant", "timer": "virtual"}, series={"sustained": [(0, 200.0)]})
    spent = {"server": 0.0, "driver": 0.0}
    for i, (rate, kept, *shares) in enumerate(steps):
        for name, value in (("rate_per_s", rate), ("kept", kept), ("seconds", 1.0)):
            raw.series.setdefault(f"step_{name}", []).append((i * second, value))
        for process, share in zip(spent, shares, strict=True):
            raw.series.setdefault(f"{process}_cpu_ns", []).append((i * second, spent[process]))
            spent[process] += share / 100 * second
    for process, total in spent.items():
        raw.series[f"{process}_cpu_ns"].append((len(steps) * second, total))
    summary = operation().summarize(raw, CODECS["json"](), {})

    assert summary.findings["saturated"] == side
    assert values(summary).get("saturated_at_per_s") == at
    assert values(summary).get("server_cpu_pct") == (None if server_pct is None else pytest.approx(server_pct))


def wanted(protocol: str, load_: dict[str, Any], **knobs: Any) -> dict[str, Any]:
    composed = config("request_response", protocol)
    composed["operation"] = option("operation", "saturation", **knobs)
    composed["load"] = {**option("load", "constant"), "rate": composed["operation"]["start_rate"], **load_}
    return composed


@pytest.mark.parametrize(
    ("load_", "said"),
    [
        ({"rate": 7}, "load.rate: saturation looks for it; say where to begin with operation.start_rate"),
        ({"duration_s": 7}, "load.duration_s: saturation tries one rate after the other; set operation.step_s"),
        (
            {"max_in_flight": 2, "connections": 4},
            "load.max_in_flight: 2 is less than load.connections (4); raise it",
        ),
    ],
)
def test_keys_that_the_search_decides_are_refused(load_: dict[str, Any], said: str) -> None:
    assert check(wanted("tcp", load_)) == (None, [said])


def test_a_closed_loop_has_no_rate_to_search() -> None:
    composed = wanted("tcp", {})
    composed["load"] = option("load", "closed")

    assert check(composed) == (
        None,
        ["load.arrival: saturation needs an open loop; say load=constant or load=poisson"],
    )


@pytest.mark.parametrize(("work", "connections"), [("wait", 4), ("busy", 1)])
def test_on_a_real_wire_the_limit_of_a_known_service_time_is_found(work: str, connections: int) -> None:
    search = {"step_s": 1.0, "precision": 0.03, "warmup": 4, "slo_p99_ms": 150}
    service = {"service_time_ms": 50, "service_work": work}
    knobs = {"start_rate": 8 * connections, **search, **service}
    cell, problems = check(wanted("websocket", {"connections": connections}, **knobs))
    assert problems == []
    assert cell is not None
    record = engine.run(cell, sweep_id="S", repeat=0, position=0, overrides=[])

    assert (record.verdict, record.reason) == ("ok", "")
    service_s = record.measurements["mean_us"][0] / 1e6  # as this machine keeps it: 50 ms and a little
    assert service_s >= 0.05
    assert record.measurements["sustained_per_s"][0] == pytest.approx(connections / service_s, rel=0.05)
    assert len(record.series["step_server_cpu_pct"]) == record.measurements["steps"][0]
    if work == "wait":
        assert record.findings["saturated"] == "neither"  # both sides only wait
    else:
        # The server is the busy one; that it had 90 % of a core is not for a test on a shared machine to say.
        assert record.findings["saturated"] in ("server", "neither")
        assert record.measurements["server_cpu_pct"][0] > record.measurements["driver_cpu_pct"][0]
