"""The kinds of value a configuration key takes, and the sections that every cell has.

A key's annotation is its validation (msgspec constraints); `runner.config` walks them all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta

Count = Annotated[int, Meta(ge=1)]  # a number of things, at least one
Natural = Annotated[int, Meta(ge=0)]  # a number of things, perhaps none
Port = Annotated[int, Meta(ge=0, le=65_535)]  # 0: any free one
Seconds = Annotated[float, Meta(ge=0)]  # a span of time; finite
Milliseconds = Annotated[float, Meta(ge=0)]  # likewise
Deadline = Annotated[float, Meta(gt=0)]  # a span that bounds a wait; finite
PerSecond = Annotated[float, Meta(gt=0)]  # a rate; a fraction is as good as a whole number


@dataclass(frozen=True, kw_only=True)
class Load:
    """How calls are issued. In a closed loop each caller makes its next call when the last one is answered.

    `connections` is the number of client connections; each carries one call at a time. With `multiplex`, that
    many calls share one connection instead. `placement`: server and driver on different cores (split), on one
    (same) or unpinned (free); auto chooses by operation and number of cores.
    """

    name: str
    arrival: Literal["closed", "constant", "poisson"]
    connections: Count
    multiplex: bool
    placement: Literal["auto", "split", "same", "free"]


@dataclass(frozen=True, kw_only=True)
class ClosedLoad(Load):
    """The next call when the answer to the last one is in."""

    arrival: Literal["closed"]


@dataclass(frozen=True, kw_only=True)
class OpenLoad(Load):
    """Calls are due at times of their own, `rate` of them per second over all connections. One that finds every
    connection busy waits for one; it is dropped where `max_in_flight` calls are waiting or under way.

    `duration_s`: for how long calls are due; null: until the operation's count of them were.
    """

    rate: PerSecond
    duration_s: Deadline | None
    max_in_flight: Count


@dataclass(frozen=True, kw_only=True)
class ConstantLoad(OpenLoad):
    """Evenly spaced."""

    arrival: Literal["constant"]


@dataclass(frozen=True, kw_only=True)
class PoissonLoad(OpenLoad):
    """With exponential gaps from `seed`; null: drawn for each run and stored with it."""

    arrival: Literal["poisson"]
    seed: Natural | None


LOADS: dict[str, type[Load]] = {"closed": ClosedLoad, "constant": ConstantLoad, "poisson": PoissonLoad}


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What bounds a run: memory of either process, the size of one message, and every wait."""

    max_rss_mb: Count
    max_message_bytes: Count
    max_waited_pct: Count = 50  # of the window: a process waiting for a CPU that other programs have
    start_s: Deadline  # a process from launch to its ready line
    connect_s: Deadline  # every connection opened and verified
    call_s: Deadline  # no progress for so long ends the run
    run_s: Deadline  # warm-up and measurement together


@dataclass(frozen=True, kw_only=True)
class Record:
    """What is kept: rows of raw samples per name (the histogram always holds all of them)."""

    samples_max: Natural
