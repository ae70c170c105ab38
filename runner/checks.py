"""What the verdict of a run rests on: each thing that was looked at, with its value and its limits.

A check that a run does not pass makes it void, with the check's sentence as its reason; one that only warns is
shown beside the numbers. All of them are kept, also those that were passed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Weight = Literal["void", "warning"]

STEAL_SHARE = 0.1  # of max_waited_pct: what the hypervisor may take of all CPUs' time
STEAL_MOST_PCT = 5.0  # the same for the default of max_waited_pct
LONG_NS = 500_000_000  # shares of a shorter window are mostly chance


@dataclass(frozen=True)
class Check:
    """`least` <= `value` <= `most`, where they are given; `passed` may allow for more than that, as `reason` says.

    `reason`: why the run is void, or what the warning is; said also where the check was passed, for `--explain`.
    """

    name: str
    value: float
    unit: str
    passed: bool
    reason: str = ""
    least: float | None = None
    most: float | None = None
    weight: Weight = "void"


def within(
    name: str,
    value: float,
    unit: str,
    reason: str,
    *,
    least: float | None = None,
    most: float | None = None,
    weight: Weight = "void",
) -> Check:
    """A check that is passed where the value is within its limits."""
    passed = (least is None or value >= least) and (most is None or value <= most)
    return Check(name, value, unit, passed, reason, least, most, weight)


def failed(checks: list[Check]) -> list[str]:
    """The reasons of those that make a run void."""
    return [check.reason for check in checks if check.weight == "void" and not check.passed]


def machine_checks(
    usage: dict[str, dict[str, int]],
    window_ns: int,
    conditions: dict[str, Any],
    *,
    one_core: bool,
    alternating: bool,
    max_waited_pct: float,
) -> list[Check]:
    """Whether machine and interpreter let a run be what it says. `one_core`: both sides share one. `alternating`:
    one or the other is always at work on it (a closed loop). `max_waited_pct`: of the window, that a process may
    have been runnable without running.

    `usage`: what each side spent in the window. Times in which a process could run and did not are the scheduler's
    (/proc/<pid>/task/*/schedstat).
    """
    checks = []
    for key, words in (
        ("python_debug", "a debugging interpreter or development mode"),
        ("asyncio_debug", "asyncio's debug mode"),
        ("debug_logging", "debug logging"),
    ):
        on = int(bool(conditions.get(key)))
        checks.append(within(key, on, "", f"{words} was on: it is what is measured then", most=0))
    if window_ns < LONG_NS:
        return checks
    steal = usage.get("driver", {}).get("steal_ppm")
    if steal is not None:
        most = STEAL_SHARE * max_waited_pct
        said = f"{steal / 1e4:.1f} % of the CPU time was stolen by the machine's host (over {most:g} % is void)"
        checks.append(within("steal_pct", steal / 1e4, "%", said, most=most))
    if one_core and alternating:
        spent = [usage.get(side, {}).get("cpu_ns") for side in ("server", "driver")]
        if spent[0] is not None and spent[1] is not None:
            least = max(100 - max_waited_pct, 0)
            busy = 100 * (spent[0] + spent[1]) / window_ns
            said = (
                f"both processes together got {busy:.0f} % of the core they share (below {least:g} % is "
                "void: other programs had the rest)"
            )
            checks.append(within("busy_pct", busy, "%", said, least=least))
        return checks
    for side, other in (("server", "driver"), ("driver", "server")):
        waited, spent_ns = (usage.get(side, {}).get(name) for name in ("waited_ns", "cpu_ns"))
        if waited is not None and spent_ns is not None:
            # Threads of one process wait for each other as well, and on one core both sides do: what other programs
            # had is at most what neither of these used.
            ours = spent_ns + (usage.get(other, {}).get("cpu_ns", 0) if one_core else 0)
            share = 100 * max(min(waited, window_ns - ours), 0) / window_ns
            said = (
                f"the {side} waited for a CPU for {share:.0f} % of the window (over {max_waited_pct:g} % is void: "
                "other programs had it)"
            )
            checks.append(within(f"{side}_waited_pct", share, "%", said, most=max_waited_pct))
    return checks
