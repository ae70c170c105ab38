"""Hand-written sweeps for the tables that the article's shared database has no runs for."""

from __future__ import annotations

from collections.abc import Callable

from runner.checks import Check, failed, within
from runner.store.record import RunRecord
from tests.golden_db import latency_run, run_record
from tests.golden_open_loop import open_loop_runs
from tests.golden_saturation import saturation_runs
from tests.golden_transfers import transfer_runs


def overhead_runs() -> list[RunRecord]:
    """Five of each: calls that bakeoff makes 1 % slower, and messages that take a tenth longer."""
    runs = []
    for repeat in range(5):
        runs += [
            _overhead_run("call_overhead", "hand_written", repeat, 100 + repeat * 0.1),
            _overhead_run("call_overhead", "bakeoff", repeat, 101 + repeat * 0.1),
            _overhead_run("stream_overhead", "hand_written", repeat, 10 + repeat * 0.01),
            _overhead_run("stream_overhead", "bakeoff", repeat, 11 + repeat * 0.01),
        ]
    return runs


def _overhead_run(operation: str, driven_by: str, repeat: int, value: float) -> RunRecord:
    metric = "p50_us" if operation == "call_overhead" else "us_per_message"
    given = {"driven_by": driven_by, metric: value, "errors": 0, "fixed_s": 0.5}
    return run_record(operation, "websocket", repeat, given)


def checked_runs() -> list[RunRecord]:
    """Two good runs of one of which a check was excused, and one that fell through two."""
    few = within("samples", 5000, "", "too few samples", least=10)
    law = Check("littles_law", 0.85, "x", True, "rate x mean latency is 0.85, 1 expected", 0.9, 1.1)
    errors = within("errors_pct", 4.0, "%", "200 of 5,000 failed (4.0%; over 1 % is void)", most=1)
    seen = within("peers_seen", 2, "", "the server saw 2 connections, 1 were to be open", least=1, most=1)
    reason = "; ".join(failed([errors, seen]))
    return [
        latency_run("grpc", 0, 300, checks=(few,)),
        latency_run("grpc", 1, 310, checks=(few, law)),
        latency_run("websocket", 0, 120, checks=(few, errors, seen), verdict="void", reason=reason),
    ]


TRANSFERS = ("hello", "upload", "download")
# table -> what makes its sweep.
OTHER_SWEEPS: dict[str, Callable[[], list[RunRecord]]] = {
    "open_loop": open_loop_runs,
    "overhead": overhead_runs,
    "checks": checked_runs,
    **dict.fromkeys(TRANSFERS, transfer_runs),
    "saturation": saturation_runs,
    "saturation_curve": saturation_runs,
}
