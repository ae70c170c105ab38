"""When the calls of an open loop are due: pure functions of the load, in integer nanoseconds from the start.

constant   call i is due at i / rate
poisson    gaps are exponential with mean 1 / rate, from a seed: independent users (a Poisson process)
"""

from __future__ import annotations

import dataclasses
import itertools
import random
import secrets
from array import array
from collections.abc import Iterator

from runner.fields import Limits, Load, OpenLoad, PoissonLoad
from runner.samples import NS_PER_S

SEEDS = 1_000_000  # a drawn seed has at most six digits: people copy it
MOST_CALLS = 10_000_000  # of one run: their stamps are kept in memory until it is saved


def due_ns(load: OpenLoad, count: int, seed: int = 0) -> array[int]:
    """When each call is due. As many as fall into load.duration_s, or `count` where that is null."""
    times = _poisson(load.rate, seed) if isinstance(load, PoissonLoad) else _constant(load.rate)
    if load.duration_s is None:
        return array("q", itertools.islice(times, count))
    end = round(load.duration_s * NS_PER_S)
    return array("q", itertools.takewhile(lambda due: due < end, times))


def _constant(rate: float) -> Iterator[int]:
    # From i each time: adding up a rounded gap would drift away from the rate.
    return (round(i * NS_PER_S / rate) for i in itertools.count())


def _poisson(rate: float, seed: int) -> Iterator[int]:
    draw, at = random.Random(seed), 0.0
    while True:
        at += draw.expovariate(rate)
        yield round(at * NS_PER_S)


def seeded(load: Load) -> Load:
    """`load` with a seed drawn where it needs one and has none."""
    if isinstance(load, PoissonLoad) and load.seed is None:
        return dataclasses.replace(load, seed=secrets.randbelow(SEEDS))
    return load


def seed_of(load: Load) -> int | None:
    """The seed of the arrivals; None where nothing is drawn."""
    return load.seed if isinstance(load, PoissonLoad) else None


def open_problems(load: OpenLoad, limits: Limits, count: int) -> list[str]:
    """What is wrong between the keys of an open loop of `count` calls, each with its dotted key first."""
    problems = []
    if load.max_in_flight < load.connections:
        problems.append(
            f"load.max_in_flight: {load.max_in_flight} is less than load.connections ({load.connections}), "
            "some of which would never be used; raise it or ask for fewer connections"
        )
    lasts_s = count / load.rate if load.duration_s is None else load.duration_s
    if lasts_s >= limits.run_s:
        what = f"{count:,} calls at {load.rate:g} a second take" if load.duration_s is None else "the run takes"
        problems.append(
            f"load.{'rate' if load.duration_s is None else 'duration_s'}: {what} {lasts_s:,.0f} s, "
            f"limits.run_s is {limits.run_s:g}; raise limits.run_s or ask for less"
        )
    if lasts_s * load.rate > MOST_CALLS:
        problems.append(
            f"load.rate: {lasts_s * load.rate:,.0f} calls are more than one run keeps ({MOST_CALLS:,}); "
            "lower it or load.duration_s"
        )
    return problems
