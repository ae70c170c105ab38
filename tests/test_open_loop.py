"""The open loop on a clock that only moves when everybody waits: exact numbers, no waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from adapters.api import CallFailed, ConnectionLost, Message, Method, Peer
from adapters.codecs import CODECS
from runner.drive import Drive, Stalled
from runner.driver import pack, unpack
from runner.fields import ConstantLoad, PoissonLoad
from runner.operations.api import Summary
from runner.operations.request_response import RequestResponse
from runner.quotes import quote
from runner.service import Service
from tests.drives import LIMITS, OpenGate
from tests.virtual_time import VirtualTimer, clock, virtually

MS = 1_000_000
US_PER_MS = 1_000.0


class Slow(Service):
    """`takes(n)` seconds for the n-th call, from 1; `fail(n)`: what it raises or answers instead."""

    def __init__(self, takes: Callable[[int], float], fail: Callable[[int], Any] = lambda n: None) -> None:
        super().__init__()
        self._takes, self._fail = takes, fail
        self.n = self.under_way = self.peak = 0

    async def unary(self, method: Method, request: Message) -> Message:
        self.n += 1
        n = self.n
        self.under_way += 1
        self.peak = max(self.peak, self.under_way)
        await asyncio.sleep(self._takes(n))
        self.under_way -= 1
        instead = self._fail(n)
        if isinstance(instead, Exception):
            raise instead
        return await super().unary(method, request) if instead is None else instead


def load(rate: float, connections: int = 1, **knobs: Any) -> ConstantLoad:
    usual = {"duration_s": None, "max_in_flight": 1_000, "multiplex": False, "placement": "auto"}
    return ConstantLoad(
        name="constant", arrival="constant", rate=rate, connections=connections, **{**usual, **knobs}
    )


def measured(
    service: Peer, how: ConstantLoad | PoissonLoad, count: int = 10, *, warmup: int = 0, late_ns: int = 0
) -> tuple[Drive, Summary]:
    operation = RequestResponse(name="request_response", count=count, warmup=warmup, size_bytes=None)
    peers = [service] if how.multiplex else [service] * how.connections
    drive = Drive(
        peers=peers,
        codec=CODECS["json"](),
        load=how,
        limits=LIMITS,
        gate=OpenGate(),
        clock=clock,
        timer=VirtualTimer(late_ns),
    )
    virtually(operation.drive(drive))
    return drive, operation.summarize(drive.raw, drive.codec, {"connections": how.connections})


def values(summary: Summary) -> dict[str, float]:
    return {name: value for name, (value, _) in summary.measurements.items()}


def ms(samples: list[int]) -> list[float]:
    return [round(sample / MS, 3) for sample in samples]


def test_an_idle_server_is_asked_at_the_rate_and_response_equals_service() -> None:
    drive, summary = measured(Slow(lambda n: 0.004), load(rate=100))
    found = values(summary)

    assert ms(drive.raw.samples["latency"]) == [4.0] * 10
    assert ms(drive.raw.samples["response"]) == [4.0] * 10
    assert ms(drive.raw.samples["schedule_delay"]) == [0.0] * 10
    for name in ("requested_per_s", "sent_per_s", "achieved_per_s"):
        assert found[name] == pytest.approx(100)
    assert (found["n"], found["errors"], found["dropped"]) == (10, 0, 0)
    assert summary.void == []
    assert "calls_per_s" not in found  # the closed loop's


def test_a_stall_is_in_every_call_that_was_due_meanwhile() -> None:
    # 100 calls/s on one connection; the third one takes half a second.
    drive, summary = measured(Slow(lambda n: 0.5 if n == 3 else 0.001), load(rate=100), count=60)

    assert ms(drive.raw.samples["latency"]) == [1.0, 1.0, 500.0, *[1.0] * 57]
    # The fourth was due 10 ms later, waited 490 and took 1; each further one gains 9 ms on it.
    assert ms(drive.raw.samples["response"])[2:6] == [500.0, 491.0, 482.0, 473.0]
    assert ms(drive.raw.samples["schedule_delay"]) == [0.0] * 60  # the driver was never late
    assert values(summary)["p50_us"] == pytest.approx(US_PER_MS)
    assert values(summary)["response_max_us"] == pytest.approx(500 * US_PER_MS)


def test_a_free_connection_takes_the_call_that_another_one_is_too_busy_for() -> None:
    service = Slow(lambda n: 0.5 if n == 3 else 0.001)
    drive, _ = measured(service, load(rate=100, connections=2), count=60)

    assert ms(drive.raw.samples["response"]) == [1.0, 1.0, 500.0, *[1.0] * 57]
    assert service.peak == 2


def test_multiplexed_calls_are_under_way_together_on_one_connection() -> None:
    service = Slow(lambda n: 0.035)
    drive, _ = measured(service, load(rate=100, connections=4, multiplex=True), count=20)

    assert len(drive.peers) == 1
    assert service.peak == 4
    assert ms(drive.raw.samples["response"]) == [35.0] * 20


def test_no_more_calls_are_under_way_than_there_are_connections() -> None:
    service = Slow(lambda n: 0.1)
    drive, _ = measured(service, load(rate=1000, connections=3), count=9)

    assert service.peak == 3
    assert ms(drive.raw.samples["response"]) == [100.0, 100.0, 100.0, 197.0, 197.0, 197.0, 294.0, 294.0, 294.0]


def test_beyond_max_in_flight_calls_are_dropped_counted_and_make_the_run_void() -> None:
    # Each takes 1 s, one is due every 100 ms: two are in the system until the first is answered, then a third.
    service = Slow(lambda n: 1.0)
    _, summary = measured(service, load(rate=10, max_in_flight=2), count=12)
    found = values(summary)

    assert service.n == found["n"] == 3
    assert found["dropped"] == 9
    assert found["n"] + found["errors"] + found["dropped"] == 12
    assert "9 of 12 calls were dropped (75.0%; over 1 % is void)" in summary.void


def test_a_rate_that_is_not_reached_is_void_with_both_numbers() -> None:
    _, summary = measured(Slow(lambda n: 0.02), load(rate=100), count=50)

    assert values(summary)["requested_per_s"] == pytest.approx(100)
    assert values(summary)["achieved_per_s"] == pytest.approx(50)
    assert summary.void == ["50 of 100 calls/s requested were achieved (50.0%; below 95 % is void)"]


def test_the_drivers_own_lateness_is_in_the_response_time_and_void_when_it_is_most_of_it() -> None:
    drive, summary = measured(Slow(lambda n: 0.001), load(rate=100), count=100, late_ns=3 * MS)

    assert ms(drive.raw.samples["schedule_delay"]) == [3.0] * 100
    assert ms(drive.raw.samples["response"]) == [4.0] * 100
    assert values(summary)["schedule_delay_p99_us"] == pytest.approx(3 * US_PER_MS)
    assert (
        "the driver was late with its calls: schedule delay p99 3 ms, response time p99 4 ms "
        "(over 1 ms and over half of it is void)"
    ) in summary.void


def test_lateness_below_a_millisecond_is_not_void() -> None:
    _, summary = measured(Slow(lambda n: 0.0001), load(rate=100), count=100, late_ns=900_000)

    assert summary.void == []


def test_littles_law_catches_time_that_no_call_accounts_for() -> None:
    drive, summary = measured(Slow(lambda n: 0.02), load(rate=100, connections=4), count=200)
    assert summary.void == []
    assert drive.raw.counts["in_system_ns"] == pytest.approx(sum(drive.raw.samples["response"]))

    drive.raw.counts["in_system_ns"] *= 2
    operation = RequestResponse(name="request_response", count=200, warmup=0, size_bytes=None)
    [reason] = operation.summarize(drive.raw, drive.codec, {}).void
    assert reason == "3.98 calls were in flight, rate x mean response time is 1.99 (Little's law, within 10 %)"


def test_a_late_driver_is_not_held_to_littles_law_as_well() -> None:
    drive, summary = measured(Slow(lambda n: 0.02), load(rate=100, connections=4), count=200, late_ns=5 * MS)

    assert ms(drive.raw.samples["response"]) == [25.0] * 200
    assert drive.raw.counts["in_system_ns"] == pytest.approx(200 * 20 * MS)  # without the 5 ms
    assert summary.void == []


def test_errors_are_counted_by_kind_and_are_in_no_time() -> None:
    failures = {2: CallFailed("resource_exhausted", "full"), 5: quote("AAPL", 1)}
    drive, summary = measured(Slow(lambda n: 0.001, failures.get), load(rate=100), count=10)

    assert drive.raw.errors == {"resource_exhausted": 1, "wrong_answer": 1}
    assert (values(summary)["n"], values(summary)["errors"]) == (8, 2)
    assert len(drive.raw.samples["response"]) == len(drive.raw.samples["latency"]) == 8
    assert summary.void[0] == "2 of 10 failed (20.0%; over 1 % is void)"


def test_when_all_calls_fail_there_is_no_latency_at_all() -> None:
    _, summary = measured(Slow(lambda n: 0.0, lambda n: CallFailed("internal", "no")), load(rate=100))

    assert {"p50_us", "response_p50_us", "achieved_per_s"}.isdisjoint(values(summary))
    assert (values(summary)["n"], values(summary)["errors"]) == (0, 10)


def test_a_lost_connection_ends_the_run() -> None:
    with pytest.raises(ConnectionLost):
        measured(Slow(lambda n: 0.0, {3: ConnectionLost("gone")}.get), load(rate=100))


def test_a_call_that_is_never_answered_is_given_up() -> None:
    with pytest.raises(Stalled, match=r"no progress for 5 s, after 2 of the messages"):
        measured(Slow(lambda n: 1e6 if n == 3 else 0.0), load(rate=100))


def test_a_rate_so_low_that_nothing_happens_for_longer_than_a_call_may_take_is_honoured() -> None:
    drive, summary = measured(Slow(lambda n: 0.001), load(rate=0.05, connections=4), count=3)  # call_s is 5

    assert ms(drive.raw.samples["response"]) == [1.0] * 3
    assert values(summary)["requested_per_s"] == pytest.approx(0.05)
    assert values(summary)["sent_per_s"] == pytest.approx(0.05)


def test_warm_up_calls_are_made_before_and_are_in_no_statistic() -> None:
    service = Slow(lambda n: 0.5 if n <= 3 else 0.001)
    drive, _ = measured(service, load(rate=100), count=10, warmup=3)

    assert service.n == 13
    assert max(drive.raw.samples["response"]) < 2 * MS


def test_a_duration_decides_how_many_calls_there_are() -> None:
    service = Slow(lambda n: 0.001)
    measured(service, load(rate=100, duration_s=0.5), count=7)

    assert service.n == 50


def test_poisson_calls_are_sent_when_they_are_due() -> None:
    how = PoissonLoad(
        name="poisson",
        arrival="poisson",
        connections=1,
        multiplex=False,
        placement="auto",
        rate=100,
        duration_s=None,
        max_in_flight=100,
        seed=7,
    )
    drive, summary = measured(Slow(lambda n: 0.001), how, count=200)

    assert ms(drive.raw.samples["schedule_delay"]) == [0.0] * 200
    assert set(ms(drive.raw.samples["latency"])) == {1.0}
    assert max(drive.raw.samples["response"]) > 1.5 * MS  # some come while another is under way
    assert values(summary)["sent_per_s"] == pytest.approx(values(summary)["requested_per_s"], rel=0.01)


def test_no_calls_at_all_are_too_few_and_no_crash() -> None:
    how = PoissonLoad(
        name="poisson",
        arrival="poisson",
        connections=1,
        multiplex=False,
        placement="auto",
        rate=0.001,
        duration_s=0.1,
        max_in_flight=100,
        seed=7,
    )
    _, summary = measured(Slow(lambda n: 0.001), how)

    assert values(summary) == {"n": 0, "errors": 0, "dropped": 0}
    assert summary.void == ["too few samples: 0; from 10 on, a run counts"]


def test_a_driver_that_used_up_its_core_is_void_unless_it_had_to_spin() -> None:
    drive, _ = measured(Slow(lambda n: 0.001), load(rate=100), count=100)
    drive.raw.usage["driver"] = {"cpu_ns": round(0.95 * drive.raw.window_ns)}
    operation = RequestResponse(name="request_response", count=100, warmup=0, size_bytes=None)

    assert operation.summarize(drive.raw, drive.codec, {}).void == ["driver CPU 95 % (over 90 % is void)"]
    drive.raw.facts["timer"] = "spin"
    assert operation.summarize(drive.raw, drive.codec, {}).void == []


def test_equal_stamps_give_no_rate_and_no_crash() -> None:
    drive, _ = measured(Slow(lambda n: 0.001), load(rate=100), count=20)
    raw = drive.raw
    raw.samples |= {name: [0] * 20 for name in ("latency", "response", "schedule_delay")}
    raw.counts |= {name: 0 for name in raw.counts if name.endswith("_ns")}
    raw.window_ns = 0
    summary = RequestResponse(name="request_response", count=20, warmup=0, size_bytes=None).summarize(
        raw, drive.codec, {}
    )

    assert {"requested_per_s", "sent_per_s", "achieved_per_s"}.isdisjoint(values(summary))
    assert (values(summary)["response_p50_us"], summary.void) == (0, [])


def test_of_very_many_calls_that_are_counted_by_value_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    drive, few = measured(Slow(lambda n: 0.004), load(rate=100), count=1_000)
    monkeypatch.setattr("runner.driver.FOLD_FROM", 50)
    raw = unpack(pack(drive.raw, 10))
    operation = RequestResponse(name="request_response", count=1_000, warmup=0, size_bytes=None)
    many = operation.summarize(raw, drive.codec, {"connections": 1})

    assert set(raw.folded) == {"latency", "response", "schedule_delay"}
    assert raw.samples == {}
    assert many.void == few.void == []
    assert values(many) == {name: pytest.approx(value, rel=0.001) for name, value in values(few).items()}
    assert [check.name for check in many.checks] == [check.name for check in few.checks]
