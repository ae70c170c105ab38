"""What is computed from a stretch of open-loop traffic: three rates, two times, and whether they can be trusted."""

from __future__ import annotations

from runner.checks import Check, within
from runner.operations.api import Raw, count_check, cpu_per_item, errors_check, samples_check
from runner.samples import NS_PER_S, NS_PER_US, latency_measurements, rank, total

ACHIEVED_LEAST = 0.95  # of the requested rate
BEHIND_NS = 50_000_000  # the answers may spread this much longer than the calls: one hiccup of a busy machine
DROPPED_BAND = 0.01
LATE_NS = 1_000_000  # less lateness of the driver than this is never held against it
LATE_SHARE = 0.5  # of p99: with more, it says more of the driver than of the server
LITTLE_BAND = 0.10
LITTLE_CALLS = 100  # with fewer, one hiccup is a visible part of the sum
DRIVER_BUSY_PCT = 90.0


def rate_per_s(n: int, over_ns: int) -> float | None:
    """Of `n` events from the first to the last of them; None where that is no rate."""
    return (n - 1) * NS_PER_S / over_ns if n > 1 and over_ns > 0 else None


def rates(raw: Raw) -> dict[str, tuple[float, str]]:
    """requested_per_s (calls due), sent_per_s (calls started), achieved_per_s (right answers); absent for one."""
    counts = raw.counts
    found = {
        "requested_per_s": rate_per_s(counts.get("calls", 0), counts.get("intended_span_ns", 0)),
        "sent_per_s": rate_per_s(len(raw.values("schedule_delay")), counts.get("started_span_ns", 0)),
        "achieved_per_s": rate_per_s(len(raw.values("latency")), counts.get("ended_span_ns", 0)),
    }
    return {name: (rate, "1/s") for name, rate in found.items() if rate is not None}


def open_measurements(raw: Raw) -> dict[str, tuple[float, str]]:
    """Service time as p50_us ... max_us, response time as response_p50_us ..., the rates, lateness and drops."""
    latencies = raw.values("latency")
    out = latency_measurements(latencies)
    response = latency_measurements(raw.values("response"))
    out |= {f"response_{name}": value for name, value in response.items()}
    out |= {
        "n": (len(latencies), "calls"),
        "errors": (sum(raw.errors.values()), "calls"),
        "dropped": (raw.counts.get("dropped", 0), "calls"),
        **rates(raw),
    }
    delays = raw.values("schedule_delay")
    for name, q in (("schedule_delay_p50_us", 50.0), ("schedule_delay_p99_us", 99.0)):
        if (delay := rank(delays, q)) is not None:
            out[name] = (delay / NS_PER_US, "us")
    if latencies:
        out |= cpu_per_item(raw, raw.counts.get("calls", 0))
    return out


def open_checks(raw: Raw) -> list[Check]:
    """What the verdict of this traffic rests on."""
    calls, dropped, errors = raw.counts.get("calls", 0), raw.counts.get("dropped", 0), sum(raw.errors.values())
    counted = len(raw.values("latency")) + errors + dropped
    said = f"{counted:,} calls were counted, {calls:,} were due"
    checks = [*errors_check(errors, calls), samples_check(calls), count_check("calls", counted, calls, said)]
    if calls:
        said = f"{dropped:,} of {calls:,} calls were dropped ({dropped / calls:.1%}; over 1 % is void)"
        checks.append(within("dropped_pct", 100 * dropped / calls, "%", said, most=100 * DROPPED_BAND))
    return [*checks, *_short(raw), *_late(raw), *_busy(raw), *_unaccounted(raw)]


def _short(raw: Raw) -> list[Check]:
    """Less achieved than requested, and not for one hiccup."""
    found = rates(raw)
    if "requested_per_s" not in found or "achieved_per_s" not in found:
        return []
    requested, achieved = found["requested_per_s"][0], found["achieved_per_s"][0]
    behind_ns = raw.counts["ended_span_ns"] - raw.counts["intended_span_ns"]
    lost = raw.counts.get("dropped", 0) + sum(raw.errors.values())
    enough = achieved >= ACHIEVED_LEAST * requested or (behind_ns <= BEHIND_NS and not lost)
    said = (
        f"{achieved:,.5g} of {requested:,.5g} calls/s requested were achieved "
        f"({achieved / requested:.1%}; below 95 % is void)"
    )
    return [Check("achieved_pct", 100 * achieved / requested, "%", enough, said, least=100 * ACHIEVED_LEAST)]


def _late(raw: Raw) -> list[Check]:
    """The driver sent late by so much that its lateness is what was measured."""
    delay = rank(raw.values("schedule_delay"), 99.0)
    response = rank(raw.values("response"), 99.0)
    if delay is None or response is None:
        return []
    said = (
        f"the driver was late with its calls: schedule delay p99 {delay / 1e6:,.3g} ms, response time p99 "
        f"{response / 1e6:,.3g} ms (over {LATE_NS / 1e6:g} ms and over half of it is void)"
    )
    most = max(LATE_NS, LATE_SHARE * response)
    return [within("schedule_delay_p99_us", delay / NS_PER_US, "us", said, most=most / NS_PER_US)]


def _busy(raw: Raw) -> list[Check]:
    """The driver is meant to be the faster side. Where it spins for want of a timer, its CPU time says nothing."""
    spent = raw.usage.get("driver", {}).get("cpu_ns")
    if spent is None or raw.window_ns < NS_PER_S / 10 or raw.facts.get("timer") == "spin":
        return []
    pct = 100 * spent / raw.window_ns
    said = f"driver CPU {pct:.0f} % (over {DRIVER_BUSY_PCT:.0f} % is void)"
    return [within("driver_cpu_pct", pct, "%", said, most=DRIVER_BUSY_PCT)]


def _unaccounted(raw: Raw) -> list[Check]:
    """Little's law: calls in the system = rate x mean response time. The left side is the sender's own count over
    time, the right side comes from the stamps of the calls. Between being due and being taken up by a late driver a
    call is in the right side alone; that is judged as lateness, not here.
    """
    responses = raw.values("response")
    if len(responses) < LITTLE_CALLS or len(responses) < raw.counts.get("calls", 0) or raw.window_ns <= 0:
        return []
    seen, expected = raw.counts.get("in_system_ns", 0), total(responses)
    least = expected - total(raw.values("schedule_delay"))
    said = (
        f"{seen / raw.window_ns:.2f} calls were in flight, rate x mean response time is "
        f"{expected / raw.window_ns:.2f} (Little's law, within 10 %)"
    )
    passed = (1 - LITTLE_BAND) * least <= seen <= (1 + LITTLE_BAND) * expected
    return [Check("littles_law", seen / expected, "x", passed, said, 1 - LITTLE_BAND, 1 + LITTLE_BAND)]
