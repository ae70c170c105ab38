"""The closed loop: each caller has one call under way, and makes the next when the last one is answered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import length_hint
from typing import Any

from adapters.api import Message, Method, Peer
from runner.checks import Check
from runner.drive import CALL_ERRORS, Drive, all_of, tickets
from runner.operations.api import Raw, Summary, count_check, cpu_per_item, errors_check, samples_check
from runner.samples import NS_PER_S, filled, latency_measurements, slots, total

LITTLE_BAND = 0.10
LITTLE_CALLS = 100  # per caller: with fewer, starting and ending are a visible part of the window
LOOP_NS = 1_000  # stamps, checks and the loop between two calls of one caller

Pairs = Sequence[tuple[Message, Message]]  # (request, the only right answer)


async def calls(drive: Drive, method: Method, pairs: Pairs, count: int) -> tuple[Any, int, int]:
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


async def measure(drive: Drive, method: Method, pairs: Pairs, count: int) -> None:
    """The window: `count` calls, kept as `latency`, and the closing of it."""
    values, opened, closed = await calls(drive, method, pairs, count)
    drive.close_window()  # the CPU clock; the window itself is from the first caller's start to the last's end
    drive.raw.window_ns = closed - opened
    drive.raw.samples["latency"] = filled(values)
    drive.raw.counts["calls"] = count


async def _call(
    drive: Drive,
    peer: Peer,
    method: Method,
    pairs: Pairs,
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


def closed_summary(raw: Raw, conditions: dict[str, Any], noun: str = "calls") -> Summary:
    """Times, rate and cost of the calls, and what the verdict rests on. `noun`: what a call is called."""
    latencies = raw.values("latency")
    made, n = raw.counts.get("calls", 0), len(latencies)
    summary = Summary(measurements=latency_measurements(latencies))
    errors = sum(raw.errors.values())
    summary.measurements |= {"n": (n, noun), "errors": (errors, noun)}
    said = f"{n + errors:,} {noun} were counted, {made:,} were asked for"
    summary.checks += [
        *errors_check(errors, made),
        samples_check(made),
        count_check("calls", n + errors, made, said),
    ]
    if not n or raw.window_ns <= 0:
        return summary
    rate = n * NS_PER_S / raw.window_ns
    summary.measurements[f"{noun}_per_s"] = (rate, "1/s")
    summary.measurements |= cpu_per_item(raw, made)
    mean = total(latencies) / n
    in_flight = rate * mean / NS_PER_S
    connections = int(conditions.get("connections", 1))
    # Little's law: calls in flight = rate x mean latency. In a closed loop that is the number of callers.
    # What the loop itself spends between calls is allowed for; it shows only where a call costs no more.
    between = abs(connections * NS_PER_S / rate - mean)
    if not errors and made >= LITTLE_CALLS * connections:
        ratio = in_flight / connections
        passed = abs(ratio - 1) <= LITTLE_BAND or between <= LOOP_NS * connections
        said = f"rate x mean latency is {in_flight:.2f}, {connections} expected (Little's law, within 10 %)"
        law = Check("littles_law", ratio, "x", passed, said, 1 - LITTLE_BAND, 1 + LITTLE_BAND)
        summary.checks.append(law)
    return summary
