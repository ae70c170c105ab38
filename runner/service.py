"""What every server does, whatever the protocol. Both styles of producing live here, once.

    awaited   the next item is made when the transport has taken the last one
    push      a loop makes items as fast as it can into an unbounded buffer here, in the service
    gated     as push, but the loop waits while the buffer holds `mark` items or more
    credited  items are made only against explicit credits on a bidirectional stream

Every style gives up the event loop once per YIELD_EVERY items, for all protocols alike: a transport whose
send never waits would otherwise starve its own loop (closes, stops and pings are never read), and doing so
once per item costs 19 % of a WebSocket stream.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from array import array
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from adapters.api import CallFailed, Message, Method, Peer
from adapters.messages import (
    Body,
    Credit,
    Empty,
    OrdersRequest,
    PageRequest,
    Produced,
    Quote,
    QuotePage,
    QuoteRequest,
    RunInfo,
)
from runner.bulk import (
    DOWNLOADS,
    UPLOADS,
    all_orders,
    one_by_one,
    order_messages,
    pushed,
    received,
    received_stream,
)
from runner.paging import made_so_far, quote_page
from runner.quotes import quote

if TYPE_CHECKING:
    from runner.operations.api import Operation

YIELD_EVERY = 64
HELLO = Body(b"Hello World!")
WORKED = frozenset(("quote", "hello"))  # the methods that a service time applies to
PRODUCERS = ("awaited", "push", "gated", "credited")


class Service(Peer):
    """The quotes and the records. `producer`: how counted and endless streams make their items; `mark`: the gate of
    `gated`, in items; `run`: the nonce that proves which run this server belongs to.

    `produced` and `outbound` describe the stream that was started last (the stream under test): items made so
    far, and items that wait in the service's own buffer. Both may be read from any thread.
    """

    def __init__(self, *, producer: str = "awaited", mark: int = 64, run: str = "") -> None:
        if producer not in PRODUCERS:
            raise ValueError(f"producer: {producer!r} is none of {', '.join(PRODUCERS)}")
        self._producer = producer
        self._mark = mark
        self._run = run
        self.produced = 0
        self.hellos = 0  # calls of `hello` that were answered
        self._buffer: deque[Message] = deque()
        self._unary: dict[str, Callable[[Any], Message]] = {
            "quote": self._quote,
            "quotes.page": self._page,
            "echo": self._echo,
            "hello": self._hello,
            "produced": self._produced,
            "run": self._which_run,
            "readings": received,
            "orders": all_orders,
        }

    @property
    def outbound(self) -> int:
        """Items made and not yet handed to the transport."""
        return len(self._buffer)

    async def unary(self, method: Method, request: Message) -> Message:
        """Raises CallFailed("not_found") for a method that is not served."""
        return self.answer(method, request)

    def answer(self, method: Method, request: Message) -> Message:
        """What `unary` answers, at once. Raises CallFailed as it does."""
        handler = self._unary.get(method.name)
        if handler is None:
            raise CallFailed("not_found", f"no method {method.name!r}")
        return handler(request)

    async def client_stream(self, method: Method, requests: AsyncIterable[Message]) -> Message:
        """Raises CallFailed("not_found") for a method that is not served."""
        if method.name in UPLOADS:
            return await received_stream(method, requests)
        raise CallFailed("not_found", f"no method {method.name!r}")

    def server_stream(self, method: Method, request: Message) -> AsyncGenerator[Message, None]:
        """Raises CallFailed: "not_found" for a method that is not served, "invalid_argument" for a bad count."""
        if method.name == "quotes":
            if request.count < 0 or request.delay_ms < 0:
                raise CallFailed("invalid_argument", "count and delayMs must be 0 or more")
            return self._stream(request.symbol, range(request.count), request.delay_ms / 1000, self._producer)
        if method.name == "quotes.unbounded":
            return self._stream(request.symbol, itertools.count(), 0.0, self._producer)
        if method.name == "quotes.unbounded.ready":
            return self._stream(request.symbol, itertools.count(), 0.0, "gated")
        if method.name in DOWNLOADS:
            return self._orders(method, request)
        raise CallFailed("not_found", f"no method {method.name!r}")

    def bidi_stream(self, method: Method, requests: AsyncIterable[Message]) -> AsyncGenerator[Message, None]:
        """Raises CallFailed("not_found") for a method that is not served."""
        if method.name == "quotes.credited":
            return self._credited(requests)
        raise CallFailed("not_found", f"no method {method.name!r}")

    def _quote(self, request: QuoteRequest) -> Quote:
        return quote(request.symbol, request.seq)

    def _page(self, request: PageRequest) -> QuotePage:
        page = quote_page(request)
        self.produced = made_so_far(request, page, self.produced)
        return page

    def _echo(self, request: Body) -> Body:
        return request

    def _hello(self, _: Empty) -> Body:
        self.hellos += 1
        return HELLO

    def _produced(self, _: Empty) -> Produced:
        return Produced(self.produced)

    def _which_run(self, _: Empty) -> RunInfo:
        return RunInfo(self._run)

    def _stream(
        self, symbol: str, seqs: Iterable[int], delay_s: float, producer: str
    ) -> AsyncGenerator[Quote, None]:
        if producer == "push":
            return self._buffered(symbol, seqs, delay_s, mark=None)
        if producer == "gated":
            return self._buffered(symbol, seqs, delay_s, mark=self._mark)
        return self._awaited(symbol, seqs, delay_s)

    def _orders(self, method: Method, request: OrdersRequest) -> AsyncGenerator[Message, None]:
        messages, buffer = order_messages(method, request), self._begin()
        if self._producer == "push":
            return pushed(messages, buffer, self._count)
        return one_by_one(messages, self._count)

    def _count(self) -> None:
        self.produced += 1

    def _begin(self) -> deque[Message]:
        self.produced = 0
        self._buffer = deque()
        return self._buffer

    async def _awaited(self, symbol: str, seqs: Iterable[int], delay_s: float) -> AsyncGenerator[Quote, None]:
        self._begin()
        for seq in seqs:
            if delay_s and seq:
                await asyncio.sleep(delay_s)
            elif not seq % YIELD_EVERY:
                await asyncio.sleep(0)
            self.produced += 1
            yield quote(symbol, seq)

    async def _buffered(
        self, symbol: str, seqs: Iterable[int], delay_s: float, mark: int | None
    ) -> AsyncGenerator[Quote, None]:
        buffer = self._begin()
        filled, room = asyncio.Event(), asyncio.Event()

        async def fill() -> None:
            for seq in seqs:
                if mark is not None:
                    while len(buffer) >= mark:
                        room.clear()
                        await room.wait()
                if delay_s and seq:
                    await asyncio.sleep(delay_s)
                elif not seq % YIELD_EVERY:
                    await asyncio.sleep(0)
                self.produced += 1
                buffer.append(quote(symbol, seq))
                if len(buffer) == 1:
                    filled.set()

        filler = asyncio.create_task(fill())
        filler.add_done_callback(lambda _: filled.set())
        taken = 0
        try:
            while True:
                while buffer:
                    item = buffer.popleft()
                    if mark is not None and len(buffer) < mark:
                        room.set()
                    yield item
                    taken += 1
                    if not taken % YIELD_EVERY:
                        await asyncio.sleep(0)
                if filler.done():
                    filler.result()  # a failed filler ends the stream with its error, not as if complete
                    return
                filled.clear()
                await filled.wait()
        finally:
            filler.cancel()

    async def _credited(self, credits: AsyncIterable[Credit]) -> AsyncGenerator[Quote, None]:
        self._begin()
        symbol, seq = "", 0
        async for credit in credits:
            symbol = symbol or credit.symbol
            if not symbol:
                raise CallFailed("invalid_argument", "the first credit names no symbol")
            if credit.n < 0:
                raise CallFailed("invalid_argument", "a credit cannot be negative")
            for _ in range(credit.n):
                if not seq % YIELD_EVERY:
                    await asyncio.sleep(0)
                self.produced += 1
                yield quote(symbol, seq)
                seq += 1


class WorkingService(Service):
    """A service whose quotes and hellos take `service_time_ms`, and each message of an upload before it asks for
    the next. `service_work`: "wait" awaits a timer, as for a database; "busy" keeps the processor and the event
    loop, as for a computation.

    `peak_in_flight`: the most calls that worked at once. `taken_ns`: when it took each message of the last upload.
    """

    def __init__(self, *, service_time_ms: float, service_work: str = "wait", **service: Any) -> None:
        super().__init__(**service)
        self._service_s = service_time_ms / 1_000
        self._busy = service_work == "busy"
        self._in_flight = 0
        self.peak_in_flight = 0
        self.taken_ns = array("q")

    async def unary(self, method: Method, request: Message) -> Message:
        """Raises CallFailed("not_found") for a method that is not served."""
        if method.name in WORKED:
            self._in_flight += 1
            self.peak_in_flight = max(self.peak_in_flight, self._in_flight)
            try:
                await self._work()
            finally:
                self._in_flight -= 1
        return await super().unary(method, request)

    async def client_stream(self, method: Method, requests: AsyncIterable[Message]) -> Message:
        """Raises CallFailed("not_found") for a method that is not served."""
        async with aclosing(self._slowly(requests)) as slowly:
            return await super().client_stream(method, slowly)

    async def _slowly(self, requests: AsyncIterable[Message]) -> AsyncGenerator[Message, None]:
        self.taken_ns = taken = array("q")
        async for request in requests:
            taken.append(time.perf_counter_ns())
            await self._work()
            yield request

    async def _work(self) -> None:
        if self._busy:
            until = time.perf_counter() + self._service_s
            while time.perf_counter() < until:
                pass
        else:
            await asyncio.sleep(self._service_s)


def service_of(operation: Operation, run: str) -> Service:
    """What a server serves for `operation`; `run` is the nonce of the run it belongs to."""
    style: dict[str, Any] = {"producer": operation.producer_style(), "mark": operation.gate_mark(), "run": run}
    service_time_ms, service_work = operation.work()
    if not service_time_ms:
        return Service(**style)  # a call pays nothing for what it does not use
    return WorkingService(service_time_ms=service_time_ms, service_work=service_work, **style)
