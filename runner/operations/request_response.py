"""How long does one call take?

Closed loop: each connection has one call under way, and makes the next when the last one is answered. The cost of a
stall is hidden by construction (a slow answer delays the calls that would have met it): a closed loop measures
service time, not what an arriving user would wait. Open loop: runner.operations.open_loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from operator import length_hint
from typing import Any, ClassVar, Literal

from adapters.api import Codec, Message, Method, Peer
from adapters.messages import METHODS
from runner.arrivals import due_ns, open_problems, seed_of
from runner.checks import Check
from runner.drive import CALL_ERRORS, Drive, all_of, tickets
from runner.fields import Count, Limits, Load, Milliseconds, Natural, OpenLoad
from runner.operations.api import (
    Operation,
    Raw,
    Summary,
    count_check,
    cpu_per_item,
    errors_check,
    samples_check,
)
from runner.operations.exchange import exchange
from runner.operations.open_loop import send
from runner.operations.open_results import open_checks, open_measurements
from runner.samples import NS_PER_S, filled, latency_measurements, slots

LITTLE_BAND = 0.10
LITTLE_CALLS = 100  # per caller: with fewer, starting and ending are a visible part of the window
LOOP_NS = 1_000  # stamps, checks and the loop between two calls of one caller


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
        await self._calls(drive, method, pairs, self.warmup)
        drive.raw.errors.clear()
        await drive.ready()
        if isinstance(drive.load, OpenLoad):
            await self._open(drive, drive.load, method, pairs)
            return
        values, opened, closed = await self._calls(drive, method, pairs, self.count)
        drive.close_window()  # the CPU clock; the window itself is from the first caller's start to the last's end
        drive.raw.window_ns = closed - opened
        drive.raw.samples["latency"] = filled(values)
        drive.raw.counts["calls"] = self.count

    async def _open(
        self, drive: Drive, load: OpenLoad, method: Method, pairs: list[tuple[Message, Message]]
    ) -> None:
        due = due_ns(load, self.count, seed_of(load) or 0)
        traffic = await send(drive, method, pairs, due, load.max_in_flight)
        drive.close_window()
        drive.raw.facts |= {"arrival": load.arrival, "timer": drive.timer.name if drive.timer else ""}
        traffic.into(drive.raw)

    async def _calls(
        self, drive: Drive, method: Method, pairs: list[tuple[Message, Message]], count: int
    ) -> tuple[Any, int, int]:
        """Make `count` calls. Returns what each took, and when the first caller began and the last one ended."""
        values, todo = slots(count), tickets(count)
        began: list[int] = []
        ended: list[int] = []

        async def caller(peer: Peer) -> None:
            began.append(drive.clock())
            await _call(drive, peer, method, pairs, todo, values)
            ended.append(drive.clock())

        work = all_of([caller(peer) for peer in drive.callers()])
        await drive.bounded(work, lambda: count - length_hint(todo))
        return values, began[0], ended[-1]

    def summarize(self, raw: Raw, codec: Codec, conditions: dict[str, Any]) -> Summary:
        summary = self._open_summary(raw) if "arrival" in raw.facts else self._closed_summary(raw, conditions)
        if self.size_bytes is not None:
            summary.measurements["size_bytes"] = (self.size_bytes, "bytes")
        if raw.samples.get("latency") and raw.window_ns > 0:
            replies = [reply for _, reply in self._exchange()[1]]
            sizes = sum(len(codec.encode(reply)) for reply in replies)
            summary.measurements["payload_bytes"] = (sizes / len(replies), "bytes")
        return summary

    def _open_summary(self, raw: Raw) -> Summary:
        return Summary(open_measurements(raw), {"timer": raw.facts["timer"]}, checks=open_checks(raw))

    def _closed_summary(self, raw: Raw, conditions: dict[str, Any]) -> Summary:
        latencies, calls = raw.samples.get("latency", []), raw.counts.get("calls", 0)
        summary = Summary(measurements=latency_measurements(latencies))
        errors = sum(raw.errors.values())
        summary.measurements |= {
            "n": (len(latencies), "calls"),
            "errors": (errors, "calls"),
        }
        counted = len(latencies) + errors
        said = f"{counted:,} calls were counted, {calls:,} were asked for"
        summary.checks += [*errors_check(errors, calls), samples_check(calls)]
        summary.checks.append(count_check("calls", counted, calls, said))
        if not latencies or raw.window_ns <= 0:
            return summary
        rate = len(latencies) * NS_PER_S / raw.window_ns
        summary.measurements["calls_per_s"] = (rate, "1/s")
        summary.measurements |= cpu_per_item(raw, calls)
        mean = sum(latencies) / len(latencies)
        in_flight = rate * mean / NS_PER_S
        connections = int(conditions.get("connections", 1))
        # Little's law: calls in flight = rate x mean latency. In a closed loop that is the number of callers.
        # What the loop itself spends between calls is allowed for; it shows only where a call costs no more.
        between = abs(connections * NS_PER_S / rate - mean)
        steady = not errors and calls >= LITTLE_CALLS * connections
        if steady:
            ratio = in_flight / connections
            passed = abs(ratio - 1) <= LITTLE_BAND or between <= LOOP_NS * connections
            said = f"rate x mean latency is {in_flight:.2f}, {connections} expected (Little's law, within 10 %)"
            law = Check("littles_law", ratio, "x", passed, said, 1 - LITTLE_BAND, 1 + LITTLE_BAND)
            summary.checks.append(law)
        return summary


async def _call(
    drive: Drive,
    peer: Peer,
    method: Method,
    pairs: list[tuple[Message, Message]],
    todo: Iterator[int],
    values: Any,
) -> None:
    """One caller. `values[i]` gets the nanoseconds of call i; it stays 0 when the call failed."""
    clock, unary, n = drive.clock, peer.unary, len(pairs)
    for i in todo:
        request, expected = pairs[i % n]
        try:
            started = clock()
            reply = await unary(method, request)
            ended = clock()
        except CALL_ERRORS as exc:
            drive.count_error(exc)
            continue
        if reply == expected:
            values[i] = ended - started
        else:
            drive.raw.errors["wrong_answer"] = drive.raw.errors.get("wrong_answer", 0) + 1
