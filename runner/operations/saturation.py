"""The highest rate of calls that keeps an objective: an open loop, a search over its rate, and who was the limit.

Each rate is tried for `step_s`; it is kept when the response time's p99 is at most `slo_p99_ms` (below 100 calls:
the longest), at most 1 % of the calls failed, none was dropped, and the answers came at 98 % of the rate of the
calls or more, as a queue that still grows is not sustained, however short it is yet (runner.operations.rate_search
finds the rates).

Meanwhile the supervisor asks both processes for their CPU time, from outside: what each used in a step tells which
side was the limit.
"""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from adapters.api import Codec, Method
from adapters.messages import METHODS
from runner.arrivals import due_ns, seed_of
from runner.drive import Drive
from runner.fields import Deadline, Limits, Load, Milliseconds, Natural, OpenLoad, PerSecond
from runner.operations.api import ERRORS_BAND, Operation, Raw, Summary, count_check
from runner.operations.exchange import exchange
from runner.operations.open_loop import Traffic, send
from runner.operations.open_results import open_measurements, rate_per_s
from runner.operations.rate_search import RateSearch
from runner.samples import NS_PER_S, nearest_rank

SUSTAINED = 0.98
NEITHER = "neither"
BUSY_PCT = 90.0
LOOK_EVERY_S = 0.1
STEPS_MOST = 100  # for bounds: a search over nine orders of magnitude takes fewer
# What is kept of each step: series of these names, at the time when the step began.
STEP = (
    "step_rate_per_s",
    "step_achieved_per_s",
    "step_response_p50_us",
    "step_response_p99_us",
    "step_errors",
    "step_dropped",
    "step_schedule_delay_p99_us",
    "step_kept",
    "step_seconds",
)

Precision = Annotated[float, Meta(gt=0, lt=1)]


