"""An upload to a server that takes its time: how far the sender gets ahead of it before it has to wait."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path
from typing import Any

import pytest

from adapters.codecs import CODECS
from adapters.messages import METHODS
from runner.blocking import WorkingBlockingService
from runner.engine import run
from runner.operations.ahead import MOST, ahead, stamped
from runner.operations.api import Raw
from runner.operations.upload import Upload
from runner.records import reading
from runner.service import WorkingService
from tests.cells import cell
from tests.drives import drive_over
from tests.golden_transfers import bulk_run
from tests.reports import Reporter


def upload(**knobs: Any) -> Upload:
    usual = {"records": 250, "shape": "per_record", "batch": 100, "warmup": 20, "sender": "awaited"}
    return Upload(**{"name": "upload", **usual, **knobs})


@pytest.mark.parametrize(
    ("made", "taken", "found"),
    [
        ([5], [], [(0, 1)]),
        ([5, 6, 7], [8, 9, 10], [(0, 1), (1, 2), (2, 3)]),  # all were made before any was taken
        ([5, 7, 9], [6, 8, 10], [(0, 1), (2, 1), (4, 1)]),  # one after the other
        ([5, 6, 20, 30], [6, 15, 25, 35], [(0, 1), (1, 1), (15, 1), (25, 1)]),  # taken at the same moment is taken
        ([5, 6, 7, 20], [8], [(0, 1), (1, 2), (2, 3), (15, 3)]),
        ([], [], []),
    ],
)
def test_ahead_is_what_was_made_and_not_yet_taken_at_each_making(
    made: list[int], taken: list[int], found: list[tuple[int, int]]
) -> None:
    assert ahead(stamped(made), stamped(taken)) == found


def test_the_most_is_kept_in_messages_and_bytes_with_the_curve() -> None:
    raw = Raw(
        facts={"checksum": "c", "expected_checksum": "c"},
        counts={"records": 4, "messages": 4, "expected_messages": 4, "payload_bytes": 400},
        series={"made": stamped([5, 6, 7, 20]), "taken": stamped([8, 9, 21, 22])},
    )
    summary = upload(records=4, service_time_ms=1).summarize(raw, CODECS["json"](), {})
    unknown = upload(records=4).summarize(Raw(facts=raw.facts, counts=raw.counts), CODECS["json"](), {})

    assert summary.void == []
    assert summary.measurements["ahead_max"] == (3, "messages")
    assert summary.measurements["ahead_max_bytes"] == (300, "bytes")
    assert summary.series == {"ahead": [(0, 1), (1, 2), (2, 3), (15, 2)]}
    assert "ahead_max" not in unknown.measurements
    assert unknown.series == {}


async def test_only_a_server_that_takes_its_time_is_stamped_against() -> None:
    plain, slow = drive_over([WorkingService(service_time_ms=0)]), drive_over([WorkingService(service_time_ms=0)])
    await upload().drive(plain)
    await upload(service_time_ms=1).drive(slow)

    assert "made" not in plain.raw.series
    assert [number for _, number in slow.raw.series["made"]] == list(range(1, 251))  # of the warm-up none


async def test_a_service_asks_for_the_next_message_when_it_is_done_with_the_last() -> None:
    service, asked = WorkingService(service_time_ms=20), []  # type: ignore[var-annotated]

    async def readings() -> Any:
        for number in range(3):
            asked.append(asyncio.get_running_loop().time())
            yield reading(number)

    receipt = await service.client_stream(METHODS["readings.each"], readings())

    assert (receipt.records, len(service.taken_ns)) == (3, 3)
    assert all(later - earlier >= 0.019 for earlier, later in itertools.pairwise(asked))


def test_a_service_of_threads_does_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("runner.blocking.time.sleep", slept.append)
    service = WorkingBlockingService(service_time_ms=20)

    receipt = service.client_stream(METHODS["readings.each"], map(reading, range(3)))

    assert (receipt.records, len(service.taken_ns)) == (3, 3)
    assert slept == [0.02] * 3


def test_a_service_time_needs_messages_to_count() -> None:
    assert upload(shape="single", service_time_ms=1).problems() == [
        "service_time_ms: it is for each message of a stream, and single is one; "
        "shape=batched or per_record, or leave this 0"
    ]
    assert upload(records=MOST + 1, service_time_ms=1).problems() == [
        "service_time_ms: 100,001 messages are over the 100,000 that are timed one by one; "
        "fewer records, or a larger batch"
    ]
    assert upload(records=MOST + 1, shape="batched", service_time_ms=1).problems() == []
    assert upload(records=MOST + 1).problems() == []


def test_an_awaited_sender_pauses_where_the_window_ends_and_the_report_says_where(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """450 messages of some 40 kB, 2 ms for each (the test's own delay); gRPC's window grows to 4 MiB or so."""
    asked = {"records": 90_000, "batch": 200, "warmup": 200, "service_time_ms": 2}
    target = cell("upload", "grpc", "json", operation_=asked)
    record = run(target, sweep_id="S", repeat=0, position=0, overrides=[])
    report = Reporter(capsys, monkeypatch, tmp_path)
    report.write([record])
    found = {name: value for name, (value, _) in record.measurements.items()}
    (row,) = report.rows("upload")
    curve = [value or 0 for _, value in record.series["ahead"]]

    assert (record.verdict, record.reason, found["messages"]) == ("ok", "", 450)
    assert found["seconds"] >= 450 * 0.002
    assert len(curve) == 450
    assert 1 < max(curve) == found["ahead_max"] < 225  # a sender that nothing holds is ahead by nearly all
    assert float(row["ahead_max_messages"]) == found["ahead_max"]
    assert float(row["ahead_max_bytes"]) == found["ahead_max_bytes"] > 0
    assert "the server takes 2 ms for each message" in report("upload")
    assert "ahead max: messages that the sender had made" in report("upload")


@pytest.fixture
def report(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Reporter:
    return Reporter(capsys, monkeypatch, tmp_path)


def test_a_slow_server_is_no_repeat_of_a_quick_one(report: Reporter) -> None:
    slow = {"ahead_max": 3, "ahead_max_bytes": 300_000}
    quick = bulk_run("upload", "grpc", 0, 0.5)
    config = {**quick.config, "operation": {**quick.config["operation"], "service_time_ms": 5}}
    report.write([quick, bulk_run("upload", "grpc", 0, 5.0, config=config, **slow)])

    rows = report.rows("upload")

    assert [(row["service_time_ms"], row["runs"], row["ahead_max_messages"]) for row in rows] == [
        ("0", "1", ""),
        ("5", "1", "3"),
    ]
    assert not any(" against " in note for note in report.notes("upload", "--published", "none"))
