"""How many requests does a server answer? The smallest exchange there is, from many connections at once.

Closed loop. The driver is meant to be the faster side: a row whose driver was the limit is void. The server counts
what it answers, so that no request is reported twice or lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from adapters.api import Codec, Method
from adapters.messages import METHODS, Body, Empty
from runner.checks import Check, within
from runner.drive import Drive
from runner.fields import Count, Milliseconds, Natural
from runner.operations.api import Operation, Raw, Summary
from runner.operations.closed_loop import calls, closed_summary, measure
from runner.operations.crosscheck import crosscheck
from runner.operations.lag import lag_checks, lag_measurements, lag_noted
from runner.samples import NS_PER_S

PAIRS = [(Empty(), Body(b"Hello World!"))]
LAW_OVER = 1.02  # as in the report: clocks and the window's ends have a share
DRIVER_MOST_PCT = 90.0  # of one core; the driver's loop has no more
LEAST_WINDOW_NS = NS_PER_S // 10  # a share of a CPU in less is chance


@dataclass(frozen=True, kw_only=True)
class Hello(Operation):
    """`requests` requests, shared by all connections, after `warmup` that are not kept. `service_time_ms`: what the
    service takes for each, as it were for a downstream call; `service_work`: waiting, or busy. `crosscheck`: let
    wrk or h2load, where installed, do the same afterwards to the same server.
    """

    name: str
    requests: Count
    warmup: Natural
    service_time_ms: Milliseconds
    service_work: Literal["wait", "busy"]
    crosscheck: bool

    on_time: ClassVar[bool] = True

    def methods(self) -> list[Method]:
        return [METHODS["hello"], METHODS["run"], METHODS["quote"]]

    def work(self) -> tuple[float, str]:
        return self.service_time_ms, self.service_work

    async def drive(self, drive: Drive) -> None:
        if self.warmup:
            await calls(drive, METHODS["hello"], PAIRS, self.warmup)
        drive.raw.counts["warmup_errors"] = sum(drive.raw.errors.values())
        drive.raw.errors.clear()
        await drive.ready()
        async with lag_noted(drive):
            await measure(drive, METHODS["hello"], PAIRS, self.requests)

    def afterwards(self, url: str | None, connections: int, cpus: list[int] | None) -> dict[str, str]:
        return crosscheck(url, connections, self.requests, cpus) if self.crosscheck else {}

    def summarize(self, raw: Raw, codec: Codec, conditions: dict[str, Any]) -> Summary:
        summary = closed_summary(raw, conditions, "requests")
        summary.findings["model"] = str(conditions.get("model", ""))
        found = summary.measurements
        found |= lag_measurements(raw)
        summary.checks += self._counted(raw) + self._driver(raw, conditions)
        summary.checks += lag_checks(raw, found.get("p90_us", (None, ""))[0])
        workers = conditions.get("workers")
        if workers is not None:
            found["workers"] = (workers, "threads")
        if conditions.get("peers_seen") is not None:
            found["connections_opened"] = (conditions["peers_seen"], "connections")
        spent = raw.usage.get("server", {}).get("cpu_ns")
        if spent:
            found["requests_per_server_cpu_s"] = (len_of(raw) * NS_PER_S / spent, "1/s")
        if "peak_in_flight" in raw.counts:
            found["peak_in_flight"] = (raw.counts["peak_in_flight"], "requests")
        if "requests_per_s" in found:
            summary.findings |= self._law(found["requests_per_s"][0], workers)
        if "crosscheck_requests_per_s" in raw.facts:
            found["crosscheck_requests_per_s"] = (float(raw.facts["crosscheck_requests_per_s"]), "1/s")
        if "crosscheck_tool" in raw.facts:
            summary.findings["crosscheck_tool"] = raw.facts["crosscheck_tool"]
        return summary

    def _counted(self, raw: Raw) -> list[Check]:
        """The server's own count: every request that was made, no more and, but for errors, no fewer."""
        if "hellos" not in raw.counts:
            return []
        seen, made = raw.counts["hellos"], self.requests + self.warmup
        errors = sum(raw.errors.values()) + raw.counts.get("warmup_errors", 0)
        said = f"the server answered {seen:,} requests, {made:,} were made ({errors:,} of them failed)"
        return [within("requests_seen", seen, "", said, least=made - errors, most=made)]

    def _driver(self, raw: Raw, conditions: dict[str, Any]) -> list[Check]:
        spent = raw.usage.get("driver", {}).get("cpu_ns")
        if spent is None or raw.window_ns < LEAST_WINDOW_NS or conditions.get("placement") != "split":
            return []
        pct = 100 * spent / raw.window_ns
        said = f"driver CPU {pct:.0f} %: the driver was the limit (over {DRIVER_MOST_PCT:.0f} % is void)"
        return [within("driver_cpu_pct", pct, "%", said, most=DRIVER_MOST_PCT)]

    def _law(self, rate: float, workers: int | None) -> dict[str, str]:
        """rate <= workers / service time, where the pool is what bounds it."""
        if not self.service_time_ms or workers is None:
            return {}
        most = workers * 1_000 / self.service_time_ms
        holds = rate <= most * LAW_OVER
        word = "holds" if holds else "does not hold"
        return {"law": f"{word}: {rate:,.0f}/s, at most {workers} / {self.service_time_ms:g} ms = {most:,.0f}/s"}


def len_of(raw: Raw) -> int:
    """How many requests were answered."""
    return len(raw.values("latency"))
