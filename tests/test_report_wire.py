"""STREAM says what it costs to carry a binary codec as text: from the bytes that were measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden_db import stream_run
from tests.reports import Reporter


@pytest.fixture
def report(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Reporter:
    return Reporter(capsys, monkeypatch, tmp_path)


def notes(report: Reporter) -> list[str]:
    return [note for note in report.notes("stream") if "base64" in note]


def test_what_base64_costs_is_said_beside_what_the_others_need(report: Reporter) -> None:
    report.write(
        [
            stream_run("sse", 0, 50_000, codec="protobuf", payload_bytes=36.0, wire_in_bytes=63.0),
            stream_run("http", 0, 50_000, codec="protobuf", payload_bytes=36.0, wire_in_bytes=45.0),
            stream_run("http", 0, 50_000, payload_bytes=84.0, wire_in_bytes=92.0),
        ]
    )

    assert notes(report) == [
        "sse: 36.0 bytes of payload travel as 63.0, 1.75x, because base64 makes four of three; "
        "with the same codec: 45.0 (http)"
    ]


def test_text_codecs_and_runs_without_counters_have_nothing_to_say(report: Reporter) -> None:
    report.write(
        [
            stream_run("sse", 0, 50_000, payload_bytes=84.0, wire_in_bytes=98.0),
            stream_run("sse", 0, 50_000, codec="cbor", payload_bytes=67.0, wire_in_bytes=None),
        ]
    )

    assert notes(report) == []
