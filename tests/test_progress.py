"""Progress: on a terminal only, drawn only between runs."""

from __future__ import annotations

import io
import sys
import threading

import pytest
from rich.console import Console

from runner.progress import SweepProgress


class Clock:
    """Seconds, moved by hand."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def terminal() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=100)


def drawn(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_it_is_silent_when_stderr_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # which makes rich alone believe in a terminal
    with SweepProgress(2) as progress:
        progress.starting("tcp stream repeat 1")
        progress.ended()

    assert capsys.readouterr() == ("", "")


def test_it_shows_the_current_run_what_is_done_and_the_time_left(terminal: Console) -> None:
    clock = Clock()
    with SweepProgress(3, terminal, clock) as progress:
        progress.starting("tcp stream repeat 1")
        clock.now += 40
        progress.ended()
        progress.starting("grpc stream repeat 1")

        assert "1/3" in drawn(terminal)
        assert "1 min 20 s left" in drawn(terminal)
        assert "grpc stream repeat 1" in drawn(terminal)


def test_the_time_left_is_unknown_before_the_first_run_has_ended(terminal: Console) -> None:
    clock = Clock()
    progress = SweepProgress(4, terminal, clock)
    clock.now += 9

    assert progress.time_left() == ""
    progress.ended(2)
    assert progress.time_left() == "9 s left"
    progress.ended(2)
    assert progress.time_left() == "0 s left"


def test_it_draws_nothing_while_a_run_is_under_way(terminal: Console) -> None:
    """No thread, no timer: what is drawn changes only when it is told."""
    before = threading.active_count()
    with SweepProgress(2, terminal) as progress:
        progress.starting("tcp stream repeat 1")
        seen = drawn(terminal)

        assert threading.active_count() == before
        sys.stdout.write("")  # what a run may print does not pass through the display either
        assert drawn(terminal) == seen
