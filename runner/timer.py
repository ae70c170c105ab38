"""Waking up on time. Event loops sleep in milliseconds (uvloop's timers are whole ones, epoll's time-out too), and
calls are due in microseconds.

    timerfd   Linux: the kernel makes a file readable at an absolute time of the clock that we stamp with. It is as
              precise as a socket, costs no CPU while waiting, and leaves the core to a server that shares it.
    spin      elsewhere: sleep until SPIN_NS before, then give up the loop again and again. It burns the driver's
              core, so that the driver's CPU time says nothing; `name` tells the two apart.

Whichever it is, a run records how late its calls were sent (the schedule delay).
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from runner.samples import NS_PER_S

SPIN_NS = 1_500_000  # a loop's sleep may end this much late
_CLOCK_MONOTONIC = 1
_ABSOLUTE = 1  # TFD_TIMER_ABSTIME


class Timer(Protocol):
    """Waits until stamps of the driver's clock. `name`: how."""

    name: str

    async def until(self, at_ns: int) -> None:
        """Returns at `at_ns` or soon after, never before. Gives up the loop at least once."""


class SpinTimer:
    """For systems without a precise timer."""

    name = "spin"

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock

    async def until(self, at_ns: int) -> None:
        left = at_ns - self._clock()
        await asyncio.sleep(max(left - SPIN_NS, 0) / NS_PER_S)
        while self._clock() < at_ns:  # noqa: ASYNC110 - time is what it waits for
            await asyncio.sleep(0)


class _Times(ctypes.Structure):
    """struct itimerspec: the interval (unused) and the time, each in seconds and nanoseconds."""

    _fields_ = (
        ("interval_s", ctypes.c_long),
        ("interval_ns", ctypes.c_long),
        ("at_s", ctypes.c_long),
        ("at_ns", ctypes.c_long),
    )


class KernelTimer:
    """One timerfd (see timerfd_create(2)), watched by the running loop. Its clock is perf_counter_ns."""

    name = "timerfd"

    def __init__(self, fd: int, settime: Callable[..., int]) -> None:
        self._fd = fd
        self._settime = settime
        self._times = _Times()
        self._pointer = ctypes.byref(self._times)
        self._woken: asyncio.Future[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(fd, self._readable)

    def _readable(self) -> None:
        try:
            os.read(self._fd, 8)
        except BlockingIOError:
            return
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)

    async def until(self, at_ns: int) -> None:
        if at_ns <= time.perf_counter_ns():
            await asyncio.sleep(0)
            return
        self._times.at_s, self._times.at_ns = divmod(at_ns, NS_PER_S)
        self._woken = self._loop.create_future()
        self._settime(self._fd, _ABSOLUTE, self._pointer, None)
        await self._woken

    def close(self) -> None:
        """The loop no longer watches it."""
        self._loop.remove_reader(self._fd)
        os.close(self._fd)


@contextmanager
def open_timer() -> Iterator[Timer]:
    """The most precise timer that this system has for perf_counter_ns, on the running loop."""
    kernel = _kernel_timer()
    if kernel is None:
        yield SpinTimer(time.perf_counter_ns)
        return
    try:
        yield kernel
    finally:
        kernel.close()


def _kernel_timer() -> KernelTimer | None:
    """None where the kernel has none, or counts on another clock than we do."""
    if not sys.platform.startswith("linux"):
        return None
    if "CLOCK_MONOTONIC)" not in time.get_clock_info("perf_counter").implementation:
        return None
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        fd = libc.timerfd_create(_CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
        return KernelTimer(fd, libc.timerfd_settime) if fd >= 0 else None
    except (OSError, AttributeError):
        return None
