"""A clock that does not move between two looks: no rate, no division by zero, no crash, whatever is measured."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest

from runner.operations.api import Operation
from runner.operations.download import Download
from runner.operations.hello import Hello
from runner.operations.request_response import RequestResponse
from runner.operations.stream import Stream
from runner.operations.upload import Upload
from runner.service import Service
from tests.drives import drive_over

ROOT = Path(__file__).parent.parent
TRANSFER: dict[str, Any] = {"records": 250, "shape": "batched", "batch": 100, "warmup": 0}
OPERATIONS: list[Operation] = [
    RequestResponse(name="request_response", count=20, warmup=0, size_bytes=None),
    Hello(name="hello", requests=20, warmup=0, service_time_ms=0, service_work="wait", crosscheck=False),
    Stream(name="stream", count=20, warmup=0, producer="awaited", consumer="pull", page=10),
    Upload(name="upload", sender="awaited", service_time_ms=1, **TRANSFER),
    Download(name="download", producer="awaited", **TRANSFER),
]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: str(operation.name))
async def test_equal_stamps_give_no_rate_and_no_crash(operation: Operation) -> None:
    drive = drive_over([Service()])
    drive.clock = lambda: 5
    await operation.drive(drive)
    found = operation.summarize(drive.raw, drive.codec, {"connections": 1}).measurements

    assert [name for name in found if name.endswith("_per_s")] == []
    assert all(math.isfinite(value) for value, _ in found.values())


def test_nothing_of_ours_times_by_the_wall_clock() -> None:
    sources = [*(ROOT / "runner").rglob("*.py"), *(ROOT / "adapters").rglob("*.py")]
    found = [path.name for path in sources if re.search(r"\btime\.time(_ns)?\(", path.read_text(encoding="utf-8"))]

    assert len(sources) > 100
    assert found == ["ids.py"]  # an id begins with the date; nothing is computed from it
