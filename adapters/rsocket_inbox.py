"""What arrives on an RSocket stream. Credit is exact, which the library's own readers are not: an `Inbox` grants
more only when somebody asks it for an item, and only when no more than `low` of what it granted are left.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from typing import Any

from reactivestreams.subscriber import Subscriber

from adapters.api import CallFailed, Message
from adapters.rsocket_wire import Wire, error_of, too_large

Stop = Callable[[], Awaitable[None]]


class Inbox(Subscriber):  # type: ignore[misc]  # the library has no types
    """The items of one stream that have arrived and were not asked for yet: `queue`.

    `credit` is granted at a time, and again when an item is asked for and `low` or fewer of it are left.
    """

    def __init__(self, wire: Wire, kind: type, credit: int, low: int) -> None:
        self.queue: deque[bytearray] = deque()
        self._wire = wire
        self._kind = kind
        self._credit = credit
        self._low = low
        self._left = credit  # granted, and not handed on yet
        self._over = False  # this half of the stream is closed
        self._error: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._subscription: Any = None

    def on_subscribe(self, subscription: Any) -> None:
        """Only noted: at a requester, credit granted here would reach the wire before the request itself."""
        self._subscription = subscription

    def on_next(self, value: Any, is_complete: bool = False) -> None:
        """One item more. The end may ride on it."""
        self.queue.append(value.data)
        if is_complete:
            self._over = True
        if self._waiter is not None:
            self._wake()

    def on_complete(self) -> None:
        """The other side has no more."""
        self._over = True
        self._wake()

    def on_error(self, exception: Exception) -> None:
        """The other side sent an error, or the connection is over."""
        self._over = True
        self.fail(error_of(exception))

    def fail(self, exc: Exception) -> None:
        """Raise `exc` to the reader, after the items that are here already. The first error counts."""
        if self._error is None:
            self._error = exc
        self._wake()

    def cancel(self) -> None:
        """Tell the other side that no more is wanted, unless it has closed this half already."""
        if not self._over:
            self._over = True
            self.fail(CallFailed("cancelled", "the stream was left"))
            if self._subscription is not None:
                self._subscription.cancel()

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    async def _arrival(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    async def items(self) -> AsyncGenerator[Message, None]:
        """The items, once, in order. Raises what ended the stream, Malformed, Unsupported."""
        queue, decode, kind = self.queue, self._wire.decode, self._kind
        credit, low, left, limit = self._credit, self._low, self._left, self._wire.limit
        try:
            self._begin()
            while True:
                if left <= low and not self._over and self._error is None:
                    self._subscription.request(credit - max(left, 0))
                    left = credit
                if queue:
                    data = queue.popleft()
                    if len(data) > limit:
                        raise too_large(len(data), limit)
                    left -= 1
                    yield decode(kind, data)
                elif self._error is not None:
                    raise self._error
                elif self._over:
                    return
                else:
                    await self._arrival()
        finally:
            await self._leave()

    def _begin(self) -> None:
        """The first item is asked for."""

    async def _leave(self) -> None:
        """No more will be asked for."""
        self.cancel()


class Replies(Inbox):
    """What a client reads. `reading` holds this while it is read.

    `ask` makes the request, subscribes this to the answer, and returns what ends the request, if anything need.
    """

    def __init__(
        self,
        wire: Wire,
        kind: type,
        credit: int,
        low: int,
        ask: Callable[[Replies], Stop | None],
        reading: set[Replies],
    ) -> None:
        super().__init__(wire, kind, credit, low)
        self._ask = ask
        self._stop: Stop | None = None
        self._reading = reading

    def _begin(self) -> None:
        self._reading.add(self)
        self._stop = self._ask(self)

    async def _leave(self) -> None:
        self._reading.discard(self)
        self.cancel()
        if self._stop is not None:
            await self._stop()


class Requests(Inbox):
    """What a server reads on a channel: `stream`. `first` came with the opening of the channel; None where the
    client has no requests at all.
    """

    def __init__(self, wire: Wire, kind: type, credit: int, low: int, first: bytearray | None) -> None:
        super().__init__(wire, kind, credit, low)
        if first is not None:
            self.queue.append(first)
            self._left += 1  # it was not paid for in credit
        self.stream = self.items()

    def on_subscribe(self, subscription: Any) -> None:
        """At a responder the channel is open already, and its requester waits for credit."""
        super().on_subscribe(subscription)
        subscription.request(self._credit)

    async def close(self) -> None:
        """End this half of the channel, and `stream` where the service has not."""
        self.cancel()
        with suppress(RuntimeError):  # somebody else is waiting in it, and hears of the end
            await self.stream.aclose()