@dataclass(frozen=True, kw_only=True)
class Saturation(Operation):
    """`start_rate`: the first rate, in calls per second. `precision`: the search ends when the lowest rate that
    broke is within that share of the highest that was kept. `warmup` calls come first, as fast as they go.
    `size_bytes`, `service_time_ms` and `service_work`: as for RequestResponse.
    """

    name: str
    slo_p99_ms: Deadline
    start_rate: PerSecond
    step_s: Deadline
    precision: Precision
    warmup: Natural
    size_bytes: Natural | None
    service_time_ms: Milliseconds = 0.0
    service_work: Literal["wait", "busy"] = "wait"

    watched: ClassVar[bool] = True

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
        if not isinstance(load, OpenLoad):
            return ["load.arrival: saturation needs an open loop; say load=constant or load=poisson"]
        problems = []
        if load.rate != self.start_rate:
            problems.append("load.rate: saturation looks for it; say where to begin with operation.start_rate")
        if load.duration_s is not None:
            problems.append("load.duration_s: saturation tries one rate after the other; set operation.step_s")
        if load.max_in_flight < load.connections:
            problems.append(
                f"load.max_in_flight: {load.max_in_flight} is less than load.connections ({load.connections}); "
                "raise it"
            )
        if self.step_s * 4 > limits.run_s:
            problems.append(
                f"operation.step_s: {self.step_s:g} s are too long for limits.run_s ({limits.run_s:g}); "
                "raise limits.run_s or ask for shorter steps"
            )
        return problems

    async def drive(self, drive: Drive) -> None:
        load = drive.load
        assert isinstance(load, OpenLoad)
        method, pairs = exchange(self.size_bytes)
        if self.warmup:
            await send(drive, method, pairs, [0] * self.warmup, self.warmup)
        drive.raw.errors.clear()
        opened = await drive.ready()
        looking = asyncio.create_task(drive.quiet())  # the supervisor looks at both processes until `over`
        try:
            await self._search(drive, load, opened)
        finally:
            drive.over = True
            await asyncio.wait([looking], timeout=drive.limits.call_s)
        drive.close_window()

    async def _search(self, drive: Drive, load: OpenLoad, opened_ns: int) -> None:
        method, pairs = exchange(self.size_bytes)
        search = RateSearch(self.start_rate, self.precision)
        best: Traffic | None = None
        errors: dict[str, int] = {}
        seed = seed_of(load) or 0
        raw = drive.raw
        while search.rate is not None:
            if (drive.clock() - opened_ns) / NS_PER_S + 2 * self.step_s > drive.limits.run_s:
                raw.facts["unfinished"] = f"the search did not end within limits.run_s ({drive.limits.run_s:g} s)"
                break
            rate, seed = search.rate, seed + 1
            raw.errors.clear()
            step = replace(load, rate=rate, duration_s=self.step_s)
            traffic = await send(drive, method, pairs, due_ns(step, 0, seed), load.max_in_flight)
            kept = self._kept(traffic)
            _note(raw, rate, traffic, opened_ns, kept)
            if kept and (search.kept is None or rate > search.kept):
                best, errors = traffic, dict(raw.errors)
            search.told(kept)
        raw.facts |= {"arrival": load.arrival, "timer": drive.timer.name if drive.timer else ""}
        raw.errors = errors
        if best is not None:
            best.into(raw)
        for name, found in (("sustained", search.kept), ("broken", search.broken)):
            if found is not None:
                raw.series[name] = [(0, found)]

    def _kept(self, traffic: Traffic) -> bool:
        calls, responses = len(traffic.intended), sorted(traffic.responses())
        if traffic.dropped or not responses or traffic.errors > ERRORS_BAND * calls:
            return False
        requested, achieved = _rate(traffic.intended), _rate(traffic.ended)
        sustained = requested is None or (achieved is not None and achieved >= SUSTAINED * requested)
        return sustained and _p99(responses) <= self.slo_p99_ms * 1e6

    def watch(
        self,
        raw: Raw,
        quiet_ns: int,
        ceiling_bytes: int,
        look: Callable[[], tuple[dict[str, Any], dict[str, Any]]],
    ) -> None:
        """Both processes' CPU time every LOOK_EVERY_S, until the driver says that its search is over."""
        until = time.monotonic() + STEPS_MOST * self.step_s + 3600
        while time.monotonic() < until:
            server, driver = look()
            for side, counters in (("server", server), ("driver", driver)):
                raw.series.setdefault(f"{side}_cpu_ns", []).append(
                    (counters["t_ns"] - quiet_ns, counters["cpu_ns"])
                )
            if driver["over"]:
                return
            time.sleep(LOOK_EVERY_S)

    def summarize(self, raw: Raw, codec: Codec, conditions: dict[str, Any]) -> Summary:
        summary = Summary(findings={"timer": raw.facts.get("timer", "")})
        summary.series = {name: raw.series[name] for name in STEP if name in raw.series}
        steps = [t for t, _ in summary.series.get("step_rate_per_s", [])]
        for side in ("server", "driver"):
            summary.series[f"step_{side}_cpu_pct"] = _cpu_of_steps(raw, side)
        summary.measurements = {
            **open_measurements(replace(raw, usage={})),  # what was used was for the whole search
            "steps": (len(steps), "steps"),
            "slo_p99_ms": (self.slo_p99_ms, "ms"),
        }
        for name in ("sustained", "broken"):
            if name in raw.series and (rate := raw.series[name][0][1]) is not None:
                summary.measurements[f"{name}_per_s"] = (rate, "1/s")
        if "unfinished" in raw.facts:
            summary.checks.append(count_check("finished", 0, 1, raw.facts["unfinished"]))
        elif "sustained" not in raw.series:
            lowest = min((rate for _, rate in summary.series.get("step_rate_per_s", []) if rate), default=0.0)
            said = f"no rate kept p99 at {self.slo_p99_ms:g} ms or less, down to {lowest:g} calls/s"
            summary.checks.append(count_check("rates_that_kept_it", 0, 1, said))
        else:
            self._limit(summary, conditions)
        return summary

    def _limit(self, summary: Summary, conditions: dict[str, Any]) -> None:
        """Which side was the limit: the first that used up its CPU as the rate rose on from the one that broke. An
        objective may break long before, by the waits of a side that is busy most of the time.
        """
        rates = dict(summary.series["step_rate_per_s"])
        steps = summary.series["step_kept"]
        kept_rates = {rates[t] for t, kept in steps if kept}
        # A rate that broke once and was kept when it was tried again is not broken.
        broken = sorted((rates[t] or 0.0, t) for t, kept in steps if not kept and rates[t] not in kept_rates)
        sides = ("driver",) if conditions.get("in_process") else ("server", "driver")
        cpu = {side: dict(summary.series[f"step_{side}_cpu_pct"]) for side in sides}
        used = [{side: pct for side in sides if (pct := cpu[side].get(t)) is not None} for _, t in broken]
        found = [limiting_side(each, shared=conditions.get("placement") == "same") for each in used]
        first = next((i for i, side in enumerate(found) if side != NEITHER), 0)
        summary.findings["saturated"] = found[first] if found else NEITHER
        if not found:
            return
        summary.measurements |= {f"{side}_cpu_pct": (pct, "%") for side, pct in used[first].items()}
        if found[first] != NEITHER:
            summary.measurements["saturated_at_per_s"] = (broken[first][0], "1/s")


