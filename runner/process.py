"""The supervisor's end: one measured process, started fresh, asked over its pipes, gone when we are.

Exec, never fork: a process that has used gRPC must not be forked.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from typing import Any, Protocol

from runner.host import MALLOC, rss_bytes

STOP_S = 2.0
TAIL_BYTES = 4096


class ChildFailed(Exception):
    """A measured process ended, or did not answer in time. The text says which, and its last words."""


class Silent(ChildFailed):
    """It has said nothing for so long. It may be busy, or have ended with its last words on their way to us."""


class Child(Protocol):
    """What the engine needs of a measured process."""

    name: str

    def tell(self, name: str, **fields: Any) -> None:
        """One line in."""

    def ask(self, name: str, timeout_s: float) -> Any:
        """One question, its answer. Raises ChildFailed."""

    def event(self, timeout_s: float) -> dict[str, Any]:
        """The next event. Raises Silent when there is none yet, ChildFailed when all was read that the process said
        before it ended.
        """

    def exited(self) -> str | None:
        """How the process ended, in words; None while it runs."""

    def rss_bytes(self) -> int | None:
        """Its resident memory now; None where that cannot be seen, or after its end."""

    def close(self) -> None:
        """End it, at the latest after STOP_S; never raises."""


class Process:
    """`python -m MODULE` with `setup` as its first line. `name` is how messages call it."""

    def __init__(self, name: str, module: str, setup: dict[str, Any]) -> None:
        self.name = name
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed in close()
        self._ids = itertools.count(1)
        self._answers: queue.SimpleQueue[tuple[int, Any] | None] = queue.SimpleQueue()
        self._events: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._child = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env={**os.environ, **MALLOC},
            start_new_session=True,  # Ctrl-C is ours to handle, not theirs
        )
        threading.Thread(target=self._read, name=f"{name} reader", daemon=True).start()
        self._send(setup)

    def _read(self) -> None:
        assert self._child.stdout is not None
        with contextlib.suppress(ValueError, OSError):  # closed while reading: we are done with it
            for raw in self._child.stdout:
                line = json.loads(raw)
                if "event" in line:
                    self._events.put(line)
                else:
                    self._answers.put((line["id"], line["answer"]))
        self._events.put(None)
        self._answers.put(None)

    def _send(self, line: dict[str, Any]) -> None:
        assert self._child.stdin is not None
        # A child that has ended is noticed by whoever waits for its answer.
        with contextlib.suppress(BrokenPipeError, ValueError):
            self._child.stdin.write(json.dumps(line).encode() + b"\n")
            self._child.stdin.flush()

    def tell(self, name: str, **fields: Any) -> None:
        """One line in."""
        self._send({"tell": name, **fields})

    def ask(self, name: str, timeout_s: float) -> Any:
        """One question, its answer. Raises ChildFailed."""
        asked = next(self._ids)
        self._send({"ask": name, "id": asked})
        while True:
            try:
                line = self._answers.get(timeout=timeout_s)
            except queue.Empty:
                raise ChildFailed(f"{self.name} did not answer {name!r} within {timeout_s:g} s") from None
            if line is None:
                self._answers.put(None)
                raise ChildFailed(self._ended())
            if line[0] == asked:  # an older id: the answer to a question that was given up
                return line[1]

    def event(self, timeout_s: float) -> dict[str, Any]:
        """The next event. Raises ChildFailed when the process ends or stays silent."""
        try:
            line = self._events.get(timeout=max(timeout_s, 0))
        except queue.Empty:
            raise Silent(f"{self.name} said nothing for {timeout_s:g} s") from None
        if line is None:
            self._events.put(None)
            raise ChildFailed(self._ended())
        return line

    def exited(self) -> str | None:
        """How the process ended, in words; None while it runs."""
        return None if self._child.poll() is None else self._ended()

    def rss_bytes(self) -> int | None:
        """Its resident memory now; None where that cannot be seen, or after its end."""
        return rss_bytes(self._child.pid)

    def _ended(self) -> str:
        try:
            code = self._child.wait(STOP_S)
        except subprocess.TimeoutExpired:
            return f"{self.name} closed its output"
        how = f"exited with {code}" if code >= 0 else f"was killed by {signal.Signals(-code).name}"
        tail = self._tail()
        return f"{self.name} {how}" + (f": {tail}" if tail else "")

    def _tail(self) -> str:
        """The last line that the process wrote to stderr."""
        if self._stderr.closed:
            return ""
        size = os.fstat(self._stderr.fileno()).st_size
        data = os.pread(self._stderr.fileno(), TAIL_BYTES, max(size - TAIL_BYTES, 0))
        lines = [line.strip() for line in data.decode("utf-8", "replace").splitlines() if line.strip()]
        return lines[-1] if lines else ""

    def close(self) -> None:
        """End it: its stdin closes, which it cannot ignore for longer than STOP_S; then SIGKILL."""
        assert self._child.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._child.stdin.close()
        try:
            self._child.wait(STOP_S)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            self._child.kill()
            self._child.wait()
        assert self._child.stdout is not None
        self._child.stdout.close()
        self._stderr.close()
