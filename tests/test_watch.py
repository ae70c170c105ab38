"""What bounded a quiet stream, from what both processes said, on a clock that only the test moves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from runner.operations.api import Raw
from runner.operations.watch import NS, Watch, watch

MB = 2**20
DRIVER = {"consumed": 100, "inbox": 0, "held": 0, "rss_bytes": 50 * MB, "receive_queue_bytes": 0, "read_bytes": 0}
SERVER = {
    "outbound": 0,
    "backlog_messages": 0,
    "backlog_bytes": 0,
    "rss_bytes": 60 * MB,
    "send_queue_bytes": 0,
    "peers": 1,
}


class Clock:
    """Time passes only while somebody sleeps."""

    def __init__(self, now: int = 7 * NS) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += round(seconds * NS)


def see(
    produced: Callable[[float], int],
    *,
    quiet_s: list[float] | None = None,
    settle_s: float = 5.0,
    ceiling_mb: int = 1000,
    answers_every: int = 1,
    server: Callable[[float], dict[str, Any]] = lambda t: {},
    driver: Callable[[float], dict[str, Any]] = lambda t: {},
) -> tuple[Raw, float]:
    """Watch a server that has produced `produced(t)` at t seconds. Returns what was found, and for how long."""
    clock = Clock()
    start = clock.now
    seen = Watch(100, quiet_s or [0.5, 1.0, 2.0], settle_s, start, ceiling_mb * MB)

    def look() -> tuple[dict[str, Any], dict[str, Any]]:
        t = (clock.now - start) / NS
        both = ({"t_ns": clock.now, "produced": produced(t)}, {"t_ns": clock.now})
        if answers_every > 1:  # a server too busy to answer at once: the next looks are missed
            clock.sleep(0.05 * (answers_every - 1))
        return {**SERVER, **both[0], **server(t)}, {**DRIVER, **both[1], **driver(t)}

    watch(seen, look, clock, clock.sleep)
    raw = Raw()
    seen.into(raw)
    return raw, (clock.now - start) / NS


def test_exactly_what_was_asked_for_is_demand() -> None:
    raw, seconds = see(lambda t: 100)

    assert raw.facts == {"bounded_by": "demand", "bound_reason": "exactly what was asked for was made"}
    assert [value for _, value in raw.series["produced_at_quiet"]] == [100, 100, 100]
    assert raw.counts["plateau_after_ns"] == 0
    assert seconds == 2.0


def test_one_more_than_asked_for_is_not_demand() -> None:
    raw, _ = see(lambda t: 101)

    assert raw.facts["bounded_by"] == "buffers"


def test_a_count_that_rises_and_then_stands_still_is_buffers() -> None:
    raw, _ = see(lambda t: min(100 + round(t * 1000), 3100))

    assert raw.facts["bounded_by"] == "buffers"
    assert raw.counts["produced"] == 3100
    assert raw.counts["plateau_after_ns"] == 3 * NS
    assert [value for _, value in raw.series["produced_at_quiet"]] == [600, 1100, 2100]


def test_still_growing_at_the_last_quiet_period_is_not_yet_unbounded() -> None:
    """A default gRPC client fills its window in 4-8 s: at 2 s it looks like a stream without any bound."""
    raw, seconds = see(lambda t: min(100 + round(t * 10_000), 80_100), settle_s=12)

    assert raw.facts["bounded_by"] == "buffers"
    assert raw.counts["plateau_after_ns"] == 8 * NS
    assert 8.9 < seconds < 9.2


def test_a_count_that_never_stands_still_is_bounded_by_nothing() -> None:
    raw, seconds = see(lambda t: 100 + round(t * 1000), settle_s=5)

    assert raw.facts == {"bounded_by": "nothing", "bound_reason": "still rising 7 s after the reader went quiet"}
    assert seconds == pytest.approx(7.0)


def test_the_memory_ceiling_ends_the_watch_and_later_quiet_periods_are_not_made_up() -> None:
    raw, _ = see(
        lambda t: 100 + round(t * 1000), server=lambda t: {"rss_bytes": round(900 * t) * MB}, ceiling_mb=1000
    )

    assert raw.facts == {
        "bounded_by": "nothing",
        "bound_reason": "the server reached the memory ceiling of 1,000 MB",
    }
    assert [value for _, value in raw.series["produced_at_quiet"]] == [600, 1100, None]


def test_a_driver_that_reaches_the_ceiling_is_named() -> None:
    raw, _ = see(lambda t: 100 + round(t * 1000), driver=lambda t: {"rss_bytes": round(500 + 900 * t) * MB})

    assert raw.facts["bounded_by"] == "nothing"
    assert raw.facts["bound_reason"] == "the driver reached the memory ceiling of 1,000 MB"


def test_a_process_that_was_over_the_ceiling_from_the_start_has_shown_nothing() -> None:
    raw, _ = see(lambda t: 100, server=lambda t: {"rss_bytes": 2000 * MB})

    assert raw.facts["bounded_by"] == ""
    assert raw.facts["bound_reason"] == (
        "the server was over the memory ceiling of 1,000 MB before anything was watched; raise it"
    )


def test_silence_is_not_standing_still() -> None:
    """A server that answers every fourth look has not shown that its count stands still."""
    raw, _ = see(lambda t: 5000, answers_every=4, settle_s=3)

    assert raw.facts["bounded_by"] == ""
    assert raw.facts["bound_reason"] == "too few answers to tell: 7 in the last 1 s"


def test_silence_and_a_rising_count_is_bounded_by_nothing() -> None:
    raw, _ = see(lambda t: 5000 + round(t * 100), answers_every=4, settle_s=3)

    assert raw.facts["bounded_by"] == "nothing"


def test_every_quiet_period_is_looked_at_when_it_ends() -> None:
    raw, _ = see(lambda t: 100 + round(t * 1000), quiet_s=[0.333, 0.777], settle_s=0)

    assert raw.series["produced_at_quiet"] == [(333_000_000, 433), (777_000_000, 877)]


def test_growth_of_memory_is_from_the_first_look_to_the_last() -> None:
    raw, _ = see(lambda t: 100, server=lambda t: {"rss_bytes": 10 * MB + round(t * MB)})

    assert raw.counts["server_rss_growth_bytes"] == 2 * MB
    assert raw.counts["driver_rss_growth_bytes"] == 0


def test_memory_that_cannot_be_read_is_absent_not_zero() -> None:
    raw, _ = see(lambda t: 100, driver=lambda t: {"rss_bytes": None})

    assert "driver_rss_growth_bytes" not in raw.counts
    assert "driver_rss_bytes" not in raw.series
