"""The arithmetic of the report, on inputs whose answers are known, and its laws on any input."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.report.stats import compare, estimate, least_p, rank_test

positive = st.floats(min_value=1e-3, max_value=1e9)
some = st.lists(positive, min_size=1, max_size=60)
unhurried = settings(deadline=None)  # a loaded machine is no failure


def test_nothing_has_no_median() -> None:
    assert estimate([]) is None


def test_one_run_is_a_value_without_a_bracket() -> None:
    found = estimate([3.0])

    assert found is not None
    assert (found.median, found.low, found.high, found.kind, found.n) == (3.0, 3.0, 3.0, "single", 1)


def test_two_to_four_runs_have_a_range() -> None:
    found = estimate([4.0, 1.0, 3.0, 2.0])

    assert found is not None
    assert (found.median, found.low, found.high, found.kind, found.n) == (2.5, 1.0, 4.0, "range", 4)


def test_five_runs_have_a_bootstrap_interval() -> None:
    found = estimate([10.0, 11.0, 12.0, 13.0, 14.0])

    assert found is not None
    # Of all draws of five, 5.8 % have the least run as their median: more than the 2.5 % that are cut off.
    assert (found.median, found.low, found.high, found.kind, found.n) == (12.0, 10.0, 14.0, "interval", 5)


def test_the_interval_of_seven_runs_is_from_the_second_to_the_last_but_one() -> None:
    """Of draws of seven, 1.0 % have the least run as their median (cut off), 10.8 % the second least or less."""
    found = estimate([3.0, 1.0, 7.0, 5.0, 2.0, 6.0, 4.0])

    assert found is not None
    assert (found.median, found.low, found.high, found.kind, found.n) == (4.0, 2.0, 6.0, "interval", 7)


def test_more_runs_make_the_interval_narrower_than_the_range() -> None:
    found = estimate([float(value) for value in range(1, 22)])

    assert found is not None
    assert found.median == 11.0
    assert 1.0 < found.low < 11.0 < found.high < 21.0


@unhurried
@given(st.lists(positive, min_size=1, max_size=9), st.randoms())
def test_an_estimate_does_not_depend_on_order(values: list[float], rng: random.Random) -> None:
    assert estimate(values) == estimate(rng.sample(values, len(values)))


@unhurried
@given(st.lists(positive, min_size=1, max_size=9), st.integers(min_value=-8, max_value=8))
def test_an_estimate_scales_with_its_values(values: list[float], power: int) -> None:
    scale = 2.0**power
    plain, scaled = estimate(values), estimate([value * scale for value in values])

    assert plain is not None
    assert scaled is not None
    assert (scaled.median, scaled.low, scaled.high) == (plain.median * scale, plain.low * scale, plain.high * scale)


@unhurried
@given(st.lists(positive, min_size=1, max_size=9))
def test_the_median_is_inside_its_bracket_and_that_inside_the_runs(values: list[float]) -> None:
    found = estimate(values)

    assert found is not None
    assert min(values) <= found.low <= found.median <= found.high <= max(values)


def test_ranges_that_do_not_touch_are_a_difference() -> None:
    found = compare([200.0, 210.0, 220.0], [100.0, 105.0, 110.0])

    assert found is not None
    assert (found.ratio, found.low, found.high, found.kind) == (2.0, 200 / 110, 2.2, "range")
    assert found.claimed is True
    assert found.higher == 0


def test_ranges_that_touch_are_no_clear_difference() -> None:
    found = compare([110.0, 150.0, 160.0], [100.0, 105.0, 110.0])

    assert found is not None
    assert found.claimed is False
    assert found.higher is None


def test_five_per_cent_or_less_is_no_clear_difference_however_steady() -> None:
    apart = compare([105.0, 105.0, 105.0], [100.0, 100.0, 100.0])
    more = compare([105.2, 105.2, 105.2], [100.0, 100.0, 100.0])

    assert apart is not None
    assert more is not None
    assert (apart.claimed, more.claimed) == (False, True)


def test_one_run_on_either_side_claims_nothing() -> None:
    found = compare([200.0], [100.0, 101.0, 102.0])

    assert found is not None
    assert (found.kind, found.claimed, found.higher) == ("single", None, None)


def test_five_runs_on_both_sides_are_compared_by_interval() -> None:
    # The ranges touch in one outlier; the interval does not.
    slow = [200.0, 201.0, 202.0, 203.0, 204.0, 205.0, 99.0]
    fast = [100.0, 101.0, 102.0, 103.0, 104.0, 105.0, 106.0]

    by_interval, by_range = compare(slow, fast), compare([99.0, *slow[:2]], fast[:3])

    assert by_interval is not None
    assert by_range is not None
    assert (by_interval.kind, by_interval.claimed) == ("interval", True)
    assert (by_range.kind, by_range.claimed) == ("range", False)


def test_the_ratio_of_runs_without_any_spread_is_exact() -> None:
    found = compare([3.0] * 5, [2.0] * 6)

    assert found is not None
    assert (found.ratio, found.low, found.high, found.kind, found.claimed) == (1.5, 1.5, 1.5, "interval", True)


@unhurried
@given(
    st.lists(st.floats(90, 110), min_size=1, max_size=7),
    st.lists(st.floats(90, 130), min_size=1, max_size=7),
    st.randoms(),
)
def test_a_claim_is_over_five_per_cent_with_a_bracket_that_excludes_none_at_all_in_any_order(
    first: list[float], second: list[float], rng: random.Random
) -> None:
    found = compare(first, second)

    assert found is not None
    assert found == compare(rng.sample(first, len(first)), rng.sample(second, len(second)))
    assert found.low <= found.ratio <= found.high
    if min(len(first), len(second)) < 2:
        assert found.claimed is None
    else:
        excludes = not found.low <= 1 <= found.high
        assert found.claimed is (excludes and max(found.ratio, 1 / found.ratio) > 1.05)


@pytest.mark.parametrize(
    ("first", "second", "claimed", "equivalent"),
    [
        ([100, 101, 100, 99, 100], [100, 100, 101, 100, 99], False, True),
        (
            [102, 102, 102, 102, 102],
            [100, 100, 100, 100, 100],
            False,
            True,
        ),  # surely more, and too little to matter
        ([90, 100, 110, 95, 105], [91, 101, 111, 94, 104], False, False),  # nobody knows yet
        ([110, 111, 112, 113, 114], [100, 101, 102, 103, 104], True, False),
        ([100, 100, 100], [100, 100, 100], False, False),  # too few runs to show that nothing is there
    ],
)
def test_equivalence_is_shown_by_an_interval_within_the_band_and_not_by_the_lack_of_a_difference(
    first: list[float], second: list[float], claimed: bool, equivalent: bool
) -> None:
    for found in (compare(first, second), compare(second, first)):
        assert found is not None
        assert (found.claimed, found.equivalent) == (claimed, equivalent)


def test_a_narrower_band_is_harder_to_be_within() -> None:
    first, second = [102.0] * 5, [100.0] * 5
    within = [compare(first, second, pct) for pct in (1.0, 2.5)]

    assert [(one.claimed, one.equivalent) for one in within if one is not None] == [(True, False), (False, True)]


def test_five_runs_against_four_are_compared_by_range() -> None:
    found = compare([2.0] * 5, [1.0] * 4)

    assert found is not None
    assert found.kind == "range"


@pytest.mark.parametrize(("first", "second"), [([], [1.0]), ([1.0], []), ([0.0, 1.0], [1.0]), ([-1.0], [1.0])])
def test_there_is_no_ratio_without_positive_values_on_both_sides(first: list[float], second: list[float]) -> None:
    assert compare(first, second) is None


@unhurried
@given(st.lists(positive, min_size=1, max_size=7), st.lists(positive, min_size=1, max_size=7))
def test_the_other_way_round_is_the_inverse_with_the_same_claim(first: list[float], second: list[float]) -> None:
    there, back = compare(first, second), compare(second, first)

    assert there is not None
    assert back is not None
    assert back.ratio == pytest.approx(1 / there.ratio)
    assert back.low == pytest.approx(1 / there.high)
    assert back.high == pytest.approx(1 / there.low)
    assert back.claimed == there.claimed


@unhurried
@given(
    st.lists(positive, min_size=2, max_size=7),
    st.lists(positive, min_size=2, max_size=7),
    st.integers(min_value=-8, max_value=8),
)
def test_a_ratio_does_not_depend_on_the_unit(first: list[float], second: list[float], power: int) -> None:
    scale = 2.0**power

    assert compare([v * scale for v in first], [v * scale for v in second]) == compare(first, second)


@pytest.mark.parametrize(
    ("first", "second", "p"),
    [
        ([1, 2, 3], [4, 5, 6], 0.1),
        ([4, 5, 6], [1, 2, 3], 0.1),
        ([1, 2, 3, 4, 5], [6, 7, 8, 9, 10], 2 / 252),
        ([1, 3, 5], [2, 4, 6], 0.7),  # U = 3: 7 of 20 deals have a rank sum of at most 9
        ([1, 1, 1], [1, 1, 1], 1.0),
        ([1, 2], [2, 3], 2 * 2 / 6),  # ties share the middle rank
        ([5], [7], 1.0),
    ],
)
def test_the_rank_test_counts_every_way_the_ranks_could_fall(
    first: list[float], second: list[float], p: float
) -> None:
    assert rank_test(first, second) == pytest.approx(p)


def test_the_rank_test_of_nothing_says_nothing() -> None:
    assert rank_test([], [1.0]) is None


@pytest.mark.parametrize(("first", "second", "p"), [(3, 3, 0.1), (5, 5, 2 / 252), (2, 2, 1 / 3), (1, 1, 1.0)])
def test_so_many_runs_can_show_no_smaller_p(first: int, second: int, p: float) -> None:
    assert least_p(first, second) == pytest.approx(p)
    low, high = [float(n) for n in range(first)], [100.0 + n for n in range(second)]
    assert rank_test(low, high) == pytest.approx(p)


@given(
    st.lists(st.floats(1, 1000), min_size=1, max_size=6),
    st.lists(st.floats(1, 1000), min_size=1, max_size=6),
    st.sampled_from([0.5, 2.0, 1024.0]),
)
def test_the_rank_test_knows_neither_order_nor_scale_nor_side(
    first: list[float], second: list[float], scale: float
) -> None:
    p = rank_test(first, second)
    assert p is not None
    assert least_p(len(first), len(second)) <= p + 1e-12
    assert rank_test(second, first) == pytest.approx(p)
    assert rank_test(first[::-1], second[::-1]) == p
    assert rank_test([v * scale for v in first], [v * scale for v in second]) == p


@unhurried
@given(st.lists(st.integers(1, 6), min_size=1, max_size=5), st.lists(st.integers(1, 6), min_size=1, max_size=5))
def test_the_rank_test_equals_dealing_the_runs_out_in_every_way(first: list[int], second: list[int]) -> None:
    pooled = [*first, *second]
    middle = [sum(other < value for other in pooled) + (pooled.count(value) + 1) / 2 for value in pooled]
    sums = [sum(dealt) for dealt in itertools.combinations(middle, len(first))]
    ours = sum(middle[: len(first)])
    as_low, as_high = sum(found <= ours for found in sums), sum(found >= ours for found in sums)

    assert rank_test(first, second) == pytest.approx(min(1, 2 * min(as_low, as_high) / len(sums)))


def test_of_runs_that_measure_the_same_hardly_any_split_claims_a_difference() -> None:
    """Ten runs of one thing, dealt out to two groups of five in 20 ways."""
    dealer = random.Random(7)
    runs = [dealer.lognormvariate(0, 0.03) * 300 for _ in range(10)]
    claimed = 0
    for _ in range(20):
        dealer.shuffle(runs)
        found = compare(runs[:5], runs[5:])
        assert found is not None
        claimed += bool(found.claimed)

    assert claimed <= 1


@pytest.mark.parametrize(
    ("runs", "least", "most"),
    [(2, 0.28, 0.38), (3, 0.06, 0.14), (5, 0.01, 0.08), (7, 0.01, 0.08)],  # 1 in 3, 1 in 10, and at most about 5 %
)
def test_chance_alone_makes_as_many_claims_as_the_report_says(runs: int, least: float, most: float) -> None:
    """Both sides measure the same, with a spread that 5 % is nothing to."""
    dealer = random.Random(11)
    claimed = 0
    for _ in range(400):
        one, other = ([dealer.lognormvariate(0, 0.5) for _ in range(runs)] for _ in range(2))
        found = compare(one, other)
        claimed += found is not None and bool(found.claimed)

    assert least <= claimed / 400 <= most


@pytest.mark.parametrize(("runs", "least", "most"), [(5, 0.90, 0.97), (7, 0.84, 0.91), (10, 0.92, 0.98)])
def test_an_interval_covers_the_true_median_about_as_often_as_it_is_said_to(
    runs: int, least: float, most: float
) -> None:
    dealer = random.Random(13)
    covered = 0
    for _ in range(500):
        found = estimate([dealer.lognormvariate(0, 0.2) for _ in range(runs)])
        covered += found is not None and found.low <= 1 <= found.high

    assert least <= covered / 500 <= most


def test_a_tenth_more_is_found_by_five_runs_that_vary_by_two_per_cent() -> None:
    dealer = random.Random(12)
    found = [
        compare(*([dealer.gauss(value, 0.02 * value) for _ in range(5)] for value in (550, 500)))
        for _ in range(100)
    ]

    assert sum(one is not None and one.higher == 0 for one in found) >= 95
    assert not any(one is not None and one.higher == 1 for one in found)


def test_of_many_runs_the_rank_test_is_approximated_closely(monkeypatch: pytest.MonkeyPatch) -> None:
    dealer = random.Random(3)
    for shift in (0.0, 0.3, 0.6):
        first = [round(dealer.gauss(0, 1), 1) for _ in range(18)]  # rounded: with ties
        second = [round(dealer.gauss(shift, 1), 1) for _ in range(20)]
        exact = rank_test(first, second)
        monkeypatch.setattr("runner.report.stats.EXACT_UP_TO", 0)
        assert rank_test(first, second) == pytest.approx(exact, abs=0.01)
        monkeypatch.undo()


def test_of_many_equal_runs_nothing_separates() -> None:
    assert rank_test([1.0] * 30, [1.0] * 30) == 1.0
