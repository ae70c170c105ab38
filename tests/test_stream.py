"""The stream operation over a peer that is called directly, with exact numbers."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable
from typing import Any

import pytest

from adapters.api import CallFailed, Message, Method
from runner.operations.stream import CREDIT, Stream
from runner.quotes import quote
from runner.samples import slots
from runner.service import PRODUCERS, Service
from tests.drives import OpenGate, drive_over, run_over


def operation(**knobs: Any) -> Stream:
    return Stream(
        **{
            "name": "stream",
            "count": 200,
            "warmup": 70,
            "consumer": "pull",
            "producer": "awaited",
            "page": 1000,
            **knobs,
        }
    )


class Bent(Service):
    """A service whose streams pass through `bend`."""

    def __init__(self, bend: Any, **knobs: Any) -> None:
        super().__init__(**knobs)
        self._bend = bend

    def server_stream(self, method: Method, request: Message) -> AsyncGenerator[Message, None]:
        return self._bend(super().server_stream(method, request))  # type: ignore[no-any-return]


@pytest.mark.parametrize("consumer", ["pull", "eager"])
@pytest.mark.parametrize("producer", PRODUCERS)
async def test_every_style_takes_exactly_what_was_asked_for(producer: str, consumer: str) -> None:
    count = 3 * CREDIT + 17
    service = Service(producer=producer)
    drive, summary = await run_over(operation(producer=producer, consumer=consumer, count=count), [service])

    assert drive.raw.errors == {}
    assert summary.void == []
    assert summary.measurements["messages"] == (count, "messages")
    assert summary.findings["producer"] == producer
    assert summary.findings["consumer"] == consumer


async def test_times_of_a_stream_on_a_clock_that_ticks_once_per_message() -> None:
    drive, summary = await run_over(operation(), [Service()])

    assert drive.raw.samples["gap"] == [1_000] * 199
    assert summary.measurements["seconds"] == (pytest.approx(200e-6), "s")
    assert summary.measurements["messages_per_s"] == (pytest.approx(1e6), "1/s")
    assert summary.measurements["us_per_message"] == (pytest.approx(1.0), "us")
    assert summary.measurements["first_ms"] == (pytest.approx(0.001), "ms")
    assert summary.measurements["gap_p99_us"] == (1.0, "us")


async def test_a_gap_percentile_needs_a_hundred_gaps() -> None:
    _, summary = await run_over(operation(count=100), [Service()])

    assert "gap_p99_us" not in summary.measurements


async def cut(stream: AsyncIterable[Message]) -> AsyncGenerator[Message, None]:
    async for item in stream:
        if item.seq == 150:
            return
        yield item


async def doubled(stream: AsyncIterable[Message]) -> AsyncGenerator[Message, None]:
    async for item in stream:
        yield item
        if item.seq == 199:
            yield item


async def swapped(stream: AsyncIterable[Message]) -> AsyncGenerator[Message, None]:
    async for item in stream:
        yield quote("AAPL", {10: 11, 11: 10}.get(item.seq, item.seq))


async def altered(stream: AsyncIterable[Message]) -> AsyncGenerator[Message, None]:
    async for item in stream:
        yield quote("MSFT", item.seq) if item.seq == 5 else item


async def failing(stream: AsyncIterable[Message]) -> AsyncGenerator[Message, None]:
    async for item in stream:
        if item.seq == 100:
            raise CallFailed("internal", "no more")
        yield item


@pytest.mark.parametrize("consumer", ["pull", "eager"])
@pytest.mark.parametrize(
    ("bend", "errors"),
    [
        (cut, {"missing_message": 50}),
        (doubled, {"surplus_message": 1}),
        (swapped, {"wrong_message": 2}),
        (altered, {"wrong_message": 1}),
        (failing, {"internal": 1, "missing_message": 100}),
    ],
)
async def test_what_is_missing_doubled_out_of_order_or_altered_is_an_error(
    bend: Any, errors: dict[str, int], consumer: str
) -> None:
    drive, _ = await run_over(operation(warmup=0, consumer=consumer), [Bent(bend)])

    assert drive.raw.errors == errors


async def test_a_short_stream_is_void_however_fast_it_was() -> None:
    _, summary = await run_over(operation(warmup=0), [Bent(cut)])

    assert summary.void == [
        "50 of 200 failed (25.0%; over 1 % is void)",
        "150 messages arrived, 200 were asked for",
    ]


async def test_an_eager_client_is_seen_to_hold_what_the_application_has_not_taken() -> None:
    _, summary = await run_over(operation(consumer="eager"), [Service()])

    held, unit = summary.measurements["client_held_max"]
    assert unit == "messages"
    assert 1 <= held <= 200


async def test_a_library_that_hides_its_queue_leaves_a_gap_not_a_zero() -> None:
    _, summary = await run_over(operation(), [Service()])

    assert "client_held_max" not in summary.measurements


async def test_the_cpu_clock_is_read_before_what_arrived_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    gate = OpenGate()
    monkeypatch.setattr(gate, "closed", lambda: steps.append("closed"))
    monkeypatch.setattr("runner.operations.stream._verify", lambda *_: steps.append("verified"))
    await run_over(operation(warmup=0), [Service()], gate=gate)

    assert steps == ["closed", "verified"]


async def test_the_time_to_the_first_message_has_none_of_our_own_preparation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Allocating the stamps takes a thousand ticks here; the first message still comes one tick later."""
    drive = drive_over([Service()])

    def slow_slots(count: int) -> Any:
        for _ in range(1000):
            drive.clock()
        return slots(count)

    monkeypatch.setattr("runner.operations.stream.slots", slow_slots)
    await operation(warmup=0).drive(drive)

    assert drive.raw.counts["first_ns"] == 1_000


@pytest.mark.parametrize(("server", "driver", "bound"), [(50, 20, "server"), (20, 50, "driver")])
async def test_the_busier_side_is_named(server: int, driver: int, bound: str) -> None:
    run, _ = await run_over(operation(), [Service()])
    run.raw.usage = {"server": {"cpu_ns": server * 200_000}, "driver": {"cpu_ns": driver * 200_000}}
    summary = operation().summarize(run.raw, run.codec, {})

    assert summary.findings["bound"] == bound
    assert summary.measurements["server_cpu_us"] == (server, "us")
    assert summary.measurements["driver_cpu_us"] == (driver, "us")
