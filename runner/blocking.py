"""What every server does, as a server of threads calls it: runner.service with plain functions. The same answers,
the same styles of producing, the same counters; where a coroutine would wait, a thread does.

A thread that makes items for a stream of `push` or `gated` runs beside the pool's thread that sends them.
"""

from __future__ import annotations

import itertools
import threading
import time
from array import array
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from adapters.api import Adapter, BlockingPeer, CallFailed, Message, Method
from adapters.messages import Credit, Produced
from runner.bulk import DOWNLOADS, UPLOADS, order_messages, received_blocking
from runner.paging import made_so_far, quote_page
from runner.quotes import quote
from runner.service import WORKED, YIELD_EVERY, Service, service_of

if TYPE_CHECKING:
    from runner.operations.api import Operation


class BlockingService(BlockingPeer):
    """The quotes and the records for threads; arguments and counters are Service's."""

    def __init__(self, *, producer: str = "awaited", mark: int = 64, run: str = "") -> None:
        self._answers = Service(producer=producer, mark=mark, run=run)
        self._producer = producer
        self._mark = mark
        self.produced = 0
        self._buffer: deque[Message] = deque()
        self._counting = threading.Lock()

    @property
    def hellos(self) -> int:
        """Calls of `hello` that were answered."""
        return self._answers.hellos

    @property
    def outbound(self) -> int:
        """Items made and not yet handed to the transport."""
        return len(self._buffer)

    def unary(self, method: Method, request: Message) -> Message:
        """Raises CallFailed("not_found") for a method that is not served."""
        if method.name == "produced":
            return Produced(self.produced)
        if method.name == "quotes.page":
            page = quote_page(request)
            self.produced = made_so_far(request, page, self.produced)
            return page
        if method.name == "hello":
            with self._counting:
                return self._answers.answer(method, request)
        return self._answers.answer(method, request)

    def client_stream(self, method: Method, requests: Iterator[Message]) -> Message:
        """Raises CallFailed("not_found") for a method that is not served."""
        if method.name in UPLOADS:
            return received_blocking(method, requests)
        raise CallFailed("not_found", f"no method {method.name!r}")

    def server_stream(self, method: Method, request: Message) -> Generator[Message, None, None]:
        """Raises CallFailed: "not_found" for a method that is not served, "invalid_argument" for a bad count."""
        if method.name == "quotes":
            if request.count < 0 or request.delay_ms < 0:
                raise CallFailed("invalid_argument", "count and delayMs must be 0 or more")
            return self._stream(_quotes(request.symbol, range(request.count), request.delay_ms / 1000))
        if method.name == "quotes.unbounded":
            return self._stream(_quotes(request.symbol, itertools.count()))
        if method.name == "quotes.unbounded.ready":
            return self._buffered(_quotes(request.symbol, itertools.count()), self._mark)
        if method.name in DOWNLOADS:
            return self._stream(order_messages(method, request))
        raise CallFailed("not_found", f"no method {method.name!r}")

    def bidi_stream(self, method: Method, requests: Iterator[Message]) -> Generator[Message, None, None]:
        """Raises CallFailed("not_found") for a method that is not served."""
        if method.name == "quotes.credited":
            return self._credited(requests)
        raise CallFailed("not_found", f"no method {method.name!r}")

    def _stream(self, messages: Iterator[Message]) -> Generator[Message, None, None]:
        if self._producer in ("push", "gated"):
            return self._buffered(messages, self._mark if self._producer == "gated" else None)
        return self._awaited(messages)

    def _begin(self) -> deque[Message]:
        self.produced = 0
        self._buffer = deque()
        return self._buffer

    def _awaited(self, messages: Iterator[Message]) -> Generator[Message, None, None]:
        self._begin()
        for message in messages:
            self.produced += 1
            yield message

    def _buffered(self, messages: Iterator[Message], mark: int | None) -> Generator[Message, None, None]:
        buffer = self._begin()
        changed = threading.Condition()  # guards what follows, and the buffer's going empty and full
        left = over = False
        trouble: Exception | None = None

        def fill() -> None:
            made = 0
            while True:
                if mark is not None:
                    with changed:
                        while len(buffer) >= mark and not left:
                            changed.wait()
                message = next(messages, None)
                with changed:
                    if message is None or left:
                        return
                    self.produced += 1
                    buffer.append(message)
                    if len(buffer) == 1:
                        changed.notify_all()
                made += 1
                if not made % YIELD_EVERY:
                    time.sleep(0)  # lets go of the interpreter

        def run() -> None:
            nonlocal over, trouble
            try:
                fill()
            except Exception as exc:
                trouble = exc
            with changed:
                over = True
                changed.notify_all()

        threading.Thread(target=run, name="filler", daemon=True).start()
        try:
            while True:
                with changed:
                    while not buffer and not over:
                        changed.wait()
                    if not buffer:
                        break
                    message = buffer.popleft()
                    if mark is not None and len(buffer) < mark:
                        changed.notify_all()
                yield message
            if trouble is not None:
                raise trouble  # a failed filler ends the stream with its error, not as if complete
        finally:
            with changed:
                left = True
                changed.notify_all()

    def _credited(self, credits: Iterator[Credit]) -> Generator[Message, None, None]:
        self._begin()
        symbol, seq = "", 0
        for credit in credits:
            symbol = symbol or credit.symbol
            if not symbol:
                raise CallFailed("invalid_argument", "the first credit names no symbol")
            if credit.n < 0:
                raise CallFailed("invalid_argument", "a credit cannot be negative")
            for _ in range(credit.n):
                self.produced += 1
                yield quote(symbol, seq)
                seq += 1


