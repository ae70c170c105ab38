"""The buffer the hot loop writes to, and what is computed from it, once, when a run is saved."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence

NS_PER_US = 1_000
NS_PER_S = 1_000_000_000

# A percentile needs samples beyond it to be more than the maximum: q -> the least n that it is quoted for.
LEAST_N = {50.0: 1, 90.0: 10, 95.0: 20, 99.0: 100, 99.9: 1_000, 99.99: 10_000}


def slots(count: int) -> array[int]:
    """`count` zeroed 64-bit slots, allocated before the window so that the hot loop only stores integers.

    A slot that still holds 0 afterwards was never filled: no time that we stamp is 0 ns long.
    """
    return array("q", bytes(8 * count))


def filled(values: Iterable[int]) -> list[int]:
    """The slots that were written, in order."""
    return [value for value in values if value]


def nearest_rank(ordered: Sequence[int], q: float) -> int | None:
    """The q-th percentile (0 < q <= 100) of ascending `ordered`: the smallest value with at least q % of all
    at or below it. None where n is below LEAST_N for that q.

    Nearest rank, Hyndman & Fan (1996), definition 1: always one of the samples, never beyond the maximum.
    """
    n = len(ordered)
    if n == 0 or n < LEAST_N.get(q, math.ceil(100 / (100 - q)) if q < 100 else 1):
        return None
    # 99.9 * 1000 / 100 is 998.9999... in binary: take off what rounding may have added before the ceiling.
    rank = math.ceil(q * n / 100 - 1e-9)
    return ordered[max(rank, 1) - 1]


def latency_measurements(values: Sequence[int]) -> dict[str, tuple[float, str]]:
    """p50_us ... max_us of nanosecond `values`; a percentile with too few samples is left out."""
    ordered = sorted(values)
    if not ordered:
        return {}
    named = {"p50_us": 50.0, "p90_us": 90.0, "p99_us": 99.0, "p999_us": 99.9}
    found = {name: nearest_rank(ordered, q) for name, q in named.items()}
    out = {name: (value / NS_PER_US, "us") for name, value in found.items() if value is not None}
    out["mean_us"] = (sum(ordered) / len(ordered) / NS_PER_US, "us")
    out["max_us"] = (ordered[-1] / NS_PER_US, "us")
    return out
