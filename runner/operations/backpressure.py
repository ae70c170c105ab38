"""When the consumer stops keeping up, what happens? A client takes `asked` messages of an endless stream and
goes quiet: how many did the server produce, where is the surplus, and what bounded it?

The driver half takes the messages and stays quiet; the supervisor watches both processes meanwhile
(runner.operations.watch), over their control channels, never over the stalled connection.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from adapters.api import Codec, Message, Method
from adapters.messages import METHODS, Credit, SymbolRequest
from runner.drive import CALL_ERRORS, Drive
from runner.fields import Count, Seconds
from runner.operations.api import Operation, Raw, Summary, count_check
from runner.operations.watch import Look, Watch, watch
from runner.paging import PageSize, page_bytes, paged
from runner.quotes import quote

SYMBOL = "AAPL"
MEAN_OF = 1_000  # quotes whose encoded sizes are averaged to turn bytes into messages


@dataclass(frozen=True, kw_only=True)
class Backpressure(Operation):
    """Ask for `asked`, then be quiet; report after each of `quiet_s`; then watch for at most `settle_s` more
    until the count stands still. `mark`: the gate of a `gated` producer, in messages. `page`: messages in a page
    of a `paged` one, never more than are asked for.
    """

    name: str
    asked: Count
    quiet_s: Annotated[list[Seconds], Meta(min_length=1)]
    settle_s: Seconds
    producer: Literal["awaited", "push", "gated", "credited", "paged"]
    consumer: Literal["pull", "eager"]
    mark: Count
    page: PageSize

    watched: ClassVar[bool] = True
    one_connection: ClassVar[bool] = True

    def problems(self) -> list[str]:
        if not all(math.isfinite(quiet) for quiet in self.quiet_s):
            return ["quiet_s: every period must be a finite number of seconds"]
        if sorted(set(self.quiet_s)) != list(self.quiet_s):
            return [f"quiet_s: periods must increase, got {list(self.quiet_s)}; write them in order, each once"]
        return []

    def methods(self) -> list[Method]:
        return [METHODS["quote"], METHODS["run"], self._method()]

    def credit(self) -> int | None:
        # With application credit, that is what bounds; the connection's own must not come first.
        return None if self.producer == "credited" else self.asked

    def producer_style(self) -> str:
        return "awaited" if self.producer == "paged" else self.producer

    def largest_message_bytes(self, codec: Codec) -> int:
        return page_bytes(codec, SYMBOL, self._page, self._page) if self.producer == "paged" else 0

    @property
    def _page(self) -> int:
        return min(self.page, self.asked)

    @property
    def _demand(self) -> int:
        """Messages that the reader asks for: whole pages of them, where it asks for pages."""
        return -(-self.asked // self._page) * self._page if self.producer == "paged" else self.asked

    def gate_mark(self) -> int:
        return self.mark

    def _method(self) -> Method:
        names = {"gated": "quotes.unbounded.ready", "credited": "quotes.credited", "paged": "quotes.page"}
        return METHODS[names.get(self.producer, "quotes.unbounded")]

    def _open(self, drive: Drive) -> AsyncGenerator[Message, None]:
        peer = drive.peers[0]
        if self.producer == "paged":
            # The rest of a page waits in the inbox, where it is counted; an eager reader takes it out at once.
            return paged(peer, SYMBOL, self._page, drive.inbox if self.consumer == "pull" else deque())
        if self.producer == "credited":
            return peer.bidi_stream(self._method(), _one_credit(self.asked))
        return peer.server_stream(self._method(), SymbolRequest(SYMBOL))

    async def drive(self, drive: Drive) -> None:
        await drive.ready()
        watched = False
        try:
            async with aclosing(self._open(drive)) as stream:
                await drive.bounded(self._take(drive, stream), lambda: drive.consumed)
                reader = asyncio.create_task(_drain(drive, stream)) if self.consumer == "eager" else None
                await drive.quiet()
                drive.close_window()
                watched = True
                if reader is not None:
                    if reader.done() and not reader.cancelled() and (exc := reader.exception()):
                        drive.count_error(exc if isinstance(exc, Exception) else RuntimeError(str(exc)))
                    reader.cancel()
                    await asyncio.wait([reader])
        except CALL_ERRORS as exc:
            if not watched:  # nobody has gone quiet: there is nothing to be said but this
                raise
            drive.count_error(exc)

    async def _take(self, drive: Drive, stream: AsyncGenerator[Message, None]) -> None:
        for seq in range(self.asked):
            item = await anext(stream, None)
            if item != quote(SYMBOL, seq):
                drive.raw.errors["wrong_message"] = drive.raw.errors.get("wrong_message", 0) + 1
            drive.consumed = seq + 1

    def watch(self, raw: Raw, quiet_ns: int, ceiling_bytes: int, look: Look) -> None:
        seen = Watch(self._demand, self.quiet_s, self.settle_s, quiet_ns, ceiling_bytes)
        watch(seen, look)
        seen.into(raw)

    def mean_bytes(self, codec: Codec, produced: int) -> float:
        """Mean encoded size of the quotes from `asked` to `produced` (sizes vary with seq), of MEAN_OF of them."""
        step = max((produced - self.asked) // MEAN_OF, 1)
        sizes = [len(codec.encode(quote(SYMBOL, seq))) for seq in range(self.asked, produced, step)]
        return sum(sizes) / len(sizes) if sizes else float(len(codec.encode(quote(SYMBOL, self.asked))))

    def summarize(self, raw: Raw, codec: Codec, conditions: dict[str, Any]) -> Summary:
        summary = Summary(
            findings={"producer": self.producer, "consumer": self.consumer, **raw.facts},
            series=dict(raw.series),
        )
        errors = sum(raw.errors.values())
        summary.measurements |= {"asked": (self.asked, "messages"), "errors": (errors, "messages")}
        said = f"{errors:,} of the {self.asked:,} messages taken were wrong or missing"
        summary.checks.append(count_check("errors", errors, 0, said))
        produced = raw.counts.get("produced")
        if produced is None:
            summary.checks.append(count_check("watched", 0, 1, "the watch did not finish"))
            return summary
        if not raw.facts["bounded_by"]:
            del summary.findings["bounded_by"]
            summary.checks.append(count_check("watched", 0, 1, raw.facts["bound_reason"]))
            return summary
        bounded_by = raw.facts["bounded_by"]
        if bounded_by != "nothing":
            surplus = max(produced - self.asked, 0)
            size = self.mean_bytes(codec, produced) * surplus
            summary.measurements |= {
                "plateau_messages": (surplus, "messages"),
                "plateau_bytes": (round(size), "bytes"),
                "plateau_after_s": (raw.counts["plateau_after_ns"] / 1e9, "s"),
            }
        for side in ("server", "driver"):
            if f"{side}_rss_growth_bytes" in raw.counts:
                name = f"{side}_rss_growth_bytes"
                summary.measurements[name] = (raw.counts[name], "bytes")
            if peak := raw.usage.get(side, {}).get("peak_rss_bytes"):
                summary.measurements[f"{side}_peak_rss_bytes"] = (peak, "bytes")
        wire = max(self.mean_bytes(codec, produced) + conditions["frame_bytes"], 1.0)
        for place, n in self._ledger(raw, produced, wire).items():
            summary.measurements[f"surplus_{place}"] = (n, "messages")
        return summary

    def _ledger(self, raw: Raw, produced: int, wire_bytes: float) -> dict[str, int]:
        """Where the messages are that were made and not consumed, at the end of the watch.

        Exact for our own buffers and for queues that a library shows; bytes / mean wire size for sockets. A
        library that hides its queue is charged with what it has read from its socket and not handed on. What
        does not add up is unaccounted, with its sign.
        """
        last = raw.counts
        total = produced - last["consumed"]
        server = last["outbound"] + last["backlog_messages"] + last["backlog_bytes"] / wire_bytes
        kernel = (last["send_queue_bytes"] + last["receive_queue_bytes"]) / wire_bytes
        if self.producer == "paged":
            library = 0.0  # an answer is handed on as a whole
        elif "held" in last:
            library = float(last["held"])
        elif "read_bytes" in last:
            library = max(last["read_bytes"] / wire_bytes - last["consumed"] - last["inbox"], 0.0)
        else:
            library = 0.0
        places = {"server": round(server), "client": round(last["inbox"] + library), "kernel": round(kernel)}
        return {**places, "unaccounted": total - sum(places.values())}


async def _one_credit(n: int) -> AsyncGenerator[Credit, None]:
    yield Credit(SYMBOL, n)
    await asyncio.Event().wait()  # the end of the credits would end the stream


async def _drain(drive: Drive, stream: AsyncGenerator[Message, None]) -> None:
    """The eager reader: everything that comes goes into the inbox, asked for by nobody."""
    async for item in stream:
        drive.inbox.append(item)
