"""The memory that a run may take: limits.max_rss_mb. Looked at from outside, so that it costs the measured
processes nothing and is seen even while their loops are busy.
"""

from __future__ import annotations

from collections.abc import Sequence

from runner.fields import Limits
from runner.process import Child

MIB = 2**20


class Ceiling:
    """Of each of `children`. Looked at as often as the supervisor wakes (ten times a second): what a process takes
    in between comes on top.
    """

    def __init__(self, children: Sequence[Child], limits: Limits) -> None:
        self._children = children
        self._max_bytes = limits.max_rss_mb * MIB

    def passed(self) -> str:
        """Why the run must end, "" while it may go on."""
        for child in self._children:
            held = child.rss_bytes()
            if held is not None and held > self._max_bytes:
                return (
                    f"memory: the {child.name} held {held // MIB:,} MB, over limits.max_rss_mb="
                    f"{self._max_bytes // MIB:,}"
                )
        return ""
