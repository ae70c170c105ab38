"""The channel to a measured process: real processes, small scripts. Delays are bounded, never asserted."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runner.control import Control
from runner.process import ChildFailed, Process

SCRIPT = """
import os, sys, time
from runner.control import run_as_process

def main(control):
    setup = control.setup()
    {body}

run_as_process(main)
"""


@pytest.fixture
def child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """`child(body)` starts a process whose main is `body`; all are closed at the end."""
    started: list[Process] = []
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    def start(body: str, setup: dict[str, Any] | None = None) -> Process:
        name = f"script_{len(started)}"
        (tmp_path / f"{name}.py").write_text(SCRIPT.format(body=body.replace("\n", "\n    ")))
        started.append(Process("child", name, setup or {}))
        return started[-1]

    yield start
    for process in started:
        process.close()


def gone(process: Process) -> bool:
    return process._child.poll() is not None


def test_setup_goes_in_events_and_answers_come_out(child: Any) -> None:
    process = child(
        "control.answer('double', lambda: setup['n'] * 2)\n"
        "told = control.expect('go')\n"
        "control.listen()\n"
        "control.say('ready', n=setup['n'])\n"
        "control.say('told', line=told.result(10))",
        {"n": 21},
    )

    assert process.event(10) == {"event": "ready", "n": 21}
    assert process.ask("double", 10) == 42
    process.tell("go", x=1)
    assert process.event(10) == {"event": "told", "line": {"tell": "go", "x": 1}}


def test_what_a_library_prints_does_not_disturb_the_channel(child: Any) -> None:
    process = child("print('hello from a library', flush=True)\ncontrol.say('ready')")

    assert process.event(10) == {"event": "ready"}


def test_a_process_that_exits_early_is_noticed_with_its_code_and_last_words(child: Any) -> None:
    process = child("print('first', file=sys.stderr)\nprint('no such thing', file=sys.stderr)\nos._exit(3)")

    with pytest.raises(ChildFailed, match=r"^child exited with 3: no such thing$"):
        process.event(60)


def test_an_uncaught_error_is_the_last_word(child: Any) -> None:
    process = child("raise ValueError('seven is not a prime')")

    with pytest.raises(ChildFailed, match=r"^child exited with 1: ValueError: seven is not a prime$"):
        process.event(60)


def test_a_killed_process_is_named_as_killed(child: Any) -> None:
    process = child("control.say('ready')\ntime.sleep(60)")
    process.event(10)
    os.kill(process._child.pid, signal.SIGKILL)

    with pytest.raises(ChildFailed, match=r"^child was killed by SIGKILL$"):
        process.ask("anything", 60)


def test_silence_has_a_bound(child: Any) -> None:
    process = child("time.sleep(60)")

    with pytest.raises(ChildFailed, match=r"^child said nothing for 0\.01 s$"):
        process.event(0.01)
    with pytest.raises(ChildFailed, match=r"^child did not answer 'usage' within 0\.01 s$"):
        process.ask("usage", 0.01)


def test_questions_are_answered_while_the_main_thread_is_busy(child: Any) -> None:
    process = child("control.answer('n', lambda: 1)\ncontrol.listen()\ncontrol.say('ready')\nwhile True: pass")
    process.event(10)

    assert process.ask("n", 10) == 1


def test_closing_ends_a_process_that_listens(child: Any) -> None:
    process = child("control.listen()\ncontrol.say('ready')\nwhile True: pass")
    process.event(10)
    process.close()

    assert gone(process)
    assert process.exited() == "child exited with 0"


def test_closing_ends_a_process_that_does_not_listen(child: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runner.process.STOP_S", 0.1)
    process = child(
        "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ncontrol.say('ready')\ntime.sleep(60)"
    )
    process.event(10)
    process.close()

    assert gone(process)


def test_a_process_ends_when_its_supervisor_is_killed(tmp_path: Path) -> None:
    """kill -9 runs no clean-up: the closed pipe must be enough, whatever the child is doing."""
    (tmp_path / "busy.py").write_text(
        SCRIPT.format(body="control.listen()\n    control.say('ready')\n    while True: pass")
    )
    parent = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import time\nfrom runner.process import Process\np = Process('child', 'busy', {})\np.event(20)\n"
            "print(p._child.pid, flush=True)\ntime.sleep(60)",
        ],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert parent.stdout is not None
    with parent.stdout:
        pid = int(parent.stdout.readline())
    parent.kill()
    parent.wait(10)

    deadline = time.monotonic() + 5
    while Path(f"/proc/{pid}").exists() and "Z" not in Path(f"/proc/{pid}/stat").read_text().split()[2]:
        assert time.monotonic() < deadline, "the child outlived its supervisor by 5 s"
        time.sleep(0.02)


def test_end_of_file_is_told_to_whoever_listens() -> None:
    ended = threading.Event()
    control = Control(io.BytesIO(b'{"a": 1}\n{"ask": "n", "id": 4}\n'), sink := io.BytesIO(), ended.set)

    assert control.setup() == {"a": 1}
    control.answer("n", lambda: [1, None])
    control.listen()
    assert ended.wait(10)
    assert json.loads(sink.getvalue()) == {"answer": [1, None], "id": 4}


def test_an_answer_that_fails_ends_the_process_with_the_cause_as_its_last_word(child: Any) -> None:
    process = child("control.answer('n', lambda: 1 / 0)\ncontrol.listen()\ncontrol.say('ready')\nwhile True: pass")
    process.event(10)

    with pytest.raises(ChildFailed, match=r"^child exited with 0: ZeroDivisionError: division by zero$"):
        process.ask("n", 60)


def test_no_setup_line_is_an_error() -> None:
    with pytest.raises(EOFError, match="no setup line on stdin"):
        Control(io.BytesIO(), io.BytesIO(), lambda: None).setup()
