"""Repeats that lie far apart: said under the table, with advice, and counted all the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.report.unstable import spread_pct
from tests.golden_db import latency_run, stream_run
from tests.reports import Reporter

ADVICE = "more repeats narrow the bracket of the median; bakeoff doctor says what disturbs this machine"
WHAT = "unstable: the runs of a row lie more than 10 % of their median apart"


@pytest.fixture
def reporter(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Reporter:
    return Reporter(capsys, monkeypatch, tmp_path)


@pytest.mark.parametrize(
    ("values", "pct"),
    [([], None), ([5.0], None), ([0.0, 0.0], None), ([100.0, 90.0, 111.0], 21.0), ([4.0, 4.0], 0.0)],
)
def test_the_spread_is_from_the_least_to_the_most_in_percent_of_the_median(
    values: list[float], pct: float | None
) -> None:
    assert spread_pct(values) == pct


def test_rows_whose_runs_lie_far_apart_are_named_with_advice(reporter: Reporter) -> None:
    reporter.write(
        [
            *(latency_run("grpc", n, value) for n, value in enumerate([300, 305, 336])),
            *(latency_run("tcp", n, value) for n, value in enumerate([50, 51, 55])),  # 9.8 %
            *(stream_run("grpc", n, value) for n, value in enumerate([10_000, 11_200])),
            latency_run("rsocket", 0, 200),
            latency_run("rsocket", 1, 300, verdict="void", reason="a stall"),
        ]
    )

    assert f"{WHAT}: grpc (12 % over 3 runs): {ADVICE}" in reporter.notes("request_response")
    assert f"{WHAT}: grpc (11 % over 2 runs): {ADVICE}" in reporter.notes("stream")


def test_repeats_that_agree_are_not_spoken_of(reporter: Reporter) -> None:
    reporter.write([latency_run("grpc", n, value) for n, value in enumerate([300, 305, 330])])

    assert not any("unstable" in note for note in reporter.notes("request_response"))


def test_a_table_in_which_every_row_is_unstable_says_so_once(reporter: Reporter) -> None:
    reporter.write(
        [
            latency_run(name, n, value)
            for name in ("grpc", "tcp", "rsocket", "websocket")
            for n, value in ((0, 100), (1, 130))
        ]
    )

    assert f"{WHAT}: every row (up to 26 %): {ADVICE}" in reporter.notes("request_response")
