"""Hand-written loops beside bakeoff's: the same answers, the same counts, and the table of what bakeoff costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from adapters.api import Address, Exchange, Message
from adapters.codecs import CODECS
from adapters.messages import QuoteRequest, StreamRequest
from runner.config import check
from runner.engine import run
from runner.quotes import quote
from runner.report.command import main
from tests.cells import cell, config
from tests.drives import drive_over
from tests.golden_db import write_sweep
from tests.golden_sweeps import overhead_runs

WRITTEN = ("grpc", "rsocket", "tcp", "websocket")


@pytest.mark.parametrize("codec", ["protobuf", "json"])
@pytest.mark.parametrize("protocol", WRITTEN)
async def test_a_hand_written_loop_answers_as_the_adapter_does(protocol: str, codec: str) -> None:
    bare = cell("request_response", protocol, codec).adapter.hand_written()
    assert bare is not None
    written = bare(CODECS[codec](), quote)

    async with written.serve(Address("127.0.0.1", 0)) as served, written.connect(served.address) as exchange:
        assert await exchange.call(QuoteRequest("AAPL", 77)) == quote("AAPL", 77)
        assert await exchange.call(QuoteRequest("MSFT", 3)) == quote("MSFT", 3)
        assert await exchange.stream(StreamRequest("AAPL", 1234)) == 1234


@pytest.mark.parametrize("driven_by", ["bakeoff", "hand_written"])
@pytest.mark.parametrize("protocol", WRITTEN)
def test_both_loops_are_measured_in_real_processes(protocol: str, driven_by: str) -> None:
    records = [
        run(
            cell(operation, protocol, operation_={"driven_by": driven_by}),
            sweep_id="S",
            repeat=1,
            position=1,
            overrides=[],
        )
        for operation in ("call_overhead", "stream_overhead")
    ]

    assert [(r.verdict, r.reason) for r in records] == [("ok", "")] * 2
    assert [r.findings["driven_by"] for r in records] == [driven_by] * 2
    assert [r.conditions["peers_seen"] for r in records] == [1, 1]
    assert records[0].measurements["n"] == (20, "calls")
    assert records[1].measurements["messages"] == (200, "messages")
    assert all(0 < r.measurements["fixed_s"][0] < r.duration_s for r in records)


def test_a_protocol_without_a_hand_written_loop_says_so() -> None:
    target = cell("call_overhead", "sse", operation_={"driven_by": "hand_written"})
    record = run(target, sweep_id="S", repeat=1, position=1, overrides=[])

    assert (record.verdict, record.reason) == ("unsupported", "nobody has written the exchange by hand for sse")


@pytest.mark.parametrize(
    ("operation", "knobs", "problem"),
    [
        ("call_overhead", {"size_bytes": 10}, "size_bytes: the hand-written loop asks for quotes; leave it null"),
        (
            "stream_overhead",
            {"consumer": "eager"},
            "driven_by: a hand-written stream has consumer=pull and producer=awaited only",
        ),
    ],
)
def test_what_a_hand_written_loop_cannot_do_is_refused(operation: str, knobs: dict[str, Any], problem: str) -> None:
    _, problems = check(config(operation, "tcp", operation_={"driven_by": "hand_written", **knobs}))

    assert [text.removeprefix("operation.") for text in problems] == [problem]


class Wrong(Exchange):
    """Answers every second call wrongly, and loses the last message of a stream."""

    def __init__(self) -> None:
        self.n = 0

    async def call(self, request: Message) -> Message:
        self.n += 1
        return quote(request.symbol, request.seq + self.n % 2)

    async def stream(self, request: Message) -> int:
        return int(request.count) - 1


@pytest.mark.parametrize(
    ("operation", "reason"),
    [("call_overhead", "10 of 20"), ("stream_overhead", "199 messages arrived, 200 were asked for")],
)
async def test_a_hand_written_loop_is_checked_as_well(operation: str, reason: str) -> None:
    target = cell(operation, "tcp", operation_={"driven_by": "hand_written"})
    drive = drive_over([])
    drive.exchange = Wrong()
    await target.operation.drive(drive)
    summary = target.operation.summarize(drive.raw, drive.codec, {"connections": 1})

    assert any(reason in text for text in summary.void), summary.void


def test_the_table_shows_the_ratio_and_says_when_it_is_over_the_goal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_sweep(tmp_path / "results.db", overhead_runs())
    monkeypatch.chdir(tmp_path)

    assert main(["overhead", "--format", "csv"]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    at = head.split(",").index("cost_ratio")
    assert [round(float(line.split(",")[at]), 3) for line in lines] == [1.01, 1.1]
    assert main(["overhead"]) == 0
    printed = capsys.readouterr().out
    assert "websocket, a message: 1.100x, and at the least 1.097x: over the goal" in printed
    assert "websocket, a call" not in printed
