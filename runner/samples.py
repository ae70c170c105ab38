"""The buffer the hot loop writes to, and what is computed from it, once, when a run is saved."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

NS_PER_US = 1_000
NS_PER_S = 1_000_000_000

# A percentile needs samples beyond it to be more than the maximum: q -> the least n that it is quoted for.
LEAST_N = {50.0: 1, 75.0: 4, 90.0: 10, 95.0: 20, 99.0: 100, 99.9: 1_000, 99.99: 10_000}


FOLD_FROM = 1_000_000  # samples; of more, single ones are capped, and the others counted by value
_KEPT_BITS = 11  # 3 significant digits: 2,048 steps in each doubling


def slots(count: int) -> array[int]:
    """`count` zeroed 64-bit slots, allocated before the window so that the hot loop only stores integers.

    A slot that still holds 0 afterwards was never filled: no time that we stamp is 0 ns long.
    """
    return array("q", bytes(8 * count))


def filled(values: array[int]) -> Sequence[int]:
    """The slots that were written, in order."""
    if len(values) > FOLD_FROM:  # a list of so many would take five times their memory
        return values if 0 not in values else array("q", (value for value in values if value))
    return [value for value in values if value]


@dataclass(frozen=True)
class Folded:
    """Many samples in little memory. `counts`: value cut to 3 significant digits -> how many; `n`, `total`, `least`
    and `most` are exact. `kept`: every `every`-th sample as it was, in order.
    """

    n: int
    total: int
    least: int
    most: int
    counts: dict[int, int]
    kept: list[int]
    every: int

    def __len__(self) -> int:
        return self.n


def fold(values: Sequence[int], keep: int) -> Folded:
    """`values` (not empty, ns), with at most `keep` single ones."""
    counts: dict[int, int] = {}
    for value in values:
        spare = value.bit_length() - _KEPT_BITS
        cut = value >> spare << spare if spare > 0 else value
        counts[cut] = counts.get(cut, 0) + 1
    every = math.ceil(len(values) / keep) if keep else len(values) + 1
    kept = list(values[::every]) if keep else []
    return Folded(len(values), sum(values), min(values), max(values), counts, kept, every)


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


def folded_rank(values: Folded, q: float) -> int:
    """`nearest_rank` of folded values: cut to 3 significant digits, so never more than 0.1 % below the sample."""
    rank, seen = max(math.ceil(q * values.n / 100 - 1e-9), 1), 0
    for value in sorted(values.counts):
        seen += values.counts[value]
        if seen >= rank:
            return max(value, values.least)
    return values.most


def rank(values: Sequence[int] | Folded, q: float) -> int | None:
    """The q-th percentile of `values` in any order: `nearest_rank`, or `folded_rank` where they are folded."""
    return folded_rank(values, q) if isinstance(values, Folded) else nearest_rank(sorted(values), q)


def total(values: Sequence[int] | Folded) -> int:
    """Their sum."""
    return values.total if isinstance(values, Folded) else sum(values)


PERCENTILES = {"p50_us": 50.0, "p75_us": 75.0, "p90_us": 90.0, "p99_us": 99.0, "p999_us": 99.9}


def latency_measurements(values: Sequence[int] | Folded) -> dict[str, tuple[float, str]]:
    """p50_us ... max_us of nanosecond `values`; a percentile with too few samples is left out."""
    if isinstance(values, Folded):
        out = {name: (folded_rank(values, q) / NS_PER_US, "us") for name, q in PERCENTILES.items()}
        out["mean_us"] = (values.total / values.n / NS_PER_US, "us")
        out["max_us"] = (values.most / NS_PER_US, "us")
        return out
    ordered = sorted(values)
    if not ordered:
        return {}
    found = {name: nearest_rank(ordered, q) for name, q in PERCENTILES.items()}
    out = {name: (value / NS_PER_US, "us") for name, value in found.items() if value is not None}
    out["mean_us"] = (sum(ordered) / len(ordered) / NS_PER_US, "us")
    out["max_us"] = (ordered[-1] / NS_PER_US, "us")
    return out
