"""A measured process's end of the channel that it is steered by: one JSON object per line, both ways.

In, on stdin:   the setup (first line), then {"ask": NAME, "id": N} and {"tell": NAME, ...}.
Out, on stdout: {"answer": VALUE, "id": N} and {"event": NAME, ...}.

A thread reads stdin, so that questions are answered while the event loop is starved, and so that end-of-file
ends the process whatever else it is doing: it cannot outlive its supervisor.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from typing import IO, Any, NoReturn

Answer = Callable[[], Any]


class Control:
    """Lines in from `source`, lines out to `sink`. `on_end` runs in the reading thread at end-of-file."""

    def __init__(self, source: IO[bytes], sink: IO[bytes], on_end: Callable[[], None]) -> None:
        self._source = source
        self._sink = sink
        self._on_end = on_end
        self._lock = threading.Lock()
        self._answers: dict[str, Answer] = {}
        self._told: dict[str, Future[dict[str, Any]]] = {}

    def setup(self) -> dict[str, Any]:
        """The first line. Raises EOFError when there is none."""
        line = self._source.readline()
        if not line:
            raise EOFError("no setup line on stdin")
        setup: dict[str, Any] = json.loads(line)
        return setup

    def answer(self, name: str, answer: Answer) -> None:
        """`answer()` is called in the reading thread for each question `name`; it must not block."""
        self._answers[name] = answer

    def expect(self, name: str) -> Future[dict[str, Any]]:
        """A future of the line that tells `name`; ask for it before `listen`."""
        self._told[name] = Future()
        return self._told[name]

    def say(self, event: str, **fields: Any) -> None:
        """One event out, whole and at once."""
        self._write({"event": event, **fields})

    def listen(self) -> None:
        """Start answering, in a daemon thread."""
        threading.Thread(target=self._read, name="control", daemon=True).start()

    def _read(self) -> None:
        try:
            for raw in iter(self._source.readline, b""):
                line = json.loads(raw)
                if "tell" in line:
                    self._told[line["tell"]].set_result(line)
                else:
                    self._write({"answer": self._answers[line["ask"]](), "id": line["id"]})
        except Exception:
            traceback.print_exc()  # the supervisor quotes the last line
            sys.stderr.flush()
        finally:
            self._on_end()  # whatever happened: nobody steers this process any more

    def _write(self, line: dict[str, Any]) -> None:
        data = json.dumps(line, allow_nan=False).encode() + b"\n"
        with self._lock:
            try:
                self._sink.write(data)
                self._sink.flush()
            except (BrokenPipeError, ValueError):
                self._on_end()


def run_as_process(main: Callable[[Control], None]) -> NoReturn:
    """`main` with the channel of a real process, then the end: at once, whatever still runs.

    An ordinary exit would abort: the reading thread holds stdin's lock.
    """
    try:
        main(from_stdio())
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)


def from_stdio() -> Control:
    """The channel of a real process. Whatever libraries print goes to stderr from here on."""
    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return Control(sys.stdin.buffer, sink, lambda: os._exit(0))
