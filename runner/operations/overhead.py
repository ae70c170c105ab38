"""What does bakeoff itself cost? The exchanges of request_response and stream, by bakeoff or by a hand-written loop
over the same library in the same processes, with the same codec, event loop, placement and counts.

The hand-written loop stamps and checks every call, as anybody must who wants a latency; of a stream it counts what
came. Everything else (the seam, the service, limits, errors by kind, stamps of every message) is what is measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from operator import length_hint
from typing import Any, Literal

from adapters.api import Codec, Exchange
from adapters.messages import StreamRequest
from runner.drive import Drive, tickets
from runner.fields import Limits, Load
from runner.operations.api import Operation, Raw, Summary
from runner.operations.exchange import SYMBOL
from runner.operations.request_response import RequestResponse
from runner.operations.stream import Stream
from runner.samples import filled, slots

DrivenBy = Literal["bakeoff", "hand_written"]


@dataclass(frozen=True, kw_only=True)
class CallOverhead(RequestResponse):
    """As RequestResponse. `driven_by`: whose loop makes the calls, at both ends."""

    driven_by: DrivenBy

    @property
    def hand_written(self) -> bool:
        return self.driven_by == "hand_written"

    def problems(self) -> list[str]:
        found = super().problems()
        if self.hand_written and self.size_bytes is not None:
            found.append("size_bytes: the hand-written loop asks for quotes; leave it null")
        return found

    def load_problems(self, load: Load, limits: Limits) -> list[str]:
        return Operation.load_problems(self, load, limits)  # the hand-written loop is a closed one

    async def drive(self, drive: Drive) -> None:
        exchange = drive.exchange
        if exchange is None:
            await super().drive(drive)
            return
        _, pairs = self._exchange()

        async def calls(todo: Iterator[int], values: Any) -> None:
            clock, call, n = drive.clock, exchange.call, len(pairs)
            for i in todo:
                request, expected = pairs[i % n]
                started = clock()
                reply = await call(request)
                ended = clock()
                if reply == expected:
                    values[i] = ended - started
                else:
                    drive.raw.errors["wrong_answer"] = drive.raw.errors.get("wrong_answer", 0) + 1

        todo = tickets(self.warmup)
        await drive.bounded(calls(todo, slots(self.warmup)), lambda: length_hint(todo))
        drive.raw.errors.clear()
        opened = await drive.ready()
        values, kept = slots(self.count), tickets(self.count)
        await drive.bounded(calls(kept, values), lambda: length_hint(kept))
        drive.close_window()
        drive.raw.window_ns = drive.clock() - opened
        drive.raw.samples["latency"] = filled(values)
        drive.raw.counts["calls"] = self.count

    def summarize(self, raw: Raw, codec: Codec, conditions: dict[str, Any]) -> Summary:
        summary = super().summarize(raw, codec, conditions)
        summary.findings["driven_by"] = self.driven_by
        return summary


@dataclass(frozen=True, kw_only=True)
class StreamOverhead(Stream):
    """As Stream. `driven_by`: whose loop sends and takes the messages."""

    driven_by: DrivenBy

    @property
    def hand_written(self) -> bool:
        return self.driven_by == "hand_written"

    def problems(self) -> list[str]:
        found = super().problems()
        if self.hand_written and (self.consumer, self.producer) != ("pull", "awaited"):
            found.append("driven_by: a hand-written stream has consumer=pull and producer=awaited only")
        if self.streams != 1:
            found.append("streams: what one stream costs is measured; leave it 1")
        return found

    async def drive(self, drive: Drive) -> None:
        exchange = drive.exchange
        if exchange is None:
            await super().drive(drive)
            return
        if self.warmup:
            await drive.bounded(_stream(exchange, self.warmup), lambda: 0)
        await drive.ready()
        asked = drive.clock()
        arrived = await drive.bounded(_stream(exchange, self.count), lambda: 0)
        ended = drive.clock()
        drive.close_window()
        drive.raw.window_ns = ended - asked
        drive.raw.counts |= {"messages": self.count, "arrived": arrived}

    def summarize(self, raw: Raw, codec: Codec, conditions: dict[str, Any]) -> Summary:
        summary = super().summarize(raw, codec, conditions)
        summary.findings["driven_by"] = self.driven_by
        return summary


async def _stream(exchange: Exchange, count: int) -> int:
    return await exchange.stream(StreamRequest(SYMBOL, count))
