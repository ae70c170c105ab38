"""How fast do streams flow, on one connection or on several, how evenly, and who holds what was not consumed?"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from adapters.api import Codec, Message, Method, Peer
from adapters.messages import METHODS, Credit, StreamRequest, SymbolRequest
from runner.drive import CALL_ERRORS, Drive, all_of
from runner.fields import Count, Load, Natural
from runner.operations.api import Operation, Raw, Summary, count_check, cpu_per_item, errors_check, samples_check
from runner.operations.taken import SYMBOL, Held, Taken, shares, sort_out
from runner.paging import PageSize, page_bytes, paged
from runner.quotes import quote
from runner.samples import NS_PER_S, NS_PER_US, rank

LOOK_EVERY = 64  # items between two looks at what the client holds
CREDIT = 16 * LOOK_EVERY  # application credit granted to a `credited` producer; half of it again when half is used


@dataclass(frozen=True, kw_only=True)
class Stream(Operation):
    """`count` quotes after `warmup` that are not kept, both shared out between `streams` at a time: a connection
    each, or one for all with load.multiplex.

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
    streams: Count = 1

    connections_key: ClassVar[str] = "operation.streams"

    def methods(self) -> list[Method]:
        return [METHODS["quote"], METHODS["run"], self._method()]

    def at_a_time(self, load: Load) -> int:
        return self.streams

    def problems(self) -> list[str]:
        few = [f"{name}: {n} cannot be shared out" for name, n in (("count", self.count), ("warmup", self.warmup))]
        short = [
            said for said, n in zip(few, (self.count, self.warmup or self.streams), strict=True) if n < self.streams
        ]
        return [f"{said} between {self.streams} streams; raise it, or lower operation.streams" for said in short]

    def producer_style(self) -> str:
        return "awaited" if self.producer == "paged" else self.producer

    def largest_message_bytes(self, codec: Codec) -> int:
        return page_bytes(codec, SYMBOL, self.page, self.page) if self.producer == "paged" else 0

    def _method(self) -> Method:
        names = {"gated": "quotes.unbounded.ready", "credited": "quotes.credited", "paged": "quotes.page"}
        return METHODS[names.get(self.producer, "quotes")]

    async def drive(self, drive: Drive) -> None:
        if self.warmup:
            warm = [Taken(n) for n in shares(self.warmup, self.streams)]
            await drive.bounded(self._run(drive, warm), lambda: drive.consumed)
            drive.raw.errors.clear()
        drive.consumed = 0
        taken = [Taken(n) for n in shares(self.count, self.streams)]
        await drive.ready()
        held = await drive.bounded(self._run(drive, taken), lambda: drive.consumed)
        drive.close_window()  # reads the CPU clock: checking and sorting out are not streaming
        sort_out(drive, taken)
        if held is not None:
            drive.raw.counts["held_max"] = held

    async def _run(self, drive: Drive, taken: Sequence[Taken]) -> int | None:
        """Fill each of `taken` by a stream of its own. Returns the most that the client was seen to hold."""
        held = Held()
        peers = drive.peers[:1] * len(taken) if drive.load.multiplex else drive.peers
        take = self._eager if self.consumer == "eager" else self._pull

        async def one(peer: Peer, each: Taken) -> None:
            each.asked_ns = drive.clock()
            try:
                await take(drive, peer, each, held)
            except CALL_ERRORS as exc:
                drive.count_error(exc)

        await all_of([one(peer, each) for peer, each in zip(peers, taken, strict=True)])
        return held.most

    def _open(self, peer: Peer, count: int, more: asyncio.Semaphore) -> AsyncGenerator[Message, None]:
        method = self._method()
        if self.producer == "gated":
            return peer.server_stream(method, SymbolRequest(SYMBOL))
        if self.producer == "credited":
            return peer.bidi_stream(method, _credits(count, more))
        if self.producer == "paged":
            return paged(peer, SYMBOL, self.page, deque(), count)
        return peer.server_stream(method, StreamRequest(SYMBOL, count))

    async def _pull(self, drive: Drive, peer: Peer, taken: Taken, held: Held) -> None:
        clock, more, place = drive.clock, asyncio.Semaphore(0), id(peer)
        count, stamps, append = taken.count, taken.stamps, taken.items.append
        hidden = peer.held() is None
        if not hidden:
            held.saw((place, peer.held() or 0))
        n = 0
        async with aclosing(self._open(peer, count, more)) as stream:
            async for item in stream:
                if n == count:
                    append(item)  # one too many: it is counted when what arrived is sorted out
                    break
                stamps[n] = clock()
                append(item)
                n += 1
                if not n % LOOK_EVERY:
                    drive.consumed += LOOK_EVERY
                    if not hidden:
                        held.saw((place, peer.held() or 0))
                    if not n % (CREDIT // 2):
                        more.release()
                if n == count and self.producer in ("gated", "credited"):
                    break  # endless: nothing says that it is over

    async def _eager(self, drive: Drive, peer: Peer, taken: Taken, held: Held) -> None:
        count, stamps, items = taken.count, taken.stamps, taken.items
        inbox: deque[Message] = deque()
        clock, more, arrived = drive.clock, asyncio.Semaphore(0), asyncio.Event()
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
        try:
            while True:
                held.saw((id(inbox), len(inbox)), (id(peer), peer.held() or 0))
                some = min(len(inbox), LOOK_EVERY)
                for _ in range(some):
                    items.append(inbox.popleft())
                drive.consumed += some
                if not inbox:
                    if reader.done():
                        reader.result()
                        return
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
        for name in ("first", "first_max", "fastest", "slowest"):
            if f"{name}_ns" in raw.counts:
                summary.measurements[f"{name}_ms"] = (raw.counts[f"{name}_ns"] / 1e6, "ms")
        gap = rank(raw.values("gap"), 99.0)
        if gap is not None:
            summary.measurements["gap_p99_us"] = (gap / NS_PER_US, "us")
        if "held_max" in raw.counts:
            summary.measurements["client_held_max"] = (raw.counts["held_max"], "messages")
        summary.measurements |= cpu_per_item(raw, arrived)
        if arrived == self.count:
            sizes = sum(
                self._payload_bytes(codec, n) * times
                for n, times in Counter(shares(self.count, self.streams)).items()
            )
            summary.measurements["payload_bytes"] = (sizes / self.count, "bytes")
        busy = {side: spent.get("cpu_ns", 0) for side, spent in raw.usage.items()}
        if busy.get("server") is not None and busy.get("driver") is not None:
            summary.findings["bound"] = "driver" if busy["driver"] >= busy["server"] else "server"
        return summary

    def _payload_bytes(self, codec: Codec, count: int) -> int:
        """The encoded messages of one stream of `count` quotes."""
        if self.producer == "paged":
            return page_bytes(codec, SYMBOL, self.page, count)
        return sum(len(codec.encode(quote(SYMBOL, seq))) for seq in range(count))


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
