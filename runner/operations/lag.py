"""How late the driver's event loop is with what is due: an answer that has arrived waits for it, too.

In an open loop the schedule delay of the calls says that. Where calls are sent by the answers before them, nothing
is due by the clock, so something is put there that is.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from runner.checks import Check, within
from runner.drive import Drive
from runner.operations.api import Raw
from runner.samples import NS_PER_US, nearest_rank
from runner.timer import Timer

EVERY_NS = 5_000_000  # a look costs some 15 µs: 0.3 % of a core
LOOKS = 20  # with fewer, one hiccup of the machine is a tenth of them
LAG_NS = 1_000_000  # less is never held against the driver
LAG_SHARE = 0.5  # of the latency's p90: with more, it says more of the driver than of the server


@asynccontextmanager
async def lag_noted(drive: Drive) -> AsyncIterator[None]:
    """While the body runs, how late the loop is, every EVERY_NS: the samples `loop_lag`. None without a timer that
    waits without burning the core.
    """
    if drive.timer is None or drive.timer.name == "spin":
        yield
        return
    lags: list[int] = []
    looking = asyncio.create_task(_look(drive, drive.timer, lags))
    try:
        yield
    finally:
        looking.cancel()
        await asyncio.wait([looking])
        drive.raw.samples["loop_lag"] = lags


async def _look(drive: Drive, timer: Timer, lags: list[int]) -> None:
    due = drive.clock() + EVERY_NS
    while True:
        await timer.until(due)
        now = drive.clock()
        lags.append(max(now - due, 0))
        due = max(due, now) + EVERY_NS


def lag_measurements(raw: Raw) -> dict[str, tuple[float, str]]:
    """loop_lag_p90_us, where there were enough looks."""
    found = _p90(raw)
    return {} if found is None else {"loop_lag_p90_us": (found / NS_PER_US, "us")}


def lag_checks(raw: Raw, latency_p90_us: float | None) -> list[Check]:
    """Whether the answers waited for the driver's loop rather than for the server. A warning: of many connections
    that are answered in one burst most wait for their turn, though the driver has time to spare (its CPU share is
    what makes a run void).
    """
    found = _p90(raw)
    if found is None or latency_p90_us is None:
        return []
    most = max(LAG_NS / NS_PER_US, LAG_SHARE * latency_p90_us)
    said = (
        f"the driver's event loop was late by {found / 1e6:,.3g} ms (p90), where p90 of the latency is "
        f"{latency_p90_us / 1e3:,.3g} ms: over {LAG_NS / 1e6:g} ms and over half of it, much of it is the driver's"
    )
    return [within("loop_lag_p90_us", found / NS_PER_US, "us", said, most=most, weight="warning")]


def _p90(raw: Raw) -> int | None:
    lags = raw.samples.get("loop_lag", [])
    return nearest_rank(sorted(lags), 90.0) if len(lags) >= LOOKS else None