def limiting_side(used_pct: dict[str, float], *, shared: bool) -> str:
    """ "server", "driver" or "neither", by the share of a CPU that each used; `shared`: they have one together."""
    if not used_pct:
        return NEITHER
    busier = max(used_pct, key=lambda side: used_pct[side])
    full = sum(used_pct.values()) if shared else used_pct[busier]
    return busier if full >= BUSY_PCT else NEITHER


def _rate(stamps: Sequence[int]) -> float | None:
    there = [stamp for stamp in stamps if stamp]
    return rate_per_s(len(there), max(there) - min(there)) if there else None


def _p99(ordered: Sequence[int]) -> int:
    found = nearest_rank(ordered, 99.0)
    return ordered[-1] if found is None else found


def _note(raw: Raw, rate: float, traffic: Traffic, opened_ns: int, kept: bool) -> None:
    """The step in `raw`: a point in each of STEP."""
    responses, delays = sorted(traffic.responses()), sorted(traffic.delays())
    values: tuple[float | None, ...] = (
        rate,
        _rate(traffic.ended),
        (nearest_rank(responses, 50.0) or 0) / 1_000 if responses else None,
        _p99(responses) / 1_000 if responses else None,
        traffic.errors,
        traffic.dropped,
        _p99(delays) / 1_000 if delays else None,
        int(kept),
        (traffic.closed_ns - traffic.opened_ns) / NS_PER_S,
    )
    for name, value in zip(STEP, values, strict=True):
        raw.series.setdefault(name, []).append((traffic.opened_ns - opened_ns, value))


def _cpu_of_steps(raw: Raw, side: str) -> list[tuple[int, float | None]]:
    """% of a CPU that `side` used in each step: its CPU time at both ends, between the looks around them."""
    seen = raw.series.get(f"{side}_cpu_ns", [])
    lasted = dict(raw.series.get("step_seconds", []))
    found: list[tuple[int, float | None]] = []
    for t, _ in raw.series.get("step_rate_per_s", []):
        end = t + round((lasted.get(t) or 0.0) * NS_PER_S)
        first, last = _at(seen, t), _at(seen, end)
        known = first is not None and last is not None and end > t
        found.append((t, 100 * (last - first) / (end - t) if known else None))  # type: ignore[operator]
    return found


def _at(seen: Sequence[tuple[int, float | None]], t: int) -> float | None:
    """The value at `t`, on the line between its neighbours; None before the first and after the last."""
    i = bisect_left(seen, t, key=lambda point: point[0])
    if i == len(seen) or (i == 0 and seen[0][0] != t):
        return None
    (after, high) = seen[i]
    if after == t:
        return high
    before, low = seen[i - 1]
    if low is None or high is None:
        return None
    return low + (high - low) * (t - before) / (after - before)
