"""Exact numbers on known inputs, and what must hold for every input."""

from __future__ import annotations

import math
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.samples import LEAST_N, filled, fold, folded_rank, latency_measurements, nearest_rank, slots


@pytest.mark.parametrize(
    ("q", "n", "rank"),
    [
        (50.0, 1, 1),
        (50.0, 2, 1),
        (50.0, 3, 2),
        (90.0, 10, 9),
        (95.0, 20, 19),  # not the maximum, as an index of floor(n * q) would give
        (99.0, 100, 99),
        (99.0, 101, 100),
        (99.9, 1000, 999),  # 99.9 * 1000 / 100 is below 999 in binary
        (99.99, 10_000, 9_999),
        (100.0, 7, 7),
    ],
)
def test_the_nearest_rank_is_the_smallest_value_with_q_percent_at_or_below_it(q: float, n: int, rank: int) -> None:
    assert nearest_rank(list(range(1, n + 1)), q) == rank


@pytest.mark.parametrize(("q", "least"), [(90.0, 10), (95.0, 20), (99.0, 100), (99.9, 1_000), (99.99, 10_000)])
def test_a_percentile_with_too_few_samples_is_not_quoted(q: float, least: int) -> None:
    assert LEAST_N[q] == least
    assert nearest_rank(list(range(least - 1)), q) is None
    assert nearest_rank(list(range(least)), q) is not None


def test_no_samples_have_no_percentiles() -> None:
    assert nearest_rank([], 50.0) is None
    assert latency_measurements([]) == {}


def test_measurements_of_1_to_1000_microseconds() -> None:
    found = latency_measurements([n * 1_000 for n in range(1000, 0, -1)])

    assert found == {
        "p50_us": (500.0, "us"),
        "p75_us": (750.0, "us"),
        "p90_us": (900.0, "us"),
        "p99_us": (990.0, "us"),
        "p999_us": (999.0, "us"),
        "mean_us": (500.5, "us"),
        "max_us": (1000.0, "us"),
    }


def test_one_sample_is_its_own_median_and_maximum_and_has_no_tail() -> None:
    assert latency_measurements([1_500]) == {"p50_us": (1.5, "us"), "mean_us": (1.5, "us"), "max_us": (1.5, "us")}


@pytest.mark.parametrize(("n", "quoted"), [(200, False), (999, False), (1_000, True), (5_000, True)])
def test_p999_is_quoted_from_a_thousand_samples_on(n: int, quoted: bool) -> None:
    found = latency_measurements([number * 1_000 for number in range(1, n + 1)])

    assert ("p999_us" in found) is quoted
    if n == 5_000:
        assert found["p999_us"] == (4_995.0, "us")  # not the maximum


def test_two_samples_never_give_a_percentile_outside_of_them() -> None:
    assert latency_measurements([1_000, 2_000]) == {
        "p50_us": (1.0, "us"),
        "mean_us": (1.5, "us"),
        "max_us": (2.0, "us"),
    }


@given(st.lists(st.integers(1, 10**12), min_size=1, max_size=60), st.randoms())
def test_percentiles_rise_and_stay_within_the_samples_in_any_order(values: list[int], rng: object) -> None:
    ordered = sorted(values)
    quoted = [nearest_rank(ordered, q) for q in (1.0, 50.0, 90.0, 95.0, 99.0, 100.0)]
    known = [value for value in quoted if value is not None]

    assert known == sorted(known)
    assert set(known) <= set(values)
    rng.shuffle(values)  # type: ignore[attr-defined]
    assert latency_measurements(values) == latency_measurements(ordered)


def test_slots_that_were_never_written_are_left_out() -> None:
    buffer = slots(4)
    buffer[0], buffer[3] = 5, 7

    assert buffer == array("q", [5, 0, 0, 7])
    assert filled(buffer) == [5, 7]


@given(st.lists(st.integers(1, 10**10), min_size=1, max_size=300), st.integers(0, 50))
def test_folded_samples_keep_their_number_ends_and_sum_and_every_kth(values: list[int], keep: int) -> None:
    folded = fold(values, keep)

    assert (folded.n, folded.total, folded.least, folded.most) == (
        len(values),
        sum(values),
        min(values),
        max(values),
    )
    assert sum(folded.counts.values()) == len(values)
    assert folded.kept == (values[:: folded.every] if keep else [])
    assert len(folded.kept) <= keep
    for q in (50.0, 99.0, 100.0):
        exact = sorted(values)[max(math.ceil(q * len(values) / 100 - 1e-9), 1) - 1]
        assert exact * 0.999 <= folded_rank(folded, q) <= exact


def test_percentiles_of_folded_samples_are_those_of_all_to_three_digits() -> None:
    values = list(range(1_000, 101_000))
    few, many = latency_measurements(values), latency_measurements(fold(values, 10))

    assert many["mean_us"] == few["mean_us"]
    assert many["max_us"] == few["max_us"]
    assert {name: pytest.approx(value[0], rel=0.001) for name, value in many.items()} == {
        name: value[0] for name, value in few.items()
    }
