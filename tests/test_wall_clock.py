"""A wall clock that is set back an hour while a sweep runs: spans of time are the monotonic clock's."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from runner import engine, launch
from runner.__main__ import main


class SetBack(datetime):
    """Every look is an hour before the last one."""

    looks = 0

    @classmethod
    def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
        SetBack.looks += 1
        return datetime.now(tz) - timedelta(hours=SetBack.looks)  # type: ignore[arg-type]


def test_durations_and_order_survive_a_clock_that_is_set_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(engine, "datetime", SetBack)
    monkeypatch.setattr(launch, "datetime", SetBack)
    assert main(["protocol=loopback", "operation.count=20", "operation.warmup=0"]) == 0

    assert SetBack.looks >= 2
    with closing(sqlite3.connect(tmp_path / "results.db")) as db:
        started, ended = db.execute("select started_at, ended_at from sweep").fetchone()
        [(duration_s, slowest)] = db.execute(
            "select duration_s, (select max(value_ns) from sample) from run"
        ).fetchall()
    assert started <= ended
    assert 0 < duration_s < 3600
    assert 0 < slowest < 3600e9
