"""A reader that goes quiet for good, over a real connection: what the sender got rid of, and that it is bounded."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path

import pytest

from adapters.api import Address
from adapters.messages import METHODS, SymbolRequest
from runner.blocking import served_by
from runner.engine import run
from tests.cells import cell
from tests.reports import Reporter

MB = 1_000_000
KIB = 1024


def test_what_a_websocket_sender_got_rid_of_before_it_blocked_is_in_the_report_and_memory_is_bounded(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Three seconds of silence."""
    target = cell("backpressure", "websocket", operation_={"quiet_s": [1.5, 3.0]})
    record = run(target, sweep_id="S", repeat=0, position=0, overrides=[])
    report = Reporter(capsys, monkeypatch, tmp_path)
    report.write([record])
    found = {name: value for name, (value, _) in record.measurements.items()}
    (row,) = report.rows("backpressure")

    assert (record.verdict, record.findings["bounded_by"]) == ("ok", "buffers")
    early, late = [value for _, value in sorted(record.series["produced_at_quiet"])]
    assert early == late == found["plateau_messages"] + 100 > 1100  # 100 were asked for
    assert found["plateau_bytes"] == pytest.approx(found["plateau_messages"] * 83, rel=0.1)  # JSON
    assert float(row["plateau_messages"]) == found["plateau_messages"]
    assert float(row["plateau_bytes"]) == found["plateau_bytes"]
    # What neither process holds is with the kernel; a sender that pushes grows by all that it makes.
    assert max(found["server_rss_growth_bytes"], found["driver_rss_growth_bytes"]) < 32 * MB
    for side in ("server", "driver"):
        assert float(row[f"{side}_peak_rss_bytes"]) == found[f"{side}_peak_rss_bytes"] > 10 * MB


async def test_a_grpc_sender_of_large_messages_stands_still_after_a_few_whatever_its_server() -> None:
    """64 KiB in each message; one is taken, then nothing is asked for. Both servers at once, to wait only once."""

    async def made(protocol: str) -> tuple[int, int]:
        target = cell("stream", protocol)
        service = served_by(target.adapter, target.operation, "R")
        request = SymbolRequest("A" * 64 * KIB)
        async with (
            target.adapter.serve(service, Address("127.0.0.1", 0)) as server,
            target.adapter.connect(server.address) as peer,
            aclosing(peer.server_stream(METHODS["quotes.unbounded"], request)) as items,
        ):
            assert (await anext(items)).seq == 0
            await asyncio.sleep(1)
            after_one_s = service.produced
            await asyncio.sleep(2)
            return after_one_s, service.produced

    async with asyncio.timeout(30):
        found = await asyncio.gather(made("grpc"), made("grpc_threads"))

    for early, late in found:
        assert early == late  # a plateau, not a slow rise
        assert 1 < late < 512  # 32 MiB; the window is a few of them
