"""The memory that a run may take."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from runner.ceiling import MIB, Ceiling
from runner.host import reset_high_water, rss_bytes, usage
from tests.drives import LIMITS


class Holding:
    """A child of which only the memory is looked at."""

    def __init__(self, name: str, rss: int | None) -> None:
        self.name = name
        self._rss = rss

    def rss_bytes(self) -> int | None:
        return self._rss


@pytest.mark.parametrize(
    ("server", "driver", "said"),
    [
        (1000 * MIB, 1000 * MIB, ""),
        (1000 * MIB + 1, 5, "memory: the server held 1,000 MB, over limits.max_rss_mb=1,000"),
        (5, 1234 * MIB, "memory: the driver held 1,234 MB, over limits.max_rss_mb=1,000"),
        (None, None, ""),
    ],
)
def test_either_process_may_pass_the_ceiling(server: int | None, driver: int | None, said: str) -> None:
    children: list[Any] = [Holding("server", server), Holding("driver", driver)]

    assert Ceiling(children, LIMITS).passed() == said


def test_the_memory_of_another_process_is_seen_until_it_ends() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert (rss_bytes(child.pid) or 0) > 0
        assert child.stdin is not None
        child.stdin.close()
        child.wait(10)
        assert not rss_bytes(child.pid)


@pytest.mark.skipif(not os.path.exists("/proc/self/clear_refs"), reason="the kernel keeps no high water to reset")
def test_the_high_water_keeps_a_peak_that_is_gone_when_one_looks() -> None:
    gone = b"\1" * (64 * MIB)  # a peak before the reset is not counted
    del gone
    reset_high_water()
    before = usage()["high_water_bytes"]
    peak = b"\1" * (32 * MIB)
    del peak

    grown = usage()["high_water_bytes"] - before

    assert 30 * MIB < grown < 60 * MIB
