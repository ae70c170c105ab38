"""What an operation's driver half works with, and the bounds it works in."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any, Protocol, TypeVar

from adapters.api import CallFailed, Codec, CodecError, ConnectionLost, Exchange, Peer
from runner.fields import Limits, Load
from runner.operations.api import Raw
from runner.timer import Timer

T = TypeVar("T")
Clock = Callable[[], int]


class Stalled(Exception):
    """Nothing moved for limits.call_s."""


class Gate(Protocol):
    """The driver's side of the run's phases; the supervisor is on the other side."""

    async def ready(self) -> None:
        """Warm-up is over. Returns when the measured window may open."""

    async def quiet(self) -> None:
        """The reader has gone quiet. Returns when the supervisor has seen enough."""

    def closed(self) -> None:
        """The measured window has just closed."""


class Drive:
    """One driver: its connections, its clock (nanoseconds, monotonic) and what it has found (`raw`). `timer`: wakes
    the sender of an open loop; None in a closed one.

    `inbox` is where a background reader puts what the application has not asked for yet; `consumed` is what the
    application has taken; `over` tells the supervisor of a watched operation that it has seen enough. All are read
    by other threads while the loop is busy. `outbox` is where a sender that never waits puts what the transport has
    not taken.
    """

    def __init__(
        self,
        *,
        peers: list[Peer],
        codec: Codec,
        load: Load,
        limits: Limits,
        gate: Gate,
        clock: Clock,
        timer: Timer | None = None,
    ) -> None:
        self.peers = peers
        self.codec = codec
        self.load = load
        self.limits = limits
        self.clock = clock
        self.timer = timer
        self.raw = Raw()
        self.inbox: deque[Any] = deque()
        self.outbox: deque[Any] = deque()
        self.consumed = 0
        self.exchange: Exchange | None = None  # the hand-written client, where the operation asks for one
        self.over = False
        self._gate = gate
        self._opened_ns = 0

    def callers(self) -> list[Peer]:
        """One entry per call that may be under way at once: every connection, or one connection many times."""
        if self.load.multiplex:
            return self.peers[:1] * self.load.connections
        return self.peers

    async def ready(self) -> int:
        """Warm-up is over: wait for the window to open. Returns the stamp of its opening."""
        await self._gate.ready()
        self._opened_ns = self.clock()
        return self._opened_ns

    def close_window(self, at_ns: int | None = None) -> None:
        """The window closes now, or has closed `at_ns`. What follows is in no measurement."""
        self.raw.window_ns = (self.clock() if at_ns is None else at_ns) - self._opened_ns
        self._gate.closed()

    async def quiet(self) -> None:
        """Stay quiet until the supervisor has seen enough."""
        await self._gate.quiet()

    def count_error(self, exc: Exception) -> None:
        """Count `exc` by kind. Raises it again when no later call can succeed (the connection is gone)."""
        kind = error_kind(exc)
        self.raw.errors[kind] = self.raw.errors.get(kind, 0) + 1
        if isinstance(exc, ConnectionLost):
            raise exc

    async def bounded(self, work: Coroutine[Any, Any, T], progress: Callable[[], int]) -> T:
        """`work`, given up with Stalled when `progress()` has not changed for limits.call_s.

        One timer per call_s instead of one per call: a time-out around each call would be in every sample.
        """
        task = asyncio.ensure_future(work)
        try:
            seen = progress()
            while True:
                done, _ = await asyncio.wait([task], timeout=self.limits.call_s)
                if done:
                    return task.result()
                now = progress()
                if now == seen:
                    raise Stalled(f"no progress for {self.limits.call_s:g} s, after {now:,} of the messages")
                seen = now
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait([task], timeout=1)


def error_kind(exc: Exception) -> str:
    """The short word that an error is counted by."""
    if isinstance(exc, CallFailed):
        return exc.kind
    if isinstance(exc, ConnectionLost):
        return "connection_lost"
    return "malformed" if isinstance(exc, CodecError) else type(exc).__name__.lower()


# What a call may raise and still leave the run worth going on with.
CALL_ERRORS = (CallFailed, CodecError, ConnectionLost)


def tickets(count: int) -> Iterator[int]:
    """0 to count-1, to be shared by workers: together they make exactly `count` calls."""
    return iter(range(count))


async def all_of(work: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Every coroutine, at once; the first failure cancels the others and is raised."""
    if len(work) == 1:
        await work[0]
        return
    try:
        async with asyncio.TaskGroup() as group:
            for item in work:
                group.create_task(item)
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
