"""A reader that goes quiet for good, over a real connection: what the sender got rid of, and that it is bounded."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.engine import run
from tests.cells import cell
from tests.reports import Reporter

MB = 1_000_000


def test_what_a_websocket_sender_got_rid_of_before_it_blocked_is_in_the_report_and_memory_is_bounded(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    record = run(cell("backpressure", "websocket"), sweep_id="S", repeat=0, position=0, overrides=[])
    report = Reporter(capsys, monkeypatch, tmp_path)
    report.write([record])
    found = {name: value for name, (value, _) in record.measurements.items()}
    (row,) = report.rows("backpressure")

    assert (record.verdict, record.findings["bounded_by"]) == ("ok", "buffers")
    produced = [value for _, value in sorted(record.series["produced"])]
    assert produced[-1] == produced[-2] == found["plateau_messages"] + 100 > 1100  # 100 were asked for
    assert found["plateau_bytes"] == pytest.approx(found["plateau_messages"] * 83, rel=0.1)  # JSON
    assert float(row["plateau_messages"]) == found["plateau_messages"]
    assert float(row["plateau_bytes"]) == found["plateau_bytes"]
    # What neither process holds is with the kernel; a sender that pushes grows by all that it makes.
    assert max(found["server_rss_growth_bytes"], found["driver_rss_growth_bytes"]) < 32 * MB
