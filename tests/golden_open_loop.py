"""Hand-written runs of the open loop with known round numbers (see tests.golden_db)."""

from __future__ import annotations

from typing import Any

from runner.store import RunRecord
from tests.golden_db import CONDITIONS, CONNECTING, UNITS, run_record

UNITS |= {"requested_per_s": "1/s", "sent_per_s": "1/s", "achieved_per_s": "1/s", "dropped": "calls"}


def open_run(
    protocol: str,
    repeat: int = 0,
    service_us: float | None = None,
    *,
    rate: float = 1000.0,
    arrival: str = "constant",
    duration_s: float | None = 2.0,
    **changes: Any,
) -> RunRecord:
    """Response times are twice the service times, and their maximum is 2 s; the driver is 50 µs late, p99 100."""
    given: dict[str, Any] = {"size_bytes": 0}
    if service_us is not None:
        spread = {"p50_us": 1.0, "p90_us": 1.2, "p99_us": 2.0, "p999_us": 3.0, "mean_us": 1.1, "max_us": 4.0}
        given |= {name: service_us * factor for name, factor in spread.items()}
        given |= {f"response_{name}": 2 * service_us * factor for name, factor in spread.items()}
        given |= {
            "response_max_us": 2e6,
            "n": rate * (duration_s or 5),
            "errors": 0,
            "dropped": 0,
            "requested_per_s": rate,
            "sent_per_s": rate,
            "achieved_per_s": rate,
            "schedule_delay_p50_us": 50.0,
            "schedule_delay_p99_us": 100.0,
            "server_cpu_us": service_us * 0.4,
            "driver_cpu_us": service_us * 0.5,
            "driver_cpu_pct": 12.0,
            **CONNECTING,
        }
    load = {
        "name": arrival,
        "arrival": arrival,
        "connections": 4,
        "multiplex": False,
        "rate": rate,
        "duration_s": duration_s,
        "max_in_flight": 10_000,
        "placement": "auto",
        **({"seed": 100 + repeat} if arrival == "poisson" else {}),
    }
    operation = {"name": "request_response", "count": 5000, "warmup": 2000, "size_bytes": None}
    own: dict[str, Any] = {
        "placement": "split",
        "connections": 4,
        "config": {"load": load, "operation": operation},
        "conditions": {**CONDITIONS, "arrival": arrival, "rate_per_s": rate, "max_in_flight": 10_000},
        **changes,
    }
    return run_record("request_response", protocol, repeat, given, **own)


def open_loop_runs() -> list[RunRecord]:
    """Two kinds of arrival; two protocols; a run of each kind of trouble."""
    runs = []
    for repeat, factor in enumerate((0.98, 1.0, 1.02)):
        runs += [
            open_run("grpc", repeat, 300 * factor),
            open_run("websocket", repeat, 100 * factor),
            open_run("grpc", repeat, 310 * factor, arrival="poisson"),
        ]
    short = "612 of 1,000 calls/s requested were achieved (61.2%; below 95 % is void)"
    runs.append(
        open_run("rsocket", 0, 900, achieved_per_s=612.0, dropped=700, verdict="void", reason=short),
    )
    return runs
