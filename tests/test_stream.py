"""The stream operation over a peer that is called directly, with exact numbers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable
from typing import Any

import pytest

from adapters.api import CallFailed, ConnectionLost, Message, Method
from runner.driver import pack, unpack
from runner.operations.stream import CREDIT, Stream
from runner.operations.taken import Held
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


async def test_of_very_many_messages_the_gaps_are_counted_by_value(monkeypatch: pytest.MonkeyPatch) -> None:
    drive, few = await run_over(operation(), [Service()])
    monkeypatch.setattr("runner.driver.FOLD_FROM", 50)
    raw = unpack(pack(drive.raw, 10))
    many = operation().summarize(raw, drive.codec, {"connections": 1})

    assert set(raw.folded) == {"gap"}
    assert many.measurements["gap_p99_us"] == few.measurements["gap_p99_us"] == (1.0, "us")


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
    monkeypatch.setattr("runner.operations.taken._verify", lambda *_: steps.append("verified"))
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

    monkeypatch.setattr("runner.operations.taken.slots", slow_slots)
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


class Turns(Service):
    """A service whose streams take turns: every item is followed by a turn of the event loop."""

    def server_stream(self, method: Method, request: Message) -> AsyncGenerator[Message, None]:
        return self._slowly(super().server_stream(method, request))

    async def _slowly(self, stream: AsyncGenerator[Message, None]) -> AsyncGenerator[Message, None]:
        async for item in stream:
            yield item
            await asyncio.sleep(0)


async def test_messages_are_shared_out_between_the_streams() -> None:
    services = [Service(), Service(), Service()]
    drive, summary = await run_over(operation(count=200, warmup=0, streams=3), services)

    assert [service.produced for service in services] == [67, 67, 66]
    assert drive.raw.errors == {}
    assert drive.consumed == 3 * 64
    assert summary.measurements["messages"] == (200, "messages")
    assert summary.measurements["payload_bytes"][0] == pytest.approx(
        sum(len(drive.codec.encode(quote("AAPL", seq))) for n in (67, 67, 66) for seq in range(n)) / 200
    )


@pytest.mark.parametrize("consumer", ["pull", "eager"])
@pytest.mark.parametrize("producer", [*PRODUCERS, "paged"])
async def test_every_style_runs_several_streams_on_one_connection(producer: str, consumer: str) -> None:
    service = Service(producer="awaited" if producer == "paged" else producer)
    asked = operation(producer=producer, consumer=consumer, count=3 * CREDIT + 17, streams=4, page=100)
    drive, summary = await run_over(asked, [service], multiplex=True)

    assert drive.raw.errors == {}
    assert summary.void == []
    assert summary.measurements["messages"] == (3 * CREDIT + 17, "messages")


async def test_times_of_several_streams_are_those_of_all_and_of_each() -> None:
    """Two streams take turns on a clock that ticks once per look: asked at 1 and 2, messages at 3, 4, 5, ..."""
    drive, summary = await run_over(operation(count=20, warmup=0, streams=2), [Turns()], multiplex=True)

    assert drive.raw.samples["gap"] == [2_000] * 18  # of each stream, not of the two mixed
    assert {name: value for name, (value, _) in summary.measurements.items() if name.endswith("_ms")} == {
        "first_ms": pytest.approx(0.002),
        "first_max_ms": pytest.approx(0.002),
        "fastest_ms": pytest.approx(0.020),
        "slowest_ms": pytest.approx(0.020),
    }
    assert summary.measurements["seconds"] == (pytest.approx(21e-6), "s")


async def test_a_stream_that_fails_is_counted_and_the_others_go_on() -> None:
    drive, summary = await run_over(operation(count=400, warmup=0, streams=2), [Bent(failing), Service()])

    assert drive.raw.errors == {"internal": 1, "missing_message": 100}
    assert summary.measurements["messages"] == (300, "messages")
    assert summary.void != []


async def test_a_lost_connection_ends_the_other_streams_too() -> None:
    async def lost(stream: AsyncIterable[Message]) -> AsyncGenerator[Message, None]:
        async for item in stream:
            if item.seq == 5:
                raise ConnectionLost("gone")
            yield item

    with pytest.raises(ConnectionLost):
        await run_over(operation(count=400, warmup=0, streams=2), [Bent(lost), Turns()])


async def test_what_is_held_is_the_sum_over_streams_at_one_time() -> None:
    held = Held()
    held.saw((1, 10), (2, 3))
    held.saw((1, 4))
    held.saw((3, 5), (2, 3))

    assert held.most == 13
    held.saw((1, 6))
    assert held.most == 14


@pytest.mark.parametrize(
    ("knobs", "said"),
    [
        ({"count": 3, "streams": 3, "warmup": 0}, []),
        (
            {"count": 3, "streams": 4, "warmup": 0},
            ["count: 3 cannot be shared out between 4 streams; raise it, or lower operation.streams"],
        ),
        (
            {"count": 40, "streams": 4, "warmup": 2},
            ["warmup: 2 cannot be shared out between 4 streams; raise it, or lower operation.streams"],
        ),
    ],
)
def test_every_stream_needs_a_message(knobs: dict[str, Any], said: list[str]) -> None:
    assert operation(**knobs).problems() == said
