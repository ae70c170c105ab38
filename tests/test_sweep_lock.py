"""A sweep whose database another program locks while it measures: what was measured is not lost."""

from __future__ import annotations

import re
import shlex
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from runner.__main__ import main

WORDS = ["protocol=loopback", "operation.count=20", "operation.warmup=2", "storage.busy_s=0.2"]


def test_a_run_that_meets_a_lock_is_brought_in_by_the_command_that_the_message_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "results.db"
    over, locked = threading.Event(), threading.Event()

    def lock_it() -> None:
        """From the moment when the sweep is in the database until it is over."""
        while not over.is_set():
            time.sleep(0.002)
            if not path.with_name("results.db-wal").exists():
                continue  # not opened yet; from now on a reader is in nobody's way
            with closing(sqlite3.connect(path, isolation_level=None)) as other:
                if other.execute("SELECT 1 FROM sweep").fetchall():
                    other.execute("BEGIN IMMEDIATE")
                    locked.set()
                    over.wait(timeout=100)
                    return

    locker = threading.Thread(target=lock_it)
    locker.start()
    try:
        code = main(WORDS)
    finally:
        over.set()
        locker.join(timeout=100)
    assert locked.is_set()
    out, err = capsys.readouterr()
    assert code == 1, out
    reason = "results.db: it is locked by another program (waited 0.2 s); close that or give another file"
    assert f"it ended ok and was not saved: {reason}; the run is kept in " in err
    assert f"the end of the sweep was not saved: {reason}" in err
    (kept,) = tmp_path.glob("results.db.unsaved-*.json")
    command = shlex.split(re.findall(r"later: (bakeoff merge .*)", err)[0])
    assert command == ["bakeoff", "merge", str(kept)]
    assert main(command[1:]) == 0
    assert capsys.readouterr().out == (f"results.db: 1 run and 0 sweeps added, 0 runs there already from {kept}\n")
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT protocol, verdict, n FROM latency").fetchall() == [("loopback", "ok", 20)]
