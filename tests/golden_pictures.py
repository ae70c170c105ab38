"""A hand-written sweep that has something for every picture, with known round numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from runner.store import RunRecord
from tests.golden_db import backpressure_run, latency_run, payload_run, write_sweep
from tests.golden_open_loop import open_loop_runs
from tests.golden_saturation import saturation_runs
from tests.golden_transfers import transfer_runs

US, S = 1_000, 1_000_000_000
CALLS = 1_000
RAMP = [i * 10 * US for i in range(1, CALLS + 1)]


def timed_run(protocol: str, repeat: int, step_us: int, name: str = "latency", **changes: Any) -> RunRecord:
    """1,000 calls of `step_us`, twice that, three times that and so on: the value at p % is 10 p steps."""
    samples = [i * step_us * US for i in range(1, CALLS + 1)]
    return latency_run(protocol, repeat, 500.0 * step_us, samples={name: samples}, **changes)


def watched_run(protocol: str, made: list[tuple[float, float | None]], **changes: Any) -> RunRecord:
    """100 asked for; `made`: (s, messages made by then)."""
    last = int(max(value for _, value in made if value is not None))
    points = [(round(s * S), value) for s, value in made]
    run = backpressure_run(protocol, 0, [last, last, last], **changes)
    return replaced(run, series={**run.series, "produced": points})


def replaced(run: RunRecord, **changes: Any) -> RunRecord:
    """`run` with other fields."""
    return RunRecord(**{**vars(run), **changes})


def picture_runs() -> list[RunRecord]:
    """Of every picture at least two lines."""
    runs = [payload_run("json"), payload_run("protobuf")]
    for repeat, step_us in enumerate((9, 10, 12)):
        runs += [timed_run("grpc", repeat, step_us), timed_run("rsocket", repeat, 2 * step_us)]
    rising = [(second / 10, 1000.0 * (second + 1)) for second in range(200)]
    runs += [
        watched_run("rsocket", [(0.0, 100), (0.5, 100), (1.0, 100)]),
        watched_run("grpc", [(0.0, 100), (1.0, 10_000), (2.0, 20_000), (4.0, 20_000)]),
        watched_run("grpc", rising, producer="push", bounded_by="nothing"),
        watched_run("websocket", rising, producer="push", bounded_by="nothing"),
    ]
    waiting = [replaced(run, samples={"response": RAMP}) for run in open_loop_runs() if run.measurements]
    return [*runs, *waiting, *saturation_runs(), *transfer_runs()]


def pictured(path: Path, **sweep: Any) -> str:
    """Writes the sweep. Returns its id."""
    return write_sweep(path, picture_runs(), 1, **sweep)
