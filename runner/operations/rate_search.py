"""Finding the highest rate that keeps an objective, as a pure search: it is told what each rate did.

The rate doubles until it breaks (or halves until it is kept), then the interval between the highest kept and the
lowest broken rate is bisected, in ratios, until it is narrower than `precision`. A rate is broken only when it
breaks twice in a row: one hiccup of the machine must not end the rise.
"""

from __future__ import annotations

import math

TRIES = 2
HALVINGS = 10  # below a thousandth of the first rate there is nothing to find


class RateSearch:
    """`rate`: what is to be tried next, None when the search is over. `kept` and `broken`: what is known so far."""

    def __init__(self, start_rate: float, precision: float) -> None:
        self.rate: float | None = start_rate
        self.kept: float | None = None
        self.broken: float | None = None
        self._lowest = start_rate / 2**HALVINGS
        self._precision = precision
        self._failures = 0

    def told(self, kept: bool) -> None:
        """What became of `rate`."""
        assert self.rate is not None
        if kept:
            self.kept, self._failures = self.rate, 0
        else:
            self._failures += 1
            if self._failures < TRIES:
                return
            self.broken, self._failures = self.rate, 0
        self.rate = self._next()

    def _next(self) -> float | None:
        if self.broken is None:
            assert self.kept is not None
            return self.kept * 2
        if self.kept is None:
            return self.broken / 2 if self.broken > self._lowest else None
        if self.broken / self.kept <= 1 + self._precision:
            return None
        return math.sqrt(self.kept * self.broken)
