"""Axes of pictures: round ends, few round ticks, and every value inside."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.report.pictures.scale import TICKS_MOST, reading, scale

POSITIVE = st.floats(1e-6, 1e12)


@given(one=POSITIVE, other=POSITIVE, log=st.booleans())
def test_every_value_is_inside_and_ticks_are_few(one: float, other: float, log: bool) -> None:
    low, high = sorted((one, other))
    made = scale(low, high, log, 0, 100)

    assert all(-1e-6 <= made.at(value) <= 100 + 1e-6 for value in (low, high, *made.ticks()))
    assert made.at(low) <= made.at(high)
    assert 2 <= len(made.ticks()) <= TICKS_MOST + 2
    assert made.ticks() == sorted(set(made.ticks()))


@pytest.mark.parametrize(
    ("low", "high", "log", "ticks"),
    [
        (100, 100, True, ["50", "100", "200"]),
        (100, 20_000_000, True, ["100", "1,000", "10,000", "100,000", "1,000,000", "10,000,000"]),
        (0.04, 2, True, ["0.02", "0.05", "0.1", "0.2", "0.5", "1", "2"]),
        (600, 10_000, False, ["0", "2,000", "4,000", "6,000", "8,000", "10,000"]),
        (0, 0, False, ["0", "0.2", "0.4", "0.6", "0.8", "1"]),
    ],
)
def test_ticks_read_as_people_write_numbers(low: float, high: float, log: bool, ticks: list[str]) -> None:
    assert [reading(tick) for tick in scale(low, high, log, 0, 100).ticks()] == ticks
