"""Numbers as the tables show them: a comma every three digits, a point before decimals, whatever the locale."""

from __future__ import annotations

import math
from collections.abc import Iterable

DASH = "-"
ELLIPSIS = "…"


def digits_for(values: Iterable[float | None]) -> int:
    """Decimals that show the smallest of `values` to 2 % or better; one choice for all of them.

    Numbers that are compared (p50 with p99, say) share it: rounding alike keeps their order.
    """
    sizes = [abs(value) for value in values if value]
    smallest = min(sizes, default=math.inf)
    return 0 if smallest >= 25 else 1 if smallest >= 2.5 else 2


def number(value: float | None, digits: int = 0) -> str:
    """`value` with `digits` decimals; a dash for None and for what is not finite."""
    if value is None or not math.isfinite(value):
        return DASH
    text = f"{value:,.{digits}f}"
    return text[1:] if text.startswith("-") and not any("1" <= digit <= "9" for digit in text) else text


def plain(value: float) -> str:
    """As short as it can be: 0.5, 1, 2; six significant figures."""
    return f"{value:g}"


def ratio(value: float | None) -> str:
    """1.04x: three figures from 0.1 to 10, and whole from 100 on."""
    if value is None or not math.isfinite(value):
        return DASH
    return f"{number(value, 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0)}x"


def percent(value: float | None) -> str:
    """`value` is in per cent already."""
    return DASH if value is None else f"{number(value)} %"


def size(value: float) -> str:
    """Bytes in the unit that leaves one to three digits before the point; decimal units, as 1 MB = 1,000,000 B."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if abs(value) >= scale * 0.9995:
            scaled = value / scale
            return f"{number(scaled, 1 if abs(scaled) < 99.95 else 0)} {unit}"
    return f"{number(value)} B"


def counted(n: float, noun: str, plural: str | None = None) -> str:
    """1 run, 3 runs."""
    return f"{number(n)} {noun if n == 1 else plural or noun + 's'}"


def listed(words: Iterable[str], last: str = "and") -> str:
    """a, b and c."""
    items = list(words)
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {last} {items[-1]}" if items else ""