def _quotes(symbol: str, seqs: Iterable[int], delay_s: float = 0.0) -> Iterator[Message]:
    """The quotes of a stream, `delay_s` apart, each made when it is asked for."""
    for seq in seqs:
        if delay_s and seq:
            time.sleep(delay_s)
        yield quote(symbol, seq)


class WorkingBlockingService(BlockingService):
    """A service whose quotes and hellos take `service_time_ms`, and each message of an upload before it asks for
    the next. `service_work`: "wait" lets the thread sleep, as for a database; "busy" computes until the thread has
    used as much CPU time (by the clock, threads that share a core would all be done at once).

    `peak_in_flight`: the most calls that worked at once. `taken_ns`: when it took each message of the last upload.
    """

    def __init__(self, *, service_time_ms: float, service_work: str = "wait", **service: Any) -> None:
        super().__init__(**service)
        self._service_s = service_time_ms / 1_000
        self._busy = service_work == "busy"
        self._counting = threading.Lock()
        self._in_flight = 0
        self.peak_in_flight = 0
        self.taken_ns = array("q")

    def unary(self, method: Method, request: Message) -> Message:
        """Raises CallFailed("not_found") for a method that is not served."""
        if method.name in WORKED:
            self._count(1)
            try:
                self._work()
            finally:
                self._count(-1)
        return super().unary(method, request)

    def client_stream(self, method: Method, requests: Iterator[Message]) -> Message:
        """Raises CallFailed("not_found") for a method that is not served."""
        return super().client_stream(method, self._slowly(requests))

    def _slowly(self, requests: Iterator[Message]) -> Iterator[Message]:
        self.taken_ns = taken = array("q")
        for request in requests:
            taken.append(time.perf_counter_ns())
            self._work()
            yield request

    def _work(self) -> None:
        if self._busy:
            until = time.thread_time() + self._service_s
            while time.thread_time() < until:
                pass
        else:
            time.sleep(self._service_s)

    def _count(self, change: int) -> None:
        with self._counting:
            self._in_flight += change
            self.peak_in_flight = max(self.peak_in_flight, self._in_flight)


def served_by(adapter: Adapter, operation: Operation, run: str) -> Service | BlockingService:
    """What `adapter` serves for `operation`; `run` is the nonce of the run it belongs to."""
    if not adapter.blocking:
        return service_of(operation, run)
    style: dict[str, Any] = {"producer": operation.producer_style(), "mark": operation.gate_mark(), "run": run}
    service_time_ms, service_work = operation.work()
    if not service_time_ms:
        return BlockingService(**style)
    return WorkingBlockingService(service_time_ms=service_time_ms, service_work=service_work, **style)
