"""Who else is using the CPUs: the load average, and a second of looking."""

from __future__ import annotations

from typing import NamedTuple

from runner import machine
from runner.checks import STEAL_MOST_PCT
from runner.doctor.finding import Finding, Sight, judged, not_told

LOOK_S = 1.0
OTHERS_NOTE_PCT = 5.0  # of all CPUs together
OTHERS_MOST_PCT = 25.0
STEAL_NOTE_PCT = 0.5


class Ticks(NamedTuple):
    """CPU time of the whole machine so far, in ticks: by programs, by its host, and in all, idle included."""

    busy: int
    stolen: int
    total: int


def findings(sight: Sight) -> list[Finding]:
    """Load average, CPU used by others, steal. Takes LOOK_S, in which this process only waits."""
    before = _ticks(sight)
    sight.nap(LOOK_S)
    after = _ticks(sight)
    return [_load_average(sight), *_shares(before, after)]


def _load_average(sight: Sight) -> Finding:
    words = (machine.read(sight.root, "proc/loadavg") or "").split()
    if not words:
        return not_told("load average")
    load, n = float(words[0]), len(sight.cpus)
    wanted, remedy = "below 0.5", "stop other programs, and wait a minute: it is an average"
    if load > n:
        return judged("load average", f"{load:g} on {n} CPUs", False, "unfit", wanted, remedy)
    return judged("load average", f"{load:g} on {n} CPUs", load <= 0.5, "note", wanted, remedy)


def _ticks(sight: Sight) -> Ticks | None:
    """From the first line of /proc/stat (proc(5)): user nice system idle iowait irq softirq steal."""
    words = (machine.read(sight.root, "proc/stat") or "").split("\n", 1)[0].split()[1:9]
    if len(words) < 8:
        return None
    user, nice, system, idle, iowait, irq, softirq, steal = map(int, words)
    busy = user + nice + system + irq + softirq
    return Ticks(busy, steal, busy + idle + iowait + steal)


def _shares(before: Ticks | None, after: Ticks | None) -> list[Finding]:
    others, stolen = "CPU used by others", "steal"
    if before is None or after is None or after.total <= before.total:
        return [not_told(others), not_told(stolen)]
    whole = after.total - before.total
    busy, steal = 100 * (after.busy - before.busy) / whole, 100 * (after.stolen - before.stolen) / whole
    return [
        judged(
            others,
            f"{busy:.0f} % of all CPUs",
            busy <= OTHERS_NOTE_PCT,
            "unfit" if busy > OTHERS_MOST_PCT else "note",
            f"{OTHERS_NOTE_PCT:g} % at most",
            "stop other programs (top shows them)",
        ),
        judged(
            stolen,
            f"{steal:.1f} %",
            steal <= STEAL_NOTE_PCT,
            "unfit" if steal > STEAL_MOST_PCT else "note",
            f"{STEAL_NOTE_PCT:g} % at most: time that this machine's host gave to others",
            "a dedicated machine, or another time",
        ),
    ]
