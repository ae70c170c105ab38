"""Hand-written saturation searches with known round numbers (see tests.golden_db)."""

from __future__ import annotations

from typing import Any

from runner.store import RunRecord
from tests.golden_db import CONDITIONS, UNITS, run_record

UNITS |= {"sustained_per_s": "1/s", "broken_per_s": "1/s", "steps": "steps", "server_cpu_pct": "%"}
SECOND = 1_000_000_000


def saturation_run(protocol: str, repeat: int = 0, limit: float | None = None, **changes: Any) -> RunRecord:
    """Half of `limit`, all of it (kept) and twice of it (broken twice) were tried, a second each."""
    given: dict[str, Any] = {}
    series: dict[str, list[tuple[int, float | None]]] = {}
    if limit is not None:
        given = {
            "sustained_per_s": limit,
            "broken_per_s": 2 * limit,
            "response_p50_us": 1_000.0,
            "response_p99_us": 8_000.0,
            "p50_us": 500.0,
            "errors": 0,
            "slo_p99_ms": 10.0,
            "saturated": "server",
            "saturated_at_per_s": 2 * limit,
            "server_cpu_pct": 99.0,
            "driver_cpu_pct": 80.0,
            "steps": 4,
        }
        steps = {
            "rate_per_s": (limit / 2, limit, 2 * limit, 2 * limit),
            "achieved_per_s": (limit / 2, limit, limit, limit),
            "response_p50_us": (600.0, 1_000.0, 250_000.0, 260_000.0),
            "response_p99_us": (4_000.0, 8_000.0, 490_000.0, 495_000.0),
            "errors": (0, 0, 0, 0),
            "dropped": (0, 0, 0, 70),
            "schedule_delay_p99_us": (100.0, 120.0, 140.0, None),
            "kept": (1, 1, 0, 0),
            "seconds": (1.0, 1.0, 2.0, 2.0),
            "server_cpu_pct": (50.0, 96.0, 99.0, 99.0),
            "driver_cpu_pct": (None, 70.0, 80.0, 80.0),
        }
        starts = (0, 2 * SECOND, 4 * SECOND, 7 * SECOND)
        series = {f"step_{name}": list(zip(starts, points, strict=True)) for name, points in steps.items()}
    operation = {"name": "saturation", "slo_p99_ms": 10, "step_s": 1, "warmup": 2000, "size_bytes": None}
    load = {"name": "constant", "arrival": "constant", "connections": 16, "rate": 200, "max_in_flight": 10_000}
    own: dict[str, Any] = {
        "connections": 16,
        "series": series,
        "config": {"operation": operation, "load": load},
        "conditions": {**CONDITIONS, "arrival": "constant"},
        **changes,
    }
    return run_record("saturation", protocol, repeat, given, **own)


def saturation_runs() -> list[RunRecord]:
    """Two protocols, three repeats; one search that found nothing."""
    runs = []
    for repeat, factor in enumerate((0.9, 1.0, 1.1)):
        runs += [
            saturation_run("grpc", repeat, 2_000 * factor),
            saturation_run("websocket", repeat, 8_000 * factor),
        ]
    nothing = "no rate kept p99 at 10 ms or less, down to 0.2 calls/s"
    return [*runs, saturation_run("rsocket", 0, verdict="void", reason=nothing)]
