"""When calls are due: exact times, no waiting."""

from __future__ import annotations

import statistics

import pytest

from runner.arrivals import due_ns, open_problems, seed_of, seeded
from runner.fields import ClosedLoad, ConstantLoad, PoissonLoad
from tests.drives import LIMITS

COMMON = {"connections": 4, "multiplex": False, "placement": "auto", "max_in_flight": 100}


def constant(rate: float, duration_s: float | None = None, **knobs: object) -> ConstantLoad:
    own = {**COMMON, "rate": rate, "duration_s": duration_s, **knobs}
    return ConstantLoad(name="constant", arrival="constant", **own)


def poisson(rate: float, duration_s: float | None = None, seed: int | None = 7) -> PoissonLoad:
    own = {**COMMON, "rate": rate, "duration_s": duration_s}
    return PoissonLoad(name="poisson", arrival="poisson", seed=seed, **own)


@pytest.mark.parametrize(
    ("rate", "due"),
    [
        (1000, [0, 1_000_000, 2_000_000]),
        (3, [0, 333_333_333, 666_666_667]),
        (0.5, [0, 2_000_000_000, 4_000_000_000]),  # fewer than there are connections
        (2.5, [0, 400_000_000, 800_000_000]),
    ],
)
def test_constant_arrivals_are_evenly_spaced_whatever_the_rate(rate: float, due: list[int]) -> None:
    assert list(due_ns(constant(rate), 3)) == due


def test_a_rate_that_divides_no_second_does_not_drift() -> None:
    assert due_ns(constant(7), 7_000_001)[-1] == 1_000_000 * 10**9


@pytest.mark.parametrize(("rate", "calls"), [(1000, 2000), (0.5, 1), (1.5, 3), (0.3, 1)])
def test_a_duration_has_the_calls_that_fall_into_it(rate: float, calls: int) -> None:
    assert len(due_ns(constant(rate, duration_s=2), 5)) == calls


def test_poisson_arrivals_follow_from_the_seed_alone() -> None:
    assert due_ns(poisson(100), 50, seed=1) == due_ns(poisson(100), 60, seed=1)[:50]
    assert due_ns(poisson(100), 50, seed=1) != due_ns(poisson(100), 50, seed=2)


def test_poisson_gaps_are_exponential() -> None:
    due = due_ns(poisson(1000), 20_000, seed=7)
    gaps = [b - a for a, b in zip([0, *due], due, strict=False)]

    # Of an exponential: mean = standard deviation = 1 / rate, and 1/e of the gaps are longer than the mean.
    assert statistics.mean(gaps) == pytest.approx(1e6, rel=0.03)
    assert statistics.stdev(gaps) == pytest.approx(1e6, rel=0.05)
    assert sum(gap > 1e6 for gap in gaps) / len(gaps) == pytest.approx(0.3679, abs=0.02)
    assert due[0] > 0


def test_poisson_in_a_duration_ends_with_it() -> None:
    due = due_ns(poisson(1000, duration_s=2), 5, seed=7)

    assert 1_800 < len(due) < 2_200
    assert due[-1] < 2_000_000_000
    assert list(due) == sorted(due)


def test_a_seed_is_drawn_where_there_is_none_and_kept_where_there_is_one() -> None:
    closed = ClosedLoad(name="closed", arrival="closed", connections=1, multiplex=False, placement="auto")
    drawn = seeded(poisson(10, seed=None))

    assert seed_of(drawn) is not None
    assert seeded(drawn) is drawn
    assert seeded(constant(10)) == constant(10)
    assert seeded(closed) is closed
    assert (seed_of(constant(10)), seed_of(closed)) == (None, None)


@pytest.mark.parametrize(
    ("load", "said"),
    [
        (constant(10, max_in_flight=3), "load.max_in_flight: 3 is less than load.connections (4)"),
        (constant(0.5), "load.rate: 10 calls at 0.5 a second take 20 s, limits.run_s is 5"),
        (constant(10, duration_s=6), "load.duration_s: the run takes 6 s, limits.run_s is 5"),
        (constant(1e9, duration_s=1), "load.rate: 1,000,000,000 calls are more than one run keeps"),
    ],
)
def test_what_cannot_be_honoured_is_refused(load: ConstantLoad, said: str) -> None:
    [problem] = open_problems(load, LIMITS, 10)

    assert problem.startswith(said)


def test_what_can_be_honoured_is_not_refused() -> None:
    assert open_problems(constant(10), LIMITS, 10) == []
    assert open_problems(poisson(1e6, duration_s=1), LIMITS, 10) == []
