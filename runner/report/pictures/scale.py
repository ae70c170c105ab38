"""From values to places on paper, and which values get a tick."""

from __future__ import annotations

import math
from dataclasses import dataclass

from runner.report.figures import number, plain

STEPS = (1.0, 2.0, 5.0)
TICKS_MOST = 6


@dataclass(frozen=True)
class Scale:
    """Values from `low` to `high` on places from `start` to `end`."""

    low: float
    high: float
    log: bool
    start: float
    end: float

    def at(self, value: float) -> float:
        """The place of `value`."""
        turned = math.log10 if self.log else float
        share = (turned(value) - turned(self.low)) / (turned(self.high) - turned(self.low))
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Round values on the scale, TICKS_MOST + 1 at most."""
        return _log_ticks(self.low, self.high) if self.log else _even_ticks(self.low, self.high)


def scale(low: float, high: float, log: bool, start: float, end: float) -> Scale:
    """A scale that begins and ends at round values; one that is not logarithmic begins at 0, or below for less."""
    if log:
        low, high = _round_down(low), _round_up(high)
        if low == high:
            low, high = low / 2, high * 2
    else:
        step = _step(min(low, 0.0), max(high, 0.0) or 1.0)
        low, high = math.floor(min(low, 0.0) / step) * step, math.ceil((max(high, 0.0) or 1.0) / step) * step
    return Scale(low, high, log, start, end)


def reading(value: float) -> str:
    """How a tick reads."""
    return number(value) if value == int(value) else plain(value)


def _round_down(value: float) -> float:
    return max(found for found in _round_values(value) if found <= value * (1 + 1e-9))


def _round_up(value: float) -> float:
    return min(found for found in _round_values(value) if found >= value * (1 - 1e-9))


def _round_values(value: float) -> list[float]:
    """1, 2 and 5 times powers of ten, around `value`."""
    power = math.floor(math.log10(value))
    return [_exact(step, power + more) for more in (-1, 0, 1) for step in STEPS]


def _exact(step: float, power: int) -> float:
    return float(f"{step:g}e{power}")  # 10**-1 * 5 is not 0.5


def _log_ticks(low: float, high: float) -> list[float]:
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for steps in (STEPS, (1.0, 3.0), (1.0,)):
        every = [_exact(step, power) for power in range(first, last + 1) for step in steps]
        found = [tick for tick in every if low * (1 - 1e-9) <= tick <= high * (1 + 1e-9)]
        if len(found) <= TICKS_MOST + 1:
            return found
    return found[:: math.ceil(len(found) / TICKS_MOST)]


def _step(low: float, high: float) -> float:
    """The smallest of 1, 2, 5 times a power of ten that parts low to high into TICKS_MOST steps or fewer."""
    rough = (high - low) / TICKS_MOST
    return min(found for found in _round_values(rough) if found >= rough * (1 - 1e-9))


def _even_ticks(low: float, high: float) -> list[float]:
    step = _step(low, high)
    return [round(low / step + i) * step for i in range(round((high - low) / step) + 1)]
