"""Where a sweep is, on a terminal. Nothing at all where stderr is not one.

Drawn only when told, between runs: a bar that redraws itself would take a core away from what is being measured.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn


class SweepProgress:
    """A context manager. `total` in runs; `clock` in seconds; `console` is where it is drawn."""

    def __init__(
        self, total: int, console: Console | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._total = total
        self._done = 0
        self._begun = clock()
        # rich alone would also draw where FORCE_COLOR is set.
        console = console or Console(stderr=True, force_terminal=sys.stderr.isatty())
        self._progress = Progress(
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}"),
            TextColumn("{task.description}"),
            console=console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task("", total=total, left="")

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def starting(self, run: str) -> None:
        """The run that begins now, in words."""
        self._progress.update(self._task, description=run, left=self.time_left())
        self._progress.refresh()

    def ended(self, runs: int = 1) -> None:
        """So many runs more are done."""
        self._done += runs
        self._progress.update(self._task, completed=self._done)

    def time_left(self) -> str:
        """By the mean of the runs so far; nothing before the first is done."""
        if not self._done:
            return ""
        seconds = (self._clock() - self._begun) / self._done * (self._total - self._done)
        minutes, rest = divmod(round(seconds), 60)
        return f"{minutes} min {rest:02} s left" if minutes else f"{rest} s left"
