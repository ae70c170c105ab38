"""Several streams at a time in the STREAM table: said with their connections, and compared only with their like."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.store import RunRecord
from tests.golden_db import CONDITIONS, stream_run
from tests.reports import Reporter


@pytest.fixture
def reporter(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Reporter:
    return Reporter(capsys, monkeypatch, tmp_path)


def runs(protocol: str, rate: float, streams: int, multiplex: bool) -> list[RunRecord]:
    each = {"first_max_ms": 3.0, "fastest_ms": 900.0, "slowest_ms": 1_000.0} if streams > 1 else {}
    how = {"connections": streams, "conditions": {**CONDITIONS, "multiplex": multiplex}}
    config = {"operation": {"name": "stream", "streams": streams}}
    return [stream_run(protocol, n, rate + n, config=config, **how, **each) for n in range(3)]


def test_streams_that_all_rows_share_are_said_under_the_title(reporter: Reporter) -> None:
    reporter.write([*runs("grpc", 20_000, 16, True), *runs("rsocket", 40_000, 16, True)])
    lines = reporter.lines("stream")
    [row, _] = reporter.rows("stream")

    assert "STREAM · streams, a connection each or all on one" in lines
    assert any("16 streams at a time on 1 connection" in line for line in lines)
    assert (row["first_max_ms"], row["fastest_ms"], row["slowest_ms"]) == ("3", "900", "1000")
    assert any("rsocket is faster" in note for note in reporter.notes("stream"))


def test_no_ratio_crosses_the_number_of_streams_or_of_connections(reporter: Reporter) -> None:
    reporter.write(
        [*runs("grpc", 20_000, 1, False), *runs("rsocket", 40_000, 16, True), *runs("websocket", 80_000, 16, False)]
    )
    rows = reporter.rows("stream")

    assert [(row["protocol"], row["connections"], row["multiplex"]) for row in rows] == [
        ("grpc", "1", "false"),
        ("websocket", "16", "false"),
        ("rsocket", "16", "true"),
    ]
    assert not any("against" in note for note in reporter.notes("stream"))


def test_one_stream_reads_as_it_always_did(reporter: Reporter) -> None:
    reporter.write(runs("grpc", 20_000, 1, False))

    assert "STREAM · one stream on one connection" in reporter.lines("stream")
    assert not any("fastest" in line for line in reporter.lines("stream"))
