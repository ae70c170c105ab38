"""What is sent on an RSocket stream. Credit is exact, which not all of the library's own publishers are: an
`Outbox` asks its source for an item only while it holds credit. So a reader that granted 100 and went quiet has
a source that made 100.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

from reactivestreams.publisher import Publisher
from reactivestreams.subscription import Subscription
from rsocket.frame import MAX_REQUEST_N

from adapters.api import CallFailed, Message
from adapters.rsocket_inbox import Inbox, Requests
from adapters.rsocket_wire import STOP_S, Wire, refusal

YIELD_EVERY = 64  # items after which a source lets the rest of the loop run
_NOTHING = object()


class Outbox(Publisher, Subscription):  # type: ignore[misc]  # the library has no types
    """Sends items one by one, as far as the reader's credit goes, in a task of its own."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._credit = 0
        self._ended = False  # this half of the stream is closed
        self._task: asyncio.Task[None] | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._subscriber: Any = None

    @abstractmethod
    async def _run(self) -> None:
        """What the task does."""

    def start(self) -> None:
        """Start the task."""
        self._task = self._wire.spawn(self._run())

    def subscribe(self, subscriber: Any) -> None:
        """`subscriber` is the library's: what it is given goes to the wire."""
        self._subscriber = subscriber
        subscriber.on_subscribe(self)

    def request(self, n: int) -> None:
        """`n` more items may be sent. The first credit starts the task."""
        self._credit = min(self._credit + n, MAX_REQUEST_N)
        if self._waiter is not None:
            if not self._waiter.done():
                self._waiter.set_result(None)
        elif self._task is None and self._credit > 0 and not self._ended:
            self.start()

    def cancel(self) -> None:
        """The reader wants no more, or the connection is over."""
        self._ended = True
        if self._task is not None:
            self._task.cancel()

    async def _granted(self) -> None:
        while self._credit <= 0:
            if self._ended:
                raise asyncio.CancelledError  # the source swallowed the first one
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None

    async def _feed(self, items: AsyncIterator[Message]) -> None:
        """Send everything. There must be credit for the first item."""
        pack, on_next, breathe, count = self._wire.pack, self._subscriber.on_next, self._wire.breathe, 0
        async for item in items:
            payload = pack(item)
            self._credit -= 1
            on_next(payload)
            count += 1
            if not count % YIELD_EVERY:
                await breathe()
            if self._credit <= 0:
                await self._granted()

    def _end(self, exc: Exception | None = None) -> None:
        if not self._ended:
            self._ended = True
            if exc is None:
                self._subscriber.on_complete()
            else:
                self._subscriber.on_error(exc)


class Answers(Outbox):
    """What a server sends. `requests` is the other half of a channel, and ends with this one.

    The end of a stream is a frame of its own: whether an item is the last shows only when the next is asked for.
    """

    def __init__(
        self, wire: Wire, source: Callable[[], AsyncGenerator[Message, None]], requests: Requests | None = None
    ) -> None:
        super().__init__(wire)
        self._source = source
        self._requests = requests

    def cancel(self) -> None:
        """The reader wants no more, or the connection is over."""
        super().cancel()
        if self._requests is not None:
            self._requests.cancel()

    async def _run(self) -> None:
        try:
            async with aclosing(self._source()) as items:
                await self._feed(items)
            self._end()
        except asyncio.CancelledError:
            if self._ended:
                raise
            # Not by us: something inside the service was cancelled, and the caller has to be told something.
            self._end(refusal(CallFailed("cancelled", "the service cancelled the call")))
        except Exception as exc:
            self._end(refusal(exc))
        finally:
            if self._requests is not None:
                await self._requests.close()


class Answer(Answers):
    """What a server sends where there is a single reply: the end of the stream rides on it."""

    async def _feed(self, items: AsyncIterator[Message]) -> None:
        async for item in items:
            payload = self._wire.pack(item)
            if not self._ended:
                self._ended = True
                self._subscriber.on_next(payload, True)


class Upload(Outbox):
    """What a client sends on a channel. A channel is opened by its first item: `open_with` is given that, or None
    where there is none at all. A failure of the source is raised to the reader of `replies`.
    """

    def __init__(
        self,
        wire: Wire,
        source: AsyncIterable[Message],
        open_with: Callable[[Upload, Message | None], None],
        replies: Inbox,
    ) -> None:
        super().__init__(wire)
        self._source = source
        self._open_with = open_with
        self._replies = replies

    async def stop(self) -> None:
        """Ask the source for no more, and close this half of the channel."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task], timeout=STOP_S)
        if self._subscriber is not None:
            # As an error: a service must not take an abandoned upload for a complete one.
            self._end(refusal(CallFailed("cancelled", "the caller left")))

    async def _run(self) -> None:
        items = aiter(self._source)
        try:
            first = await anext(items, _NOTHING)
            if first is _NOTHING:
                self._open_with(self, None)
            else:
                self._open_with(self, first)
                await self._granted()
                await self._feed(items)
            self._end()
        except asyncio.CancelledError:
            # By `stop` or `cancel`, when nobody waits for replies, or by the source itself, when somebody does.
            if not self._ended:
                self._replies.fail(CallFailed("cancelled", "the requests were cancelled"))
            raise
        except Exception as exc:
            self._replies.fail(exc)
        finally:
            close = getattr(items, "aclose", None)
            if close is not None:
                await close()
