"""The clock that stamps every call: what it is made of, how fine it is and what a reading costs."""

from __future__ import annotations

from itertools import pairwise

from runner import machine
from runner.doctor.finding import Finding, Sight, judged, not_told

READINGS = 20_000
COARSE_NS = 1_000
DEAR_NS = 500
SLACK_NS = 50_000  # the kernel's default
QUICK = ("tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page", "pvclock")


def findings(sight: Sight) -> list[Finding]:
    """Clock source, resolution and cost of perf_counter_ns, timer slack."""
    return [_source(sight), *_measured(sight), _slack(sight)]


def _source(sight: Sight) -> Finding:
    found = machine.clock_source(sight.root)
    if found is None:
        return not_told("clock source")
    path = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
    wanted = "tsc: the others ask the kernel, each time"
    return judged("clock source", found, found in QUICK, "note", wanted, f"echo tsc | sudo tee {path}")


def _measured(sight: Sight) -> list[Finding]:
    stamps = [sight.clock() for _ in range(READINGS)]
    steps = [step for a, b in pairwise(stamps) if (step := b - a) > 0]
    cost = (stamps[-1] - stamps[0]) / (READINGS - 1)
    if not steps:
        return [
            Finding("clock resolution", "unfit", "stands still", "1 µs or finer", "another machine"),
            _cost(cost),
        ]
    fine = min(steps)
    said = judged("clock resolution", f"{fine} ns", fine <= COARSE_NS, "unfit", "1 µs or finer", "another machine")
    return [said, _cost(cost)]


def _cost(cost: float) -> Finding:
    remedy = "see the clock source; a call is stamped twice"
    return judged("clock reading", f"{cost:.0f} ns each", cost <= DEAR_NS, "note", f"{DEAR_NS} ns at most", remedy)


def _slack(sight: Sight) -> Finding:
    found = machine.read(sight.root, "proc/self/timerslack_ns")
    if not found:
        return not_told("timer slack")
    wanted, remedy = f"{SLACK_NS} ns at most", "start bakeoff from a plain shell: the slack is inherited"
    return judged("timer slack", f"{found} ns", int(found) <= SLACK_NS, "note", wanted, remedy)
