"""How far a sender got ahead of a receiver that takes its time, from the stamps of both.

Stamps are perf_counter_ns of either process: one clock for all processes of a machine (CLOCK_MONOTONIC).
"""

from __future__ import annotations

from collections.abc import Sequence

MOST = 100_000  # messages that are stamped one by one at both ends

Stamped = list[tuple[int, float | None]]  # a series: (t_ns, how many messages by then)


def stamped(times_ns: Sequence[int]) -> Stamped:
    """The stamps of messages, in order, as a series."""
    return [(at, number) for number, at in enumerate(times_ns, 1)]


def ahead(made: Stamped, taken: Stamped) -> Stamped:
    """[(ns since the first message was made, messages made by then and not yet taken)], once for each message made,
    itself included: between two of them the number only falls.
    """
    found: Stamped = []
    gone = 0
    for number, (at, _) in enumerate(made, 1):
        while gone < len(taken) and taken[gone][0] <= at:
            gone += 1
        found.append((at - made[0][0], number - gone))
    return found
