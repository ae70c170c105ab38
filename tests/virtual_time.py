"""An event loop whose clock jumps to the next timer: hours of traffic in moments, and exact numbers."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from runner.samples import NS_PER_S

T = TypeVar("T")
START_S = 1_000.0  # stamps of 0 mean "never"


class VirtualLoop(asyncio.SelectorEventLoop):
    """Where it would wait, time passes instead. Raises RuntimeError where it would wait for ever."""

    def __init__(self) -> None:
        super().__init__()
        self._now_s = START_S
        really = self._selector.select  # type: ignore[has-type]

        def select(timeout: float | None) -> Any:
            if timeout is None:
                raise RuntimeError("nothing is left that could end this wait")
            self._now_s += max(timeout, 0)
            return really(0)

        self._selector.select = select

    def time(self) -> float:
        return self._now_s


def virtually(work: Coroutine[Any, Any, T]) -> T:
    """`work` on such a loop."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)


def clock() -> int:
    """Nanoseconds of the running loop."""
    return round(asyncio.get_running_loop().time() * NS_PER_S)


class VirtualTimer:
    """Exact, but for `late_ns`."""

    name = "virtual"

    def __init__(self, late_ns: int = 0) -> None:
        self.late_ns = late_ns

    async def until(self, at_ns: int) -> None:
        await asyncio.sleep(max(at_ns + self.late_ns - clock(), 0) / NS_PER_S)
        while clock() < at_ns:  # noqa: ASYNC110 - what floating point has lost
            await asyncio.sleep(1e-9)
