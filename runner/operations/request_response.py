"""How long does one call take?

Closed loop: each connection has one call under way, and makes the next when the last one is answered. The cost of a
stall is hidden by construction (a slow answer delays the calls that would have met it): a closed loop measures
service time, not what an arriving user would wait. Open loop: runner.operations.open_loop.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from adapters.api import Codec, Message, Method
from adapters.messages import METHODS
from runner.arrivals import due_ns, open_problems, seed_of
from runner.drive import Drive
from runner.fields import Count, Limits, Load, Milliseconds, Natural, OpenLoad
from runner.operations.api import Operation, Raw, Summary
from runner.operations.closed_loop import calls, closed_summary, measure
from runner.operations.exchange import exchange
from runner.operations.open_loop import send
from runner.operations.open_results import open_checks, open_measurements


@dataclass(frozen=True, kw_only=True)
class RequestResponse(Operation):
    """`count` calls after `warmup` that are not kept (one at a time on each connection, in an open loop too; there
    load.duration_s may say how long instead of how many). `size_bytes`: null asks for a quote, a number has a body
    of that size echoed. `service_time_ms`: how long the service takes for a quote; `service_work`: waiting, as for
    a database, or busy, as with a computation.
    """

    name: str
    count: Count
    warmup: Natural
    size_bytes: Natural | None
    service_time_ms: Milliseconds = 0.0
    service_work: Literal["wait", "busy"] = "wait"

    prefers_one_core: ClassVar[bool] = True

    def methods(self) -> list[Method]:
        return [METHODS["quote"], METHODS["run"], METHODS["echo" if self.size_bytes is not None else "quote"]]

    def largest_message_bytes(self, codec: Codec) -> int:
        return self.size_bytes or 0

    def work(self) -> tuple[float, str]:
        return self.service_time_ms, self.service_work

    def problems(self) -> list[str]:
        if self.service_time_ms and self.size_bytes is not None:
            return ["service_time_ms: only a quote takes a service time; leave size_bytes null, or this 0"]
        return []

    def load_problems(self, load: Load, limits: Limits) -> list[str]:
        return open_problems(load, limits, self.count) if isinstance(load, OpenLoad) else []

    def _exchange(self) -> tuple[Method, list[tuple[Message, Message]]]:
        return exchange(self.size_bytes)

    async def drive(self, drive: Drive) -> None:
        method, pairs = self._exchange()
        await calls(drive, method, pairs, self.warmup)
        drive.raw.errors.clear()
        await drive.ready()
        if isinstance(drive.load, OpenLoad):
            await self._open(drive, drive.load, method, pairs)
            return
        await measure(drive, method, pairs, self.count)

    async def _open(
        self, drive: Drive, load: OpenLoad, method: Method, pairs: list[tuple[Message, Message]]
    ) -> None:
        due = due_ns(load, self.count, seed_of(load) or 0)
        traffic = await send(drive, method, pairs, due, load.max_in_flight)
        drive.close_window()
        drive.raw.facts |= {"arrival": load.arrival, "timer": drive.timer.name if drive.timer else ""}
        traffic.into(drive.raw)

    def summarize(self, raw: Raw, codec: Codec, conditions: dict[str, Any]) -> Summary:
        summary = self._open_summary(raw) if "arrival" in raw.facts else closed_summary(raw, conditions)
        if self.size_bytes is not None:
            summary.measurements["size_bytes"] = (self.size_bytes, "bytes")
        if len(raw.values("latency")) and raw.window_ns > 0:
            replies = [reply for _, reply in self._exchange()[1]]
            sizes = sum(len(codec.encode(reply)) for reply in replies)
            summary.measurements["payload_bytes"] = (sizes / len(replies), "bytes")
        return summary

    def _open_summary(self, raw: Raw) -> Summary:
        return Summary(open_measurements(raw), {"timer": raw.facts["timer"]}, checks=open_checks(raw))
