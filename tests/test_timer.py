"""The timer never wakes early and lets others run. How late it is, is measured in every run, not here."""

from __future__ import annotations

import asyncio
import sys
import time

import pytest
import uvloop

from runner import timer
from runner.timer import SpinTimer, open_timer

LOOPS = {"uvloop": uvloop.new_event_loop, "asyncio": asyncio.new_event_loop}


async def _never_early() -> None:
    with open_timer() as found:
        for ahead_ns in (-1_000_000, 0, 1_000, 50_000, 300_000, 1_700_000, 5_000_000):
            at = time.perf_counter_ns() + ahead_ns
            await found.until(at)
            assert time.perf_counter_ns() >= at


async def _lets_others_run() -> None:
    ran = 0

    async def other() -> None:
        nonlocal ran
        while True:
            ran += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    with open_timer() as found:
        for ahead_ns in (-1_000_000, 2_000_000):
            before = ran
            await found.until(time.perf_counter_ns() + ahead_ns)
            assert ran > before
    task.cancel()


@pytest.mark.parametrize("spinning", [False, True])
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("check", [_never_early, _lets_others_run])
def test_a_timer_is_never_early_and_lets_others_run(
    check: object, loop: str, spinning: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if spinning:
        monkeypatch.setattr(timer, "_kernel_timer", lambda: None)
    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.run(check())  # type: ignore[operator]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="timerfd is Linux's")
async def test_linux_has_a_timer_that_costs_no_cpu() -> None:
    with open_timer() as found:
        assert found.name == "timerfd"
        before = time.process_time_ns()
        await found.until(time.perf_counter_ns() + 300_000_000)
        assert time.process_time_ns() - before < 150_000_000


async def test_elsewhere_the_timer_says_that_it_spins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "plan9")
    with open_timer() as found:
        assert isinstance(found, SpinTimer)
        assert found.name == "spin"
