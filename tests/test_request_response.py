"""The closed loop, with exact numbers: the clock ticks 1 µs per look, so that every call takes 1 µs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from adapters.api import CallFailed, ConnectionLost, Malformed, Message, Method
from adapters.codecs import Json
from adapters.messages import Body, QuoteRequest
from runner.drive import Stalled
from runner.operations.request_response import RequestResponse
from runner.quotes import quote
from runner.service import Service
from tests import virtual_time
from tests.drives import LIMITS, OpenGate, drive_over, run_over


def operation(**knobs: Any) -> RequestResponse:
    return RequestResponse(**{"name": "request_response", "count": 10, "warmup": 3, "size_bytes": None, **knobs})


class Counting(Service):
    """Counts calls; `fail(n)` says what call n raises or answers instead, if anything."""

    def __init__(self, fail: Any = lambda n: None) -> None:
        super().__init__()
        self.calls: list[Message] = []
        self.in_flight = self.peak = 0
        self._fail = fail

    async def unary(self, method: Method, request: Message) -> Message:
        self.calls.append(request)
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        await asyncio.sleep(0)
        self.in_flight -= 1
        instead = self._fail(len(self.calls))
        if isinstance(instead, Exception):
            raise instead
        return await super().unary(method, request) if instead is None else instead


async def test_every_call_is_counted_and_timed() -> None:
    service = Counting()
    drive, summary = await run_over(operation(), [service])

    assert len(service.calls) == 13  # 3 to warm up, 10 that count
    assert drive.raw.samples["latency"] == [1_000] * 10
    assert drive.raw.window_ns == 21_000  # 20 looks of 10 calls, and the closing one
    assert summary.measurements == {
        "p50_us": (1.0, "us"),
        "p75_us": (1.0, "us"),
        "p90_us": (1.0, "us"),
        "mean_us": (1.0, "us"),
        "max_us": (1.0, "us"),
        "payload_bytes": (sum(len(Json().encode(quote("AAPL", seq))) for seq in range(42, 100)) / 58, "bytes"),
        "n": (10, "calls"),
        "errors": (0, "calls"),
        "calls_per_s": (pytest.approx(10 / 21e-6), "1/s"),
    }


async def test_calls_ask_for_different_quotes_so_that_a_late_answer_is_noticed() -> None:
    service = Counting()
    await run_over(operation(warmup=0, count=3), [service])

    assert service.calls == [QuoteRequest("AAPL", 42), QuoteRequest("AAPL", 43), QuoteRequest("AAPL", 44)]


@pytest.mark.parametrize("connections", [1, 3, 25])
async def test_seven_calls_are_seven_whatever_the_number_of_connections(connections: int) -> None:
    service = Counting()
    _, summary = await run_over(operation(count=7, warmup=0), [service] * connections)

    assert len(service.calls) == 7
    assert service.peak == min(7, connections)
    assert summary.measurements["n"] == (7, "calls")


async def test_multiplexed_calls_share_one_connection() -> None:
    one, two = Counting(), Counting()
    drive = drive_over([one, two], multiplex=True)
    await operation(count=8, warmup=0).drive(drive)

    assert (len(one.calls), len(two.calls)) == (8, 0)
    assert one.peak == 2


async def test_errors_are_counted_by_kind_and_are_in_no_latency() -> None:
    failures = {2: CallFailed("resource_exhausted", "full"), 5: Malformed("cut"), 6: Malformed("cut")}
    drive, summary = await run_over(operation(count=10, warmup=0), [Counting(failures.get)])

    assert drive.raw.errors == {"resource_exhausted": 1, "malformed": 2}
    assert len(drive.raw.samples["latency"]) == 7
    assert summary.measurements["n"] == (7, "calls")
    assert summary.measurements["errors"] == (3, "calls")
    assert summary.void == ["3 of 10 failed (30.0%; over 1 % is void)"]


async def test_a_wrong_answer_is_an_error_not_a_fast_sample() -> None:
    drive, summary = await run_over(operation(count=200, warmup=0), [Counting({7: quote("AAPL", 1)}.get)])

    assert drive.raw.errors == {"wrong_answer": 1}
    assert summary.measurements["n"] == (199, "calls")
    assert summary.void == []  # half a percent


async def test_an_echo_that_comes_back_a_byte_short_is_an_error() -> None:
    _, summary = await run_over(
        operation(count=1, warmup=0, size_bytes=10), [Counting(lambda n: Body(bytes(range(9))))]
    )

    assert summary.measurements["errors"] == (1, "calls")
    assert summary.measurements["n"] == (0, "calls")
    assert "p50_us" not in summary.measurements
    assert "calls_per_s" not in summary.measurements


@pytest.mark.parametrize("size", [0, 1, 255, 256, 70_000])
async def test_echo_sends_bodies_of_the_size_asked_for(size: int) -> None:
    service = Counting()
    _, summary = await run_over(operation(count=4, warmup=0, size_bytes=size), [service])

    assert [len(call.data) for call in service.calls] == [size] * 4
    assert summary.measurements["size_bytes"] == (size, "bytes")
    assert summary.measurements["errors"] == (0, "calls")


def test_calls_that_fail_fast_are_in_no_percentile_of_those_that_were_answered() -> None:
    """Three of four fail after 1 ms, the fourth is answered after 50 ms."""

    class Faulty(Service):
        made = 0

        async def unary(self, method: Method, request: Message) -> Message:
            self.made += 1
            good = not self.made % 4
            await asyncio.sleep(0.05 if good else 0.001)
            if not good:
                raise CallFailed("resource_exhausted", "too many")
            return await super().unary(method, request)

    drive = drive_over([Faulty()])
    drive.clock = virtual_time.clock
    virtual_time.virtually(operation(count=100, warmup=0).drive(drive))
    summary = operation(count=100).summarize(drive.raw, drive.codec, {"connections": 1})

    assert {name: summary.measurements[name][0] for name in ("p50_us", "p90_us", "mean_us", "max_us")} == {
        "p50_us": 50_000,
        "p90_us": 50_000,
        "mean_us": 50_000,
        "max_us": 50_000,
    }
    assert (summary.measurements["n"][0], summary.measurements["errors"][0]) == (25, 75)
    assert drive.raw.errors == {"resource_exhausted": 75}
    assert summary.void == ["75 of 100 failed (75.0%; over 1 % is void)"]


async def test_when_all_calls_fail_there_is_no_latency_at_all() -> None:
    drive, summary = await run_over(operation(warmup=0), [Counting(lambda n: CallFailed("internal", "no"))])

    assert drive.raw.errors == {"internal": 10}
    assert set(summary.measurements) == {"n", "errors"}
    assert summary.void == ["10 of 10 failed (100.0%; over 1 % is void)"]


async def test_failures_of_the_warm_up_do_not_count() -> None:
    drive, _ = await run_over(operation(warmup=3), [Counting({2: CallFailed("internal", "cold")}.get)])

    assert drive.raw.errors == {}


async def test_a_lost_connection_ends_the_run() -> None:
    with pytest.raises(ConnectionLost):
        await run_over(operation(warmup=0), [Counting({3: ConnectionLost("gone")}.get)])


async def test_a_call_that_never_ends_is_given_up() -> None:
    class Silent(Service):
        async def unary(self, method: Method, request: Message) -> Message:
            await asyncio.Event().wait()

    drive = drive_over([Silent()])
    drive.limits = LIMITS.__class__(**{**LIMITS.__dict__, "call_s": 0.01})
    with pytest.raises(Stalled, match=r"no progress for 0\.01 s"):
        await operation(warmup=0).drive(drive)


async def test_littles_law_catches_time_that_no_call_accounts_for() -> None:
    drive, _ = await run_over(operation(warmup=0, count=100), [Counting()])
    drive.raw.window_ns *= 10

    summary = operation(count=100).summarize(drive.raw, drive.codec, {"connections": 1})
    assert summary.void == ["rate x mean latency is 0.05, 1 expected (Little's law, within 10 %)"]


async def test_equal_stamps_give_no_rate_and_no_crash() -> None:
    drive = drive_over([Counting()])
    drive.clock = lambda: 5
    await operation(warmup=0).drive(drive)
    summary = operation().summarize(drive.raw, drive.codec, {"connections": 1})

    assert "calls_per_s" not in summary.measurements
    assert summary.void == ["0 calls were counted, 10 were asked for"]


async def test_cpu_is_given_per_call() -> None:
    drive, _ = await run_over(operation(warmup=0), [Counting()])
    drive.raw.usage = {"server": {"cpu_ns": 50_000}, "driver": {"cpu_ns": 20_000}}
    found = operation().summarize(drive.raw, drive.codec, {"connections": 1}).measurements

    assert found["server_cpu_us"] == (5.0, "us")
    assert found["driver_cpu_us"] == (2.0, "us")


async def test_a_handful_of_calls_is_void() -> None:
    _, few = await run_over(operation(warmup=0, count=9), [Counting()])
    _, enough = await run_over(operation(warmup=0, count=10), [Counting()])

    assert few.void == ["too few samples: 9; from 10 on, a run counts"]
    assert enough.void == []


async def test_the_window_opens_after_the_warm_up_and_closes_once() -> None:
    gate = OpenGate()
    await run_over(operation(), [Counting()], gate=gate)

    assert gate.steps == ["ready", "closed"]
