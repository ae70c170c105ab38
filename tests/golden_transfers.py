"""A hand-written sweep of hello and bulk runs with known round numbers, made as those of tests.golden_db are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from runner.store import RunRecord
from tests.golden_db import CONNECTING, RESOURCES, run_record, write_sweep

THREADS = 64
BYTES = {"protobuf": 100, "cbor": 180, "json": 200}  # of one record


def hello_run(
    protocol: str,
    repeat: int = 0,
    requests_per_s: float | None = None,
    *,
    connections: int = 25,
    service_time_ms: float = 0,
    **changes: Any,
) -> RunRecord:
    """20,000 requests; the mean is what Little's law makes of the rate, p50 0.9, p75 1.1, p90 1.3, p99 2 and the
    slowest 10 times the mean; the server used one core, the driver half of one. http_threads has THREADS threads.
    """
    threads = protocol == "http_threads"
    given: dict[str, Any] = {
        "model": "threads" if threads else "event loop",
        "workers": THREADS if threads else None,
    }
    if requests_per_s is not None:
        mean_us = connections * 1e6 / requests_per_s
        given |= {
            "n": 20_000,
            "errors": 0,
            "requests_per_s": requests_per_s,
            "requests_per_server_cpu_s": requests_per_s,
            "connections_opened": connections,
            "mean_us": mean_us,
            "p50_us": 0.9 * mean_us,
            "p75_us": 1.1 * mean_us,
            "p90_us": 1.3 * mean_us,
            "p99_us": 2 * mean_us,
            "p999_us": 4 * mean_us,
            "max_us": 10 * mean_us,
            "server_cpu_us": 1e6 / requests_per_s,
            "driver_cpu_us": 0.5e6 / requests_per_s,
            "server_cpu_pct": 100.0,
            "driver_cpu_pct": 50.0,
            **RESOURCES,
            **CONNECTING,
            "server_peak_rss_bytes": 60_000_000 if threads else 50_000_000,
        }
    operation = {
        "requests": 20_000,
        "warmup": 1_000,
        "service_time_ms": service_time_ms,
        "service_work": "wait",
        "crosscheck": False,
    }
    own = {"connections": connections, "config": {"operation": operation}, "placement": "split"}
    return run_record("hello", protocol, repeat, given, **{**own, **changes})


def bulk_run(
    operation: str,
    protocol: str,
    repeat: int = 0,
    seconds: float | None = None,
    *,
    records: int = 100_000,
    shape: str = "batched",
    sender: str = "awaited",
    **changes: Any,
) -> RunRecord:
    """Payload of BYTES a record; one body grows the driver by 4 and the server by 3 times that, a stream each by
    2 MB; the first batch of a download is there after a hundredth of the time, of a body after all of it.
    """
    role = "sender" if operation == "upload" else "producer"
    given: dict[str, Any] = {"shape": shape, role: sender}
    if seconds is not None:
        codec = changes.get("codec") or {"grpc": "protobuf", "http": "json", "rsocket": "cbor"}.get(
            protocol, "json"
        )
        payload = records * BYTES[codec]
        given |= {
            "records": records,
            "errors": 0,
            "messages": {"single": 1, "batched": records // 1_000, "per_record": records}[shape],
            "seconds": seconds,
            "records_per_s": records / seconds,
            "payload_bytes": payload,
            "bytes_per_record": payload / records,
            "first_ms": None if operation == "upload" else seconds * (1_000 if shape == "single" else 10),
            "driver_rss_growth_bytes": 4 * payload if shape == "single" else 2_000_000,
            "server_rss_growth_bytes": 3 * payload if shape == "single" else 2_000_000,
            "server_cpu_us": 0.5e6 * seconds / records,
            "driver_cpu_us": 0.8e6 * seconds / records,
            **RESOURCES,
            "checksum": "5f3a",
        }
    config = {
        "operation": {"records": records, "shape": shape, "batch": 1_000, role: sender, "warmup": 0},
        "limits": {"max_rss_mb": 3_072},
    }
    return run_record(operation, protocol, repeat, given, **{"config": config, **changes})


def transfer_runs() -> list[RunRecord]:
    """The tables HELLO, UPLOAD and DOWNLOAD with every verdict that they can show."""
    runs = []
    for repeat, factor in enumerate((0.98, 1.0, 1.02)):
        for connections in (25, 300):
            runs += [
                hello_run("http", repeat, 10_000 / factor, connections=connections, **CROSSCHECKED),
                hello_run(
                    "http",
                    repeat,
                    4_000 / factor,
                    connections=connections,
                    engine="uvicorn h11",
                    variant="parser=h11",
                ),
                hello_run("http_threads", repeat, 5_000 / factor, connections=connections),
                hello_run("grpc", repeat, 2_500 / factor, connections=connections),
            ]
        runs += [
            hello_run("http", repeat, 2_900 / factor, connections=300, service_time_ms=100),
            hello_run("http_threads", repeat, 600 / factor, connections=300, service_time_ms=100),
        ]
        for operation in ("upload", "download"):
            for records in (10_000, 100_000):
                scale = factor * records / 100_000
                runs += [
                    bulk_run(operation, "grpc", repeat, 0.5 * scale, records=records),
                    bulk_run(operation, "grpc", repeat, 0.4 * scale, records=records, shape="single"),
                    bulk_run(operation, "http", repeat, 1.2 * scale, records=records),
                    bulk_run(operation, "http", repeat, 1.0 * scale, records=records, shape="single"),
                    bulk_run(operation, "websocket", repeat, 0.9 * scale, records=records),
                ]
            runs.append(bulk_run(operation, "grpc", repeat, 2.0 * factor, records=10_000, shape="per_record"))
    runs += [
        LIMITED,
        OUT_OF_MEMORY,
        TOO_LARGE,
    ]
    return runs


CROSSCHECKED: dict[str, Any] = {"crosscheck_requests_per_s": 11_000.0, "crosscheck_tool": "wrk"}
LIMITED = hello_run(
    "http_threads",
    3,
    20_000,
    driver_cpu_pct=97.0,
    verdict="void",
    reason="the driver was the limit: it used 97 % of a core",
)
OUT_OF_MEMORY = bulk_run(
    "upload",
    "grpc",
    shape="per_record",
    sender="push",
    records=1_000_000,
    verdict="void",
    reason="memory: the driver passed limits.max_rss_mb (3,072)",
)
TOO_LARGE = bulk_run(
    "upload",
    "rsocket",
    shape="single",
    verdict="unsupported",
    reason="a message of 18,000,000 bytes is over the 16,777,215 that rsocket carries",
)


def golden(path: Path) -> Path:
    """One sweep, with `transfer_runs`."""
    write_sweep(path, transfer_runs(), 3, suite=None, command="bakeoff scenario=hello,upload,download")
    return path
