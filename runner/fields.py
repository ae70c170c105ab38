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
Deadline = Annotated[float, Meta(gt=0)]  # a span that bounds a wait; finite


@dataclass(frozen=True, kw_only=True)
class Load:
    """How calls are issued.

    `connections` is the number of client connections; each carries one call at a time. With `multiplex`, that
    many calls share one connection instead. `placement`: server and driver on different cores (split), on one
    (same) or unpinned (free); auto chooses by operation and number of cores.
    """

    name: str
    arrival: Literal["closed"]
    connections: Count
    multiplex: bool
    placement: Literal["auto", "split", "same", "free"]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What bounds a run: memory of either process, the size of one message, and every wait."""

    max_rss_mb: Count
    max_message_bytes: Count
    start_s: Deadline  # a process from launch to its ready line
    connect_s: Deadline  # every connection opened and verified
    call_s: Deadline  # no progress for so long ends the run
    run_s: Deadline  # warm-up and measurement together


@dataclass(frozen=True, kw_only=True)
class Record:
    """What is kept: rows of raw samples per name (the histogram always holds all of them)."""

    samples_max: Natural
