"""Which CPUs server and driver run on. Placement decides more than protocol: a floor goes from 12 to 50 µs
between one core and two, so it is chosen, recorded, and never mixed in one ratio.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

ENOUGH_CPUS = 4  # below, a split pair leaves no core for the rest of the machine, and p99 measures that rest


class Placement(NamedTuple):
    """`name` is split, same or free; the CPU lists are None where the scheduler decides."""

    name: str
    server_cpus: list[int] | None
    driver_cpus: list[int] | None


def place(wanted: str, prefers_one_core: bool, cpus: Sequence[int]) -> Placement:
    """`wanted` (auto, split, same, free) on these CPUs, each a core of its own.

    auto: split, except that an operation which alternates
    between the two processes uses one core when there are fewer than ENOUGH_CPUS. One CPU is always `same`.
    """
    if wanted == "auto":
        wanted = "same" if prefers_one_core and len(cpus) < ENOUGH_CPUS else "split"
    if wanted == "free":
        return Placement("free", None, None)
    # The last CPUs: interrupts and everything that was not told where to go favour the first.
    if wanted == "same" or len(cpus) < 2:
        return Placement("same", [cpus[-1]], [cpus[-1]])
    return Placement("split", [cpus[-2]], [cpus[-1]])
