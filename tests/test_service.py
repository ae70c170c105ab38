"""What every server does, called directly: the producers are the same for every protocol."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from adapters.api import CallFailed, Method, Shape
from adapters.messages import (
    METHODS,
    Body,
    Credit,
    Empty,
    Produced,
    Quote,
    QuoteRequest,
    RunInfo,
    StreamRequest,
    SymbolRequest,
)
from runner.quotes import quote
from runner.service import PRODUCERS, Service, WorkingService, service_of
from tests.cells import cell


async def take(stream: AsyncGenerator[Quote, None], n: int) -> list[Quote]:
    return [await anext(stream) for _ in range(n)]


async def turns(n: int = 200) -> None:
    """Let other tasks run, without waiting for time to pass."""
    for _ in range(n):
        await asyncio.sleep(0)


def test_the_published_quote() -> None:
    assert quote("AAPL", 42) == Quote("AAPL", 42, 100.42, 100.44, 1_772_000_000_000_000)


@pytest.mark.parametrize(("seq", "bid", "ask"), [(0, 100.0, 100.02), (999, 109.99, 110.01), (1000, 100.0, 100.02)])
def test_prices_follow_seq_in_whole_cents(seq: int, bid: float, ask: float) -> None:
    assert (quote("X", seq).bid, quote("X", seq).ask) == (bid, ask)


async def test_unary_methods_answer() -> None:
    service = Service(run="abc")

    assert await service.unary(METHODS["quote"], QuoteRequest("AAPL")) == quote("AAPL", 42)
    assert await service.unary(METHODS["quote"], QuoteRequest("AAPL", 7)) == quote("AAPL", 7)
    assert await service.unary(METHODS["echo"], Body(b"\0x")) == Body(b"\0x")
    assert await service.unary(METHODS["run"], Empty()) == RunInfo("abc")
    assert await service.unary(METHODS["produced"], Empty()) == Produced(0)


@pytest.mark.parametrize("producer", PRODUCERS)
async def test_a_counted_stream_is_whole_and_in_order(producer: str) -> None:
    service = Service(producer=producer)
    stream = service.server_stream(METHODS["quotes"], StreamRequest("AAPL", 300))

    assert [item async for item in stream] == [quote("AAPL", seq) for seq in range(300)]
    assert service.produced == 300
    assert service.outbound == 0


@pytest.mark.parametrize("producer", PRODUCERS)
async def test_a_stream_of_none_ends_at_once(producer: str) -> None:
    stream = Service(producer=producer).server_stream(METHODS["quotes"], StreamRequest("AAPL", 0))

    assert [item async for item in stream] == []


async def test_awaited_makes_exactly_what_is_taken() -> None:
    service = Service(producer="awaited")
    async with aclosing(service.server_stream(METHODS["quotes.unbounded"], SymbolRequest("A"))) as stream:
        await take(stream, 100)
        await turns()

        assert (service.produced, service.outbound) == (100, 0)


async def test_push_goes_on_making_while_nothing_is_taken() -> None:
    service = Service(producer="push")
    async with aclosing(service.server_stream(METHODS["quotes.unbounded"], SymbolRequest("A"))) as stream:
        await take(stream, 10)
        before = service.produced
        await turns(10)

        assert service.produced >= before + 9 * 64
        assert service.outbound == service.produced - 10
    await turns(5)
    stopped = service.produced
    await turns(10)

    assert service.produced == stopped  # the filler ends with its stream


@pytest.mark.parametrize("method", ["quotes.unbounded", "quotes.unbounded.ready"])
async def test_gated_stops_at_its_mark_and_goes_on_when_there_is_room(method: str) -> None:
    service = Service(producer="gated", mark=8)
    async with aclosing(service.server_stream(METHODS[method], SymbolRequest("A"))) as stream:
        await take(stream, 100)
        await turns()

        assert (service.produced, service.outbound) == (108, 8)
        assert await take(stream, 1) == [quote("A", 100)]
        await turns()

        assert (service.produced, service.outbound) == (109, 8)


async def test_credited_makes_exactly_what_was_granted() -> None:
    service = Service()
    grants: asyncio.Queue[Credit] = asyncio.Queue()

    async def credits() -> AsyncGenerator[Credit, None]:
        while True:
            yield await grants.get()

    async with aclosing(service.bidi_stream(METHODS["quotes.credited"], credits())) as stream:
        grants.put_nowait(Credit("A", 100))
        await take(stream, 100)
        following = asyncio.ensure_future(anext(stream))
        await turns()

        assert service.produced == 100
        grants.put_nowait(Credit(n=1))
        assert await following == quote("A", 100)
        assert service.produced == 101


async def test_delays_are_between_items() -> None:
    stream = Service().server_stream(METHODS["quotes"], StreamRequest("A", 3, delay_ms=1))

    assert [item.seq async for item in stream] == [0, 1, 2]


@pytest.mark.parametrize(
    ("method", "request_", "kind"),
    [
        (METHODS["quotes"], StreamRequest("A", -1), "invalid_argument"),
        (METHODS["quotes"], StreamRequest("A", 1, -1), "invalid_argument"),
        (Method("nonsense", Shape.SERVER_STREAM, Empty, Empty), Empty(), "not_found"),
    ],
)
async def test_what_cannot_be_streamed_is_refused(method: Method, request_: object, kind: str) -> None:
    with pytest.raises(CallFailed) as failed:
        async for _ in Service().server_stream(method, request_):
            pass

    assert failed.value.kind == kind


@pytest.mark.parametrize("first", [Credit("", 5), Credit("A", -1)])
async def test_a_credit_without_symbol_or_below_zero_is_refused(first: Credit) -> None:
    async def credits() -> AsyncGenerator[Credit, None]:
        yield first

    with pytest.raises(CallFailed, match="invalid_argument"):
        await take(Service().bidi_stream(METHODS["quotes.credited"], credits()), 1)


async def test_unknown_unary_method_is_not_found() -> None:
    with pytest.raises(CallFailed, match="not_found"):
        await Service().unary(Method("nonsense", Shape.UNARY, Empty, Empty), Empty())


def test_an_unknown_producer_is_refused() -> None:
    with pytest.raises(ValueError, match="producer: 'pull' is none of awaited, push, gated, credited"):
        Service(producer="pull")


async def test_hello_is_twelve_bytes_of_text() -> None:
    assert await Service().unary(METHODS["hello"], Empty()) == Body(b"Hello World!")


@pytest.mark.parametrize("work", ["wait", "busy"])
async def test_a_service_time_is_taken_by_quotes_and_hellos_alone(work: str) -> None:
    service = WorkingService(service_time_ms=20, service_work=work)
    started = time.perf_counter()
    await service.unary(METHODS["produced"], Empty())
    await service.unary(METHODS["hello"], Empty())
    await service.unary(METHODS["quote"], QuoteRequest("AAPL"))

    assert time.perf_counter() - started >= 0.04


@pytest.mark.parametrize(("work", "peak"), [("wait", 5), ("busy", 1)])
async def test_calls_that_wait_are_in_flight_together_and_busy_ones_one_by_one(work: str, peak: int) -> None:
    service = WorkingService(service_time_ms=5, service_work=work)
    await asyncio.gather(*(service.unary(METHODS["hello"], Empty()) for _ in range(5)))

    assert service.peak_in_flight == peak


def test_without_a_service_time_a_call_pays_nothing_for_it() -> None:
    assert type(service_of(cell("request_response").operation, "R")) is Service
    working = cell("request_response", operation_={"service_time_ms": 0.5, "service_work": "busy"}).operation
    assert type(service_of(working, "R")) is WorkingService
