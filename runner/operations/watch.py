"""Watching a quiet stream from outside: both processes are asked every LOOK_EVERY_S how much was produced and
where it is, until every quiet period has passed and the count stands still, or time or memory runs out.

Stamps are the answering process's own perf_counter_ns: one clock for all processes of a machine (CLOCK_MONOTONIC).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from runner.operations.api import Raw

LOOK_EVERY_S = 0.05
STILL_S = 1.0  # unchanged for so long is standing still: a default grpcio client fills its window in 4-8 s
STILL_ANSWERS = 15  # of the 20 looks in STILL_S; fewer mean that the server was too busy to say
NS = 1_000_000_000

Counters = dict[str, Any]
Look = Callable[[], tuple[Counters, Counters]]  # asks the server, then the driver


class Watch:
    """What has been seen of one quiet stream. `quiet_ns`: when the reader, having taken `asked`, went quiet."""

    def __init__(
        self, asked: int, quiet_s: Sequence[float], settle_s: float, quiet_ns: int, ceiling_bytes: int
    ) -> None:
        self._asked = asked
        self._quiet_s = quiet_s
        self._settle_s = settle_s
        self._start = quiet_ns
        self._ceiling = ceiling_bytes
        self.series: dict[str, list[tuple[int, float | None]]] = {}
        self.bounded_by = ""
        self.bound_reason = ""
        self._server: Counters = {}
        self._driver: Counters = {}

    def add(self, server: Counters, driver: Counters) -> None:
        """One look: the answers of both sides."""
        at = server["t_ns"] - self._start
        self._server, self._driver = server, driver
        self._note("produced", at, server["produced"])
        self._note("outbound", at, server["outbound"])
        self._note("server_rss_bytes", at, server["rss_bytes"])
        self._note("driver_rss_bytes", driver["t_ns"] - self._start, driver["rss_bytes"])
        self._note("inbox", driver["t_ns"] - self._start, driver["inbox"])
        self._decide(at)

    def _note(self, name: str, at: int, value: float | None) -> None:
        if value is not None:
            self.series.setdefault(name, []).append((at, value))

    def _decide(self, at: int) -> None:
        for side, counters in (("server", self._server), ("driver", self._driver)):
            if (counters["rss_bytes"] or 0) > self._ceiling:
                ceiling = f"the memory ceiling of {self._ceiling // 2**20:,} MB"
                if len(self.series["produced"]) == 1:
                    self.bound_reason = f"the {side} was over {ceiling} before anything was watched; raise it"
                else:
                    self.bounded_by = "nothing"
                    self.bound_reason = f"the {side} reached {ceiling}"
                return
        if at < self._quiet_s[-1] * NS:
            return
        produced = self.series["produced"]
        recent = [value for t, value in produced if t > at - STILL_S * NS]
        still = len(set(recent)) == 1 and len(recent) >= STILL_ANSWERS
        if still and produced[-1][1] == self._asked:
            self.bounded_by, self.bound_reason = "demand", "exactly what was asked for was made"
        elif still:
            self.bounded_by, self.bound_reason = "buffers", f"unchanged for {STILL_S:g} s"
        elif at >= (self._quiet_s[-1] + self._settle_s) * NS:
            if len(set(recent)) > 1 or self._settle_s < STILL_S:
                self.bounded_by = "nothing"
                self.bound_reason = f"still rising {at / NS:.0f} s after the reader went quiet"
            else:
                self.bound_reason = f"too few answers to tell: {len(recent)} in the last {STILL_S:g} s"

    def quiet_points(self) -> list[int]:
        """The stamps at which the quiet periods end."""
        return [self._start + round(quiet * NS) for quiet in self._quiet_s]

    @property
    def finished(self) -> bool:
        """Whether it is known what bounded the stream."""
        return bool(self.bound_reason)

    def into(self, raw: Raw) -> None:
        """Leave what was seen in `raw`: series, the verdict, and the ledger's entries at the last look."""
        produced = self.series["produced"]
        final = produced[-1][1]
        raw.series |= self.series
        raw.series["produced_at_quiet"] = [
            (round(quiet * NS), next((value for t, value in produced if t >= quiet * NS), None))
            for quiet in self._quiet_s
        ]
        raw.facts |= {"bounded_by": self.bounded_by, "bound_reason": self.bound_reason}
        server, driver = self._server, self._driver
        raw.counts |= {
            "produced": server["produced"],
            "plateau_after_ns": max(next(t for t, value in produced if value == final), 0),
            "consumed": driver["consumed"],
            "inbox": driver["inbox"],
            "outbound": server["outbound"],
            "backlog_messages": server["backlog_messages"] or 0,
            "backlog_bytes": server["backlog_bytes"] or 0,
            "send_queue_bytes": server["send_queue_bytes"] or 0,
            "receive_queue_bytes": driver["receive_queue_bytes"] or 0,
        }
        for name in ("held", "read_bytes"):
            if driver[name] is not None:
                raw.counts[name] = driver[name]
        for side in ("server", "driver"):
            sizes = [value for _, value in self.series.get(f"{side}_rss_bytes", []) if value is not None]
            if sizes:
                raw.counts[f"{side}_rss_growth_bytes"] = int(sizes[-1] - sizes[0])


def watch(
    seen: Watch,
    look: Look,
    clock: Callable[[], int] = time.perf_counter_ns,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Look until it is known what bounds the stream: every LOOK_EVERY_S, and at each quiet period."""
    points = seen.quiet_points()
    due = clock()
    while True:
        seen.add(*look())
        if seen.finished:
            return
        now = clock()
        due = max(due + round(LOOK_EVERY_S * NS), now)
        upcoming = min([point for point in points if point > now], default=due)
        due = min(due, upcoming)
        if due > now:
            sleep((due - now) / NS)
