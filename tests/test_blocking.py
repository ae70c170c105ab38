"""The service as servers of threads call it: the same answers, styles and counters as runner.service."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from adapters.api import CallFailed, Message, Method, Shape
from adapters.messages import (
    METHODS,
    Body,
    Credit,
    Empty,
    OrdersRequest,
    Produced,
    QuoteRequest,
    RunInfo,
    StreamRequest,
    SymbolRequest,
)
from runner import blocking
from runner.blocking import BlockingService, WorkingBlockingService, served_by
from runner.bulk import order_messages
from runner.quotes import quote
from runner.records import batches, reading, readings_of
from runner.service import HELLO, PRODUCERS, Service
from tests.cells import cell

WAIT_S = 10  # a bound, not an expectation
UNBOUNDED = METHODS["quotes.unbounded"]


@pytest.mark.parametrize(
    ("method", "request_", "reply"),
    [
        ("quote", QuoteRequest("AAPL"), quote("AAPL", 42)),
        ("quote", QuoteRequest("X", 7), quote("X", 7)),
        ("echo", Body(b"\0x"), Body(b"\0x")),
        ("run", Empty(), RunInfo("abc")),
        ("hello", Empty(), HELLO),
    ],
)
def test_a_unary_method_answers_as_the_service_for_coroutines(
    method: str, request_: Message, reply: Message
) -> None:
    assert BlockingService(run="abc").unary(METHODS[method], request_) == reply


@pytest.mark.parametrize("producer", PRODUCERS)
@pytest.mark.parametrize("count", [0, 1, 300])
def test_a_counted_stream_is_whole_and_in_order(producer: str, count: int) -> None:
    service = BlockingService(producer=producer)
    items = service.server_stream(METHODS["quotes"], StreamRequest("AAPL", count))

    assert list(items) == [quote("AAPL", seq) for seq in range(count)]
    assert (service.produced, service.outbound) == (count, 0)
    assert service.unary(METHODS["produced"], Empty()) == Produced(count)


def test_awaited_makes_exactly_what_is_taken() -> None:
    service = BlockingService(producer="awaited")
    with closing(service.server_stream(UNBOUNDED, SymbolRequest("A"))) as items:
        assert [next(items).seq for _ in range(100)] == list(range(100))
        assert (service.produced, service.outbound) == (100, 0)


def fillers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "filler"]


@pytest.mark.parametrize("method", ["quotes.unbounded", "quotes.unbounded.ready"])
def test_gated_stops_at_its_mark_and_goes_on_below_it(method: str) -> None:
    service = BlockingService(producer="gated", mark=8)
    with closing(service.server_stream(METHODS[method], SymbolRequest("A"))) as items:
        for taken in range(1, 50):
            assert next(items).seq == taken - 1
            assert taken <= service.produced <= taken + 8
            assert service.outbound <= 8
    for filler in fillers():
        filler.join(WAIT_S)
    assert fillers() == []


def test_push_makes_items_that_nobody_takes_until_its_reader_leaves() -> None:
    service = BlockingService(producer="push")
    with closing(service.server_stream(UNBOUNDED, SymbolRequest("A"))) as items:
        assert next(items).seq == 0
        for _ in range(1_000_000):
            if service.outbound > 5_000:
                break
            threading.Event().wait(0.001)
        assert service.outbound > 5_000
    for filler in fillers():
        filler.join(WAIT_S)
    assert fillers() == []


def test_credit_bounds_exactly() -> None:
    service = BlockingService()

    def credits() -> Iterator[Credit]:
        yield Credit("AAPL", 3)
        assert service.produced == 3
        yield Credit(n=4)

    items = service.bidi_stream(METHODS["quotes.credited"], credits())

    assert list(items) == [quote("AAPL", seq) for seq in range(7)]


@pytest.mark.parametrize("credit", [Credit(n=3), Credit("A", -1)])
def test_a_credit_that_says_nothing_is_refused(credit: Credit) -> None:
    with pytest.raises(CallFailed) as failed:
        list(BlockingService().bidi_stream(METHODS["quotes.credited"], iter([credit])))
    assert failed.value.kind == "invalid_argument"


@pytest.mark.parametrize("shape", list(Shape))
def test_a_method_that_is_not_served_is_not_found(shape: Shape) -> None:
    service, method = BlockingService(), Method("nonsense", shape, Empty, Empty)
    with pytest.raises(CallFailed) as failed:
        if shape is Shape.UNARY:
            service.unary(method, Empty())
        elif shape is Shape.SERVER_STREAM:
            service.server_stream(method, Empty())
        elif shape is Shape.CLIENT_STREAM:
            service.client_stream(method, iter(()))
        else:
            service.bidi_stream(method, iter(()))
    assert failed.value.kind == "not_found"


def test_a_bad_count_is_refused() -> None:
    with pytest.raises(CallFailed, match="count and delayMs must be 0 or more"):
        BlockingService().server_stream(METHODS["quotes"], StreamRequest("A", -1))


def test_an_unknown_style_is_refused() -> None:
    with pytest.raises(ValueError, match="producer: 'pull' is none of"):
        BlockingService(producer="pull")


def test_the_service_time_of_wait_is_slept_and_only_by_calls_that_take_it(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(blocking.time, "sleep", slept.append)
    service = WorkingBlockingService(service_time_ms=50)

    assert service.unary(METHODS["quote"], QuoteRequest("A")) == quote("A", 42)
    service.unary(METHODS["echo"], Body(b""))
    service.unary(METHODS["run"], Empty())

    assert slept == [0.05]
    assert service.peak_in_flight == 1


def test_the_service_time_of_busy_is_cpu_time_of_the_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter(range(100))
    monkeypatch.setattr(blocking.time, "thread_time", lambda: next(ticks) / 1000)
    monkeypatch.setattr(blocking.time, "sleep", lambda _: pytest.fail("slept"))
    service = WorkingBlockingService(service_time_ms=5, service_work="busy")

    assert service.unary(METHODS["quote"], QuoteRequest("A")) == quote("A", 42)
    assert next(ticks) == 6  # looked at 0 ms, and then until 5 ms had gone


@pytest.mark.parametrize("producer", PRODUCERS)
@pytest.mark.parametrize("method", ["orders.batched", "orders.each"])
def test_downloads_are_those_of_coroutines(producer: str, method: str) -> None:
    service, request = BlockingService(producer=producer), OrdersRequest(count=250, batch=100)

    got = list(service.server_stream(METHODS[method], request))

    assert got == list(order_messages(METHODS[method], request))
    assert service.produced == len(got) == (3 if method == "orders.batched" else 250)
    with pytest.raises(CallFailed, match="count must be 0 or more"):
        BlockingService().server_stream(METHODS[method], OrdersRequest(-1, 1))


def test_uploads_are_answered_with_a_receipt() -> None:
    service, numbers = BlockingService(), range(250)
    each = service.client_stream(METHODS["readings.each"], map(reading, numbers))
    batched = service.client_stream(METHODS["readings.batched"], map(readings_of, batches(250, 100)))
    single = service.unary(METHODS["readings"], readings_of(numbers))

    assert (each.records, each.messages) == (250, 250)
    assert (batched.records, batched.messages) == (250, 3)
    assert (single.records, single.messages) == (250, 1)
    assert each.checksum == batched.checksum == single.checksum


@pytest.mark.parametrize("producer", ["push", "gated"])
def test_a_maker_that_fails_ends_the_stream_with_its_error(producer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(symbol: str, seq: int) -> object:
        if seq == 3:
            raise CallFailed("out_of_quotes", "none left")
        return quote(symbol, seq)

    monkeypatch.setattr(blocking, "quote", breaks)
    items, got = BlockingService(producer=producer).server_stream(METHODS["quotes"], StreamRequest("A", 9)), []
    with pytest.raises(CallFailed, match="out_of_quotes: none left"):
        for item in items:
            got.append(item.seq)

    assert got == [0, 1, 2]


@pytest.mark.parametrize("protocol", ["grpc_threads", "http_threads"])
def test_a_server_of_threads_is_handed_the_service_for_threads(protocol: str) -> None:
    plain = cell("request_response", protocol)
    working = cell("request_response", protocol, operation_={"service_time_ms": 5})

    assert type(served_by(plain.adapter, plain.operation, "R")) is BlockingService
    assert type(served_by(working.adapter, working.operation, "R")) is WorkingBlockingService


def test_any_other_server_is_handed_the_service_for_coroutines() -> None:
    plain = cell("request_response", "tcp")

    assert type(served_by(plain.adapter, plain.operation, "R")) is Service
