"""What is left when something is killed: no process of ours, and a database with every finished run."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

GONE_S = 5.0


def children_of(pid: int) -> list[int]:
    """Every process whose ancestor is `pid`."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
    found, grown = {pid}, True
    while grown:
        grown = False
        for child, parent in parents.items():
            if parent in found and child not in found:
                found.add(child)
                grown = True
    return sorted(found - {pid})


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(condition: object, what: str, seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.02)


@pytest.fixture
def sweep(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """bakeoff: two short runs, then one that stays quiet for a minute."""
    running = subprocess.Popen(
        [
            *(sys.executable, "-m", "runner", "-m", "protocol=tcp", "seed=1", "scenario=backpressure"),
            *("operation.quiet_s=[0.1],[0.2],[60]", "operation.producer=credited"),
        ],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    yield running
    running.kill()
    running.communicate()


def in_the_long_run(running: subprocess.Popen[str], folder: Path) -> list[int]:
    """Wait until the run that stays quiet is under way. Returns the processes that belong to it."""
    found: list[int] = []

    def quiet() -> bool:
        found[:] = children_of(running.pid)
        assert running.poll() is None, running.communicate()
        return len(found) == 2 and (folder / "results.db").exists() and long_enough()

    since: list[float] = []
    seen: list[list[int]] = [[]]

    def long_enough() -> bool:
        """The same two processes for two seconds: none of the short runs lasts so long."""
        if found != seen[0]:
            seen[0], since[:] = list(found), [time.monotonic()]
        return time.monotonic() - since[0] > 2.0

    wait_until(quiet, "the long run under way", 60)
    return found


def verdicts(folder: Path) -> list[str]:
    with closing(sqlite3.connect(folder / "results.db")) as db:
        assert db.execute("pragma integrity_check").fetchone() == ("ok",)
        return [row[0] for row in db.execute("select verdict from runs order by started_at")]


def finished_before(folder: Path) -> int:
    with closing(sqlite3.connect(folder / "results.db")) as db:
        return int(db.execute("select count(*) from run where verdict = 'ok'").fetchone()[0])


def test_kill_9_of_the_runner_leaves_no_child_and_a_sound_database(
    sweep: subprocess.Popen[str], tmp_path: Path
) -> None:
    pids = in_the_long_run(sweep, tmp_path)
    done = finished_before(tmp_path)
    sweep.kill()
    sweep.wait(10)

    wait_until(lambda: not any(map(alive, pids)), "no child left", GONE_S)
    assert verdicts(tmp_path) == ["ok"] * done


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_stops_everything_and_keeps_what_was_finished(
    sweep: subprocess.Popen[str], tmp_path: Path, times: int
) -> None:
    pids = in_the_long_run(sweep, tmp_path)
    done = finished_before(tmp_path)
    for _ in range(times):
        sweep.send_signal(signal.SIGINT)
        time.sleep(0.05)
    _, err = sweep.communicate(timeout=20)

    assert sweep.returncode == 130
    assert "Traceback" not in err
    assert not any(map(alive, pids))
    assert verdicts(tmp_path) == ["ok"] * done + ["interrupted"]


@pytest.mark.parametrize("victim", [0, 1])
def test_a_process_that_is_killed_fails_its_run_and_takes_the_other_with_it(
    sweep: subprocess.Popen[str], tmp_path: Path, victim: int
) -> None:
    pids = in_the_long_run(sweep, tmp_path)
    done = finished_before(tmp_path)
    os.kill(pids[victim], signal.SIGKILL)
    out, err = sweep.communicate(timeout=60)

    assert sweep.returncode == 1, err
    assert not any(map(alive, pids))
    found = verdicts(tmp_path)
    assert found.count("ok") == 2
    assert found[done] == "failed"
    with closing(sqlite3.connect(tmp_path / "results.db")) as db:
        reason = db.execute("select reason from runs where verdict = 'failed'").fetchone()[0]
    assert "was killed by SIGKILL" in reason
    assert "Traceback" not in out + err
