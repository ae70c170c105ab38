"""Open-loop traffic: calls are sent when they are due, not when an answer came.

    intended --- (the driver is late) --- sent --- (waits for a free connection) --- started ---- ended
    |<-------------------------------- response time ------------------------------------------------>|
                                                                                     |<- service time ->|

A call that is due goes to a free connection; if there is none it waits in the driver, in order. Its response time
counts from when it was due, so a stall of the server is in every call that should have been made meanwhile
(coordinated omission, as wrk2 corrects it). Where `max_in_flight` calls are waiting or under way, the next one is
dropped and counted.
"""

from __future__ import annotations

import asyncio
from array import array
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from adapters.api import Message, Method, Peer
from runner.drive import CALL_ERRORS, Drive, all_of
from runner.operations.api import Raw
from runner.samples import slots

LEAD_NS = 10_000_000  # from the opening of the window to the first call: time to start the callers

Pairs = Sequence[tuple[Message, Message]]  # (request, the only right answer), gone through in turn


@dataclass
class Traffic:
    """What a stretch of traffic left, a slot per call in nanoseconds; a slot that is 0 was never filled.

    `sent`: when the sender took the call up; it is `started` for a call that found a connection free. `ended` is
    filled for right answers only. `dropped`: calls not made. `in_system_ns`: the number of calls waiting or under
    way, summed over time as the sender saw it.
    """

    intended: array[int]
    sent: array[int] = field(init=False)
    started: array[int] = field(init=False)
    ended: array[int] = field(init=False)
    dropped: int = 0
    errors: int = 0
    in_system_ns: int = 0
    opened_ns: int = 0
    closed_ns: int = 0

    def __post_init__(self) -> None:
        self.sent, self.started, self.ended = (slots(len(self.intended)) for _ in range(3))

    def latencies(self) -> list[int]:
        """Service time of the good calls."""
        return [e - s for s, e in zip(self.started, self.ended, strict=True) if e]

    def responses(self) -> list[int]:
        """Response time of the good calls."""
        return [e - i for i, e in zip(self.intended, self.ended, strict=True) if e]

    def delays(self) -> list[int]:
        """How late the driver was with each call that it made, a wait for a connection left out."""
        return [s - i for i, s in zip(self.intended, self.sent, strict=True) if s]

    def into(self, raw: Raw) -> None:
        """Adds everything that the summary needs."""
        raw.samples["latency"] = self.latencies()
        raw.samples["response"] = self.responses()
        raw.samples["schedule_delay"] = self.delays()
        raw.counts |= {
            "calls": len(self.intended),
            "dropped": self.dropped,
            "in_system_ns": self.in_system_ns,
            "intended_span_ns": span_ns(self.intended),
            "started_span_ns": span_ns(self.started),
            "ended_span_ns": span_ns(self.ended),
        }
        raw.window_ns = self.closed_ns - self.opened_ns


def span_ns(stamps: Sequence[int]) -> int:
    """From the first to the last of the filled slots; they may be in any order."""
    there = [stamp for stamp in stamps if stamp]
    return max(there) - min(there) if there else 0


async def send(drive: Drive, method: Method, pairs: Pairs, due_ns: Sequence[int], max_in_flight: int) -> Traffic:
    """Makes a call at each of `due_ns` from now (plus a short lead), and waits for the answers.

    Raises Stalled when calls are under way and none ends for limits.call_s, ConnectionLost when one is gone.
    """
    if drive.timer is None:
        raise RuntimeError("an open loop needs a timer")
    opened = drive.clock() + LEAD_NS
    traffic = Traffic(array("q", [opened + due for due in due_ns]))
    traffic.opened_ns = opened
    sending = _Sending(drive, method, pairs, traffic, max_in_flight)
    callers = [sending.caller(peer) for peer in drive.callers()]
    await drive.bounded(all_of([*callers, sending.sender()]), sending.progress)
    traffic.closed_ns = max(drive.clock(), opened + 1)
    return traffic


class _Sending:
    """The sender, the callers (one per call that may be under way) and what is between them."""

    def __init__(self, drive: Drive, method: Method, pairs: Pairs, traffic: Traffic, max_in_flight: int) -> None:
        assert drive.timer is not None
        self._drive = drive
        self._timer = drive.timer
        self._method = method
        self._pairs = pairs
        self._traffic = traffic
        self._max_in_flight = max_in_flight
        self._waiting: deque[int] = deque()
        self._idle: deque[asyncio.Future[int | None]] = deque()
        self._in_system = 0
        self._over = 0
        self._noted_ns = traffic.opened_ns
        self._all_sent = False
        self._over_and_out = False
        self._empty: asyncio.Future[None] | None = None

    def progress(self) -> int:
        """Calls that are over; while none is waiting or under way there is nothing to be stuck, and time passes."""
        return self._over if self._in_system else self._drive.clock()

    async def sender(self) -> None:
        """Sends every call when it is due, and ends the callers when the last one is answered."""
        intended, clock, n = self._traffic.intended, self._drive.clock, len(self._traffic.intended)
        i = 0
        while i < n:
            await self._timer.until(intended[i])
            now = clock()
            while i < n and intended[i] <= now:  # all that are due by now: a late sender catches up at once
                self._send(i, now)
                i += 1
        self._all_sent = True
        if self._in_system:
            self._empty = asyncio.get_running_loop().create_future()
            await self._empty
        self._over_and_out = True
        for caller in self._idle:
            caller.set_result(None)

    def _send(self, i: int, now: int) -> None:
        if self._in_system >= self._max_in_flight:
            self._traffic.dropped += 1
            return
        self._note(now)
        self._in_system += 1
        self._traffic.sent[i] = now
        if self._idle:
            self._idle.popleft().set_result(i)
        else:
            self._waiting.append(i)

    def _note(self, now: int) -> None:
        """Adds the calls in the system to the sum over time, before their number changes."""
        self._traffic.in_system_ns += self._in_system * (now - self._noted_ns)
        self._noted_ns = now

    async def caller(self, peer: Peer) -> None:
        """One call after the other: those that wait, else the next one that it is given; None ends it."""
        loop, clock, unary = asyncio.get_running_loop(), self._drive.clock, peer.unary
        method, pairs, n = self._method, self._pairs, len(self._pairs)
        sent, started, ended = self._traffic.sent, self._traffic.started, self._traffic.ended
        while not self._over_and_out:
            given = None
            if self._waiting:
                i = self._waiting.popleft()
            else:
                place: asyncio.Future[int | None] = loop.create_future()
                self._idle.append(place)
                given = await place
                if given is None:
                    return
                i = given
            request, expected = pairs[i % n]
            started[i] = clock()
            if given is not None:
                sent[i] = started[i]
            try:
                reply = await unary(method, request)
                now = clock()
            except CALL_ERRORS as exc:
                now = clock()
                self._traffic.errors += 1
                self._drive.count_error(exc)
            else:
                if reply == expected:
                    ended[i] = now
                else:
                    self._traffic.errors += 1
                    errors = self._drive.raw.errors
                    errors["wrong_answer"] = errors.get("wrong_answer", 0) + 1
            self._note(now)
            self._in_system -= 1
            self._over += 1
            if self._all_sent and not self._in_system and self._empty is not None:
                self._empty.set_result(None)
