"""How fast does a stream flow on one connection, how evenly, and who holds what has not been consumed?"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from adapters.api import Codec, Message, Method, Peer
from adapters.messages import METHODS, Credit, StreamRequest, SymbolRequest
from runner.drive import CALL_ERRORS, Drive
from runner.fields import Count, Natural
from runner.operations.api import Operation, Raw, Summary, count_check, cpu_per_item, errors_check, samples_check
from runner.paging import PageSize, page_bytes, paged
from runner.quotes import quote
from runner.samples import NS_PER_S, NS_PER_US, filled, nearest_rank, slots

SYMBOL = "AAPL"
LOOK_EVERY = 64  # items between two looks at what the client holds
CREDIT = 16 * LOOK_EVERY  # application credit granted to a `credited` producer; half of it again when half is used


class Taken:
    """What arrived: `stamps[i]` of item i, allocated before the window; `items`, checked after it."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.stamps = slots(count)
        self.items: list[Message] = []
        self.asked_ns = 0


@dataclass(frozen=True, kw_only=True)
class Stream(Operation):
    """`count` quotes on one connection after a stream of `warmup` that is not kept.

    `consumer`: pull asks for each item when it has dealt with the last; eager has a background reader drain the
    connection into an inbox that the application empties. `producer`: see runner.service; paged: no stream at all,
    but calls, each for a page of `page` quotes when the next one is needed.
    """

    name: str
    count: Count
    warmup: Natural
    consumer: Literal["pull", "eager"]
    producer: Literal["awaited", "push", "gated", "credited", "paged"]
    page: PageSize

    one_connection: ClassVar[bool] = True

    def methods(self) -> list[Method]:
        return [METHODS["quote"], METHODS["run"], self._method()]

    def producer_style(self) -> str:
        return "awaited" if self.producer == "paged" else self.producer

    def largest_message_bytes(self, codec: Codec) -> int:
        return page_bytes(codec, SYMBOL, self.page, self.page) if self.producer == "paged" else 0

    def _method(self) -> Method:
        names = {"gated": "quotes.unbounded.ready", "credited": "quotes.credited", "paged": "quotes.page"}
        return METHODS[names.get(self.producer, "quotes")]

    async def drive(self, drive: Drive) -> None:
        if self.warmup:
            await drive.bounded(self._run(drive, Taken(self.warmup)), lambda: drive.consumed)
            drive.raw.errors.clear()
        drive.consumed = 0
        taken = Taken(self.count)
        await drive.ready()
        held = await drive.bounded(self._run(drive, taken), lambda: drive.consumed)
        drive.close_window()  # reads the CPU clock: checking and sorting out are not streaming
        stamps = filled(taken.stamps)
        _verify(drive, taken.items, self.count)
        drive.raw.counts |= {"messages": self.count, "arrived": len(stamps)}
        if stamps:
            drive.raw.window_ns = stamps[-1] - taken.asked_ns
            drive.raw.counts["first_ns"] = stamps[0] - taken.asked_ns
            drive.raw.samples["gap"] = [b - a for a, b in itertools.pairwise(stamps)]
        if held is not None:
            drive.raw.counts["held_max"] = held

    async def _run(self, drive: Drive, taken: Taken) -> int | None:
        """Fill `taken`. Returns the most that the client was seen to hold."""
        take = self._eager if self.consumer == "eager" else self._pull
        taken.asked_ns = drive.clock()
        try:
            return await take(drive, drive.peers[0], taken)
        except CALL_ERRORS as exc:
            drive.count_error(exc)
            return None

    def _open(self, peer: Peer, count: int, more: asyncio.Semaphore) -> AsyncGenerator[Message, None]:
        method = self._method()
        if self.producer == "gated":
            return peer.server_stream(method, SymbolRequest(SYMBOL))
        if self.producer == "credited":
            return peer.bidi_stream(method, _credits(count, more))
        if self.producer == "paged":
            return paged(peer, SYMBOL, self.page, deque(), count)
        return peer.server_stream(method, StreamRequest(SYMBOL, count))

    async def _pull(self, drive: Drive, peer: Peer, taken: Taken) -> int | None:
        clock, more, held = drive.clock, asyncio.Semaphore(0), peer.held()
        count, stamps, append = taken.count, taken.stamps, taken.items.append
        n = 0
        async with aclosing(self._open(peer, count, more)) as stream:
            async for item in stream:
                if n == count:
                    append(item)  # one too many: _verify counts it
                    break
                stamps[n] = clock()
                append(item)
                n += 1
                if not n % LOOK_EVERY:
                    drive.consumed = n
                    if held is not None:
                        held = max(held, peer.held() or 0)
                    if not n % (CREDIT // 2):
                        more.release()
                if n == count and self.producer in ("gated", "credited"):
                    break  # endless: nothing says that it is over
        return held

    async def _eager(self, drive: Drive, peer: Peer, taken: Taken) -> int | None:
        count, stamps, items = taken.count, taken.stamps, taken.items
        inbox, clock, more, arrived = drive.inbox, drive.clock, asyncio.Semaphore(0), asyncio.Event()
        endless = self.producer in ("gated", "credited")

        async def read() -> None:
            n = 0
            async with aclosing(self._open(peer, count, more)) as stream:
                async for item in stream:
                    if n < count:
                        stamps[n] = clock()
                    inbox.append(item)
                    n += 1
                    arrived.set()
                    if not n % (CREDIT // 2):
                        more.release()
                    if n == count and endless:
                        return

        reader = asyncio.create_task(read())
        reader.add_done_callback(lambda _: arrived.set())
        held = 0
        try:
            while True:
                waiting = len(inbox) + (peer.held() or 0)
                held = max(held, waiting)
                for _ in range(min(len(inbox), LOOK_EVERY)):
                    items.append(inbox.popleft())
                drive.consumed = len(items)
                if not inbox:
                    if reader.done():
                        reader.result()
                        return held
                    arrived.clear()
                    await arrived.wait()
                else:
                    await asyncio.sleep(0)
        finally:
            reader.cancel()
            await asyncio.wait([reader])

    def summarize(self, raw: Raw, codec: Codec, conditions: dict[str, Any]) -> Summary:
        arrived = raw.counts.get("arrived", 0)
        summary = Summary(findings={"producer": self.producer, "consumer": self.consumer})
        summary.measurements["messages"] = (arrived, "messages")
        summary.measurements["errors"] = (sum(raw.errors.values()), "messages")
        said = f"{arrived:,} messages arrived, {self.count:,} were asked for"
        summary.checks += [*errors_check(sum(raw.errors.values()), self.count), samples_check(self.count)]
        summary.checks.append(count_check("messages", arrived, self.count, said))
        if not arrived or raw.window_ns <= 0:
            return summary
        summary.measurements |= {
            "seconds": (raw.window_ns / NS_PER_S, "s"),
            "messages_per_s": (arrived * NS_PER_S / raw.window_ns, "1/s"),
            "us_per_message": (raw.window_ns / arrived / NS_PER_US, "us"),
        }
        if "first_ns" in raw.counts:
            summary.measurements["first_ms"] = (raw.counts["first_ns"] / 1e6, "ms")
        gap = nearest_rank(sorted(raw.samples.get("gap", [])), 99.0)
        if gap is not None:
            summary.measurements["gap_p99_us"] = (gap / NS_PER_US, "us")
        if "held_max" in raw.counts:
            summary.measurements["client_held_max"] = (raw.counts["held_max"], "messages")
        summary.measurements |= cpu_per_item(raw, arrived)
        if arrived == self.count:
            if self.producer == "paged":
                sizes = page_bytes(codec, SYMBOL, self.page, self.count)
            else:
                sizes = sum(len(codec.encode(quote(SYMBOL, seq))) for seq in range(self.count))
            summary.measurements["payload_bytes"] = (sizes / self.count, "bytes")
        busy = {side: spent.get("cpu_ns", 0) for side, spent in raw.usage.items()}
        if busy.get("server") is not None and busy.get("driver") is not None:
            summary.findings["bound"] = "driver" if busy["driver"] >= busy["server"] else "server"
        return summary


async def _credits(count: int, more: asyncio.Semaphore) -> AsyncGenerator[Credit, None]:
    """Exactly `count` in all: CREDIT at first, then half of it each time half has been used."""
    granted = min(CREDIT, count)
    yield Credit(SYMBOL, granted)
    while granted < count:
        await more.acquire()
        step = min(CREDIT // 2, count - granted)
        granted += step
        yield Credit(SYMBOL, step)
    await asyncio.Event().wait()  # the end of the credits would end the stream: the reader closes it instead


def _verify(drive: Drive, items: list[Message], count: int) -> None:
    """Number, order and content of what arrived; whatever is not as asked for is an error."""
    wrong = sum(item != quote(SYMBOL, seq) for seq, item in enumerate(items[:count]))
    for kind, n in {
        "wrong_message": wrong,
        "missing_message": max(count - len(items), 0),
        "surplus_message": max(len(items) - count, 0),
    }.items():
        if n:
            drive.raw.errors[kind] = drive.raw.errors.get(kind, 0) + n
