"""Hand-written databases with known round numbers, for tests of what reads them.

`latency_run`, `stream_run`, `backpressure_run` and `payload_run` make one record each. A keyword that is a
metric or a finding of the operation sets it (None: the run lacks it), every other one is a field of RunRecord
(`errors` is both: a number, or how many of each kind):

    latency_run("grpc", 0, 300)                          p50 is 300 µs, the others follow from it
    latency_run("grpc", 1, 300, p99_us=900, errors=2, verdict="void", reason="2 of 5,000 calls failed")
    latency_run("grpc", 2, verdict="failed", reason="...")             without p50_us: nothing was measured

`write_sweep` gives them ids, positions and times by their order, the same ones each time. `golden` is the
database that the report's tests share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from runner.store import RunRecord, SweepRecord, open_store

START = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)

# protocol -> engine, default codec, distribution, declared facts in the order of FACTS.
FACTS = ("transport", "schema", "interaction", "demand", "deadlines", "browser", "accepts", "wire_type")
PROTOCOLS: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    "loopback": ("loopback", "protobuf", "", ("none", "none", "all four", "pull", "none", "no", "objects", "none")),
    "tcp": (
        "asyncio",
        "protobuf",
        "",
        ("TCP", "none", "all four", "TCP window", "none", "no", "bytes", "not said"),
    ),
    "grpc": (
        "aio",
        "protobuf",
        "grpcio",
        ("HTTP/2", "proto", "all four", "HTTP/2 window", "propagated", "with a proxy", "bytes", "content-type"),
    ),
    "rsocket": (
        "stock",
        "cbor",
        "rsocket",
        ("TCP", "none", "four models", "request(n)", "none", "over WebSocket", "bytes", "MIME type"),
    ),
    "http": (
        "uvicorn httptools",
        "json",
        "uvicorn",
        ("HTTP/1.1", "none", "one way", "TCP window", "none", "yes", "bytes", "Content-Type"),
    ),
    "sse": (
        "uvicorn httptools",
        "json",
        "uvicorn",
        (
            "HTTP/1.1",
            "none",
            "from the server",
            "TCP window",
            "none",
            "yes",
            "text",
            "event-stream; binary as base64",
        ),
    ),
    "websocket": (
        "asyncio",
        "json",
        "websockets",
        (
            "HTTP/1.1 upgrade",
            "none",
            "frames",
            "TCP window",
            "none",
            "yes",
            "text or bytes",
            "text or binary frame",
        ),
    ),
}
_HTTP = ("HTTP/1.1", "none", "two of four", "TCP window", "none", "yes", "bytes", "content-type")
PROTOCOLS |= {
    "http": ("uvicorn httptools", "json", "uvicorn", _HTTP),
    "http_threads": ("waitress", "json", "waitress", _HTTP),
}
SIZES = {"protobuf": 35, "json": 83, "cbor": 67, "cbor_definite": 66, "msgpack": 65}
HEX = {
    "protobuf": "0a044141504c102a197b14ae47e11a5940215c8fc2f5281c5940288080abb4fef39203",
    "json": b'{"symbol":"AAPL","seq":42,"bid":100.42,"ask":100.44,"epochMicros":1772000000000000}'.hex(),
    "cbor": "bf6673796d626f6c",
    "cbor_definite": "a56673796d626f6c",
    "msgpack": "85a673796d626f6c",
}
ENVIRONMENT = {
    "python": "3.11.7",
    "implementation": "CPython",
    "kernel": "Linux 6.1",
    "machine": "x86_64",
    "hostname": "golden",
    "cpu": "Test CPU",
    "cpus": 2,
    "memory_bytes": 4_000_000_000,
    "governor": "performance",
    "turbo": "off",
    "smt": "off",
    "clock_source": "tsc",
    "cpu_quota_pct": None,
    "memory_limit_bytes": 8_000_000_000,
    "tcp_rmem": "4096 131072 6291456",
    "tcp_wmem": "4096 16384 4194304",
    "somaxconn": 4096,
    "python_build": "pgo lto",
    "python_debug": 0,
    "asyncio_debug": 0,
    "bakeoff": "0.1.0",
    "grpcio": "1.85.3",
    "rsocket": "0.4.20",
    "websockets": "17.4",
    "protobuf": "7.36.2",
    "cbor2": "6.3.0",
    "msgspec": "0.23.0",
    "uvloop": "0.23.0",
}
CONDITIONS = {
    "loop": "uvloop",
    "server_cpus": [0],
    "driver_cpus": [1],
    "gc": "frozen after warm-up",
    "malloc": "mmap_threshold=4194304",
    "debug_logging": 0,
    "message_bytes": 35,
    "frame_bytes": 5,
    "max_message_bytes": 67_108_864,
    "in_process": False,
    "connections_opened": 1,
    "peers_seen": 1,
    "multiplex": False,
    "arrival": "closed",
}
UNITS = {
    "n": "calls",
    "errors": "calls",
    "size_bytes": "bytes",
    "calls_per_s": "1/s",
    "messages": "messages",
    "seconds": "s",
    "messages_per_s": "1/s",
    "asked": "messages",
    "client_held_max": "messages",
    "plateau_messages": "messages",
    "surplus_server": "messages",
    "surplus_client": "messages",
    "surplus_kernel": "messages",
    "surplus_unaccounted": "messages",
    "driver_cpu_pct": "%",
    "server_cpu_pct": "%",
    "workers": "threads",
    "connections_opened": "connections",
    "requests_per_s": "1/s",
    "requests_per_server_cpu_s": "1/s",
    "crosscheck_requests_per_s": "1/s",
    "records": "records",
    "buffered_max": "messages",
    "ahead_max": "messages",
    "records_per_s": "1/s",
    "bytes_per_record": "bytes",
    "busy_pct": "%",
    "saturated_at_per_s": "1/s",
    "server_switches": "switches",
    "driver_switches": "switches",
}
RESOURCES = {
    "server_peak_rss_bytes": 45_000_000,
    "driver_peak_rss_bytes": 40_000_000,
    "server_switches": 2.5,
    "driver_switches": 1.25,
}
CONNECTING = {"connect_ms": 2.0, "first_call_ms": 0.5}
SUFFIXES = {"us": "us", "ms": "ms", "ns": "ns", "s": "s", "bytes": "bytes", "message": "us"}
FINDINGS = (
    "message",
    "hex",
    "representable",
    "producer",
    "consumer",
    "bounded_by",
    "bound_reason",
    "bound",
    "driven_by",
    "model",
    "law",
    "crosscheck_tool",
    "shape",
    "sender",
    "checksum",
    "saturated",
)
RECORD_FIELDS = {field.name for field in fields(RunRecord)}


def run_record(operation: str, protocol: str, repeat: int, given: dict[str, Any], **changes: Any) -> RunRecord:
    """A record whose `given` metrics and findings `changes` may override; see the top of the module."""
    engine, codec, library, words = PROTOCOLS[protocol]
    if isinstance(kinds := changes.pop("errors", None), int):  # the metric; a dict is the field
        kinds = {"timeout": kinds} if kinds else {}
    own = {name: changes.pop(name) for name in list(changes) if name in RECORD_FIELDS}
    if kinds is not None:
        own["errors"], changes["errors"] = kinds, sum(kinds.values())
    given = {name: value for name, value in {**given, **changes}.items() if value is not None}
    unknown = [name for name in given if name not in FINDINGS and not _unit(name)]
    assert not unknown, f"neither metrics, findings nor fields of a record: {unknown}"
    defaults: dict[str, Any] = {
        "run_id": "",
        "sweep_id": "",
        "scenario": operation,
        "label": "",
        "operation": operation,
        "protocol": protocol,
        "engine": engine,
        "codec": codec,
        "variant": "",
        "placement": "same" if operation == "request_response" else "split",
        "connections": 1,
        "repeat": repeat,
        "position": 0,
        "verdict": "ok",
        "reason": "",
        "started_at": START,
        "duration_s": 2.0,
        "conditions": CONDITIONS,
        "environment": ENVIRONMENT,
        "facts": {"library": library, **dict(zip(FACTS, words, strict=True)), "default_codec": codec},
        "measurements": {name: (value, _unit(name)) for name, value in given.items() if name not in FINDINGS},
        "findings": {name: value for name, value in given.items() if name in FINDINGS},
    }
    return RunRecord(**{**defaults, **own})


def _unit(metric: str) -> str:
    return UNITS.get(metric) or SUFFIXES.get(metric.rpartition("_")[2], "")


def latency_run(protocol: str, repeat: int = 0, p50_us: float | None = None, **changes: Any) -> RunRecord:
    """5,000 calls: p90 is 1.2, p99 2, p99.9 3, the mean 1.1 and the slowest 4 times p50; one call at a time."""
    given: dict[str, Any] = {"size_bytes": 0}
    if p50_us is not None:
        given |= {
            "n": 5000,
            "errors": 0,
            "p50_us": p50_us,
            "p90_us": p50_us * 1.2,
            "p99_us": p50_us * 2,
            "p999_us": p50_us * 3,
            "mean_us": p50_us * 1.1,
            "max_us": p50_us * 4,
            "calls_per_s": 1e6 / (p50_us * 1.1),
            "server_cpu_us": p50_us * 0.4,
            "driver_cpu_us": p50_us * 0.5,
            **RESOURCES,
            "driver_cpu_pct": 50.0,
            "payload_bytes": 35.0,
            "wire_in_bytes": 37.0,
            "wire_out_bytes": 20.0,
            **CONNECTING,
        }
    return run_record("request_response", protocol, repeat, given, **changes)


def stream_run(protocol: str, repeat: int = 0, messages_per_s: float | None = None, **changes: Any) -> RunRecord:
    """50,000 messages: first after 1 ms, p99 of the gaps 4 times the mean, half of the time CPU of the server."""
    given: dict[str, Any] = {"producer": "awaited", "consumer": "pull"}
    if messages_per_s is not None:
        messages = changes.get("messages", 50_000)
        each_us = 1e6 / messages_per_s
        given |= {
            "messages": messages,
            "errors": 0,
            "seconds": messages / messages_per_s,
            "messages_per_s": messages_per_s,
            "us_per_message": each_us,
            "first_ms": 1.0,
            "gap_p99_us": each_us * 4,
            "client_held_max": 16,
            "server_cpu_us": each_us * 0.5,
            "driver_cpu_us": each_us * 0.8,
            **RESOURCES,
            "bound": "driver",
            "payload_bytes": 36.1,
            "wire_in_bytes": 38.1,
            "wire_out_bytes": 0.001,
            **CONNECTING,
        }
    return run_record("stream", protocol, repeat, given, **changes)


def backpressure_run(
    protocol: str,
    repeat: int = 0,
    produced: Sequence[int | None] | None = None,
    *,
    quiet_s: Sequence[float] = (0.5, 1.0, 2.0),
    **changes: Any,
) -> RunRecord:
    """100 asked for; `produced` at each of `quiet_s` (None: not reached). Exactly 100 is bounded by demand, more by
    buffers unless `bounded_by` says otherwise. The surplus is in the kernel unless told otherwise.
    """
    given: dict[str, Any] = {"producer": "awaited", "consumer": "pull", "asked": 100, "errors": 0}
    series = {}
    if produced is not None:
        asked = changes.get("asked", 100)
        reached = [value for value in produced if value is not None]
        surplus = reached[-1] - asked if reached else 0
        bounded_by = changes.get("bounded_by") or ("buffers" if surplus else "demand")
        size = SIZES[changes.get("codec", PROTOCOLS[protocol][1])]
        flat = bounded_by != "nothing"
        given |= {
            "bounded_by": bounded_by,
            "bound_reason": {
                "demand": "exactly what was asked for",
                "buffers": "unchanged for 1 s",
                "nothing": "still rising at the end",
            }[bounded_by],
            "plateau_messages": surplus if flat else None,
            "plateau_bytes": surplus * size if flat else None,
            "plateau_after_s": 0.25 if flat else None,
            "surplus_server": 0,
            "surplus_client": 0,
            "surplus_kernel": surplus,
            "surplus_unaccounted": 0,
            "server_rss_growth_bytes": 1_000_000,
            "driver_rss_growth_bytes": 500_000,
        }
        points = zip(quiet_s, produced, strict=True)
        series["produced_at_quiet"] = [(round(quiet * 1e9), value) for quiet, value in points]
    return run_record("backpressure", protocol, repeat, given, **{"series": series, **changes})


def payload_run(codec: str, repeat: int = 0, **changes: Any) -> RunRecord:
    """One quote of the published size; 400 ns to encode, 300 ns to decode."""
    given = {
        "message": "quote",
        "size_bytes": SIZES[codec],
        "hex": HEX[codec],
        "encode_ns": 400.0,
        "decode_ns": 300.0,
        "representable": "yes",
    }
    own = {"codec": codec, "placement": "free", **changes}
    return run_record("payload", "loopback", repeat, given, **own)


def write_sweep(
    path: Path,
    runs: Sequence[RunRecord],
    number: int = 1,
    *,
    suite: str | None = "article",
    command: str = "bakeoff suite=article",
    seed: int = 4711,
    planned: int | None = None,
    ended: bool = True,
) -> str:
    """Adds a sweep with these runs, in order. Returns its id, 01KG…<number>; runs are 01KG…<number><position>."""
    sweep_id = f"01KG{number:022d}"
    start = START + timedelta(hours=number)
    sweep = SweepRecord(sweep_id, suite, command, seed, planned or len(runs), start)
    with open_store(str(path)) as store:
        store.begin_sweep(sweep)
        for position, record in enumerate(runs):
            store.save_run(
                replace(
                    record,
                    run_id=f"01KG{number:018d}{position:04d}",
                    sweep_id=sweep_id,
                    position=position,
                    started_at=start + timedelta(seconds=2 * position),
                )
            )
        if ended:
            store.end_sweep(sweep_id, start + timedelta(minutes=3))
    return sweep_id


def article_runs() -> list[RunRecord]:
    """Every table of the report has something to show, every verdict occurs. Medians are those of repeat 1."""
    runs = [payload_run(codec) for codec in SIZES]
    for repeat, factor in enumerate((0.98, 1.0, 1.02)):
        runs += [
            latency_run("tcp", repeat, 50 * factor),
            latency_run("tcp", repeat, 60 * factor, codec="cbor"),
            latency_run("tcp", repeat, 55 * factor, codec="json"),
            latency_run("grpc", repeat, 300 * factor),
            latency_run("rsocket", repeat, 295 * factor),
            latency_run("websocket", repeat, 120 * factor, p99_us=1800 * factor),
            latency_run(
                "http",
                repeat,
                180 * factor,
                p99_us=640 * factor,
                payload_bytes=83.0,
                wire_in_bytes=190.0,
                wire_out_bytes=60.0,
            ),
            stream_run("http", repeat, 45_000 / factor, payload_bytes=84.1, wire_in_bytes=92.1),
            stream_run("http", repeat, 300_000 / factor, producer="paged", payload_bytes=85.0, wire_in_bytes=85.2),
            stream_run("sse", repeat, 55_000 / factor, payload_bytes=84.1, wire_in_bytes=98.1),
            stream_run("sse", repeat, 42_000 / factor, codec="protobuf", wire_in_bytes=63.1),
            stream_run("tcp", repeat, 200_000 / factor),
            stream_run("tcp", repeat, 125_000 / factor, codec="cbor"),
            stream_run("tcp", repeat, 160_000 / factor, codec="json"),
            stream_run("grpc", repeat, 40_000 / factor, client_held_max=None),
            stream_run("rsocket", repeat, 50_000 / factor, bound="server"),
            stream_run("rsocket", repeat, 80_000 / factor, engine="coalescing") if repeat != 1 else BROKEN,
            stream_run("websocket", repeat, 62_500 / factor) if repeat != 2 else VOID,
            stream_run("websocket", repeat, 50_000 / factor, consumer="eager") if repeat != 2 else INTERRUPTED,
        ]
    push: dict[str, Any] = {"producer": "push", "bounded_by": "nothing"}
    probe: dict[str, Any] = {"variant": "bdp_probe=false lookahead_bytes=4096"}
    runs += [
        backpressure_run("grpc", 0, [10_000, 20_000, 40_000], surplus_client=39_900, surplus_kernel=0),
        backpressure_run("rsocket", 0, [100, 100, 100]),
        backpressure_run("websocket", 0, [60_100, 60_100, 60_100]),
        backpressure_run("http", 0, [44_000, 44_000, 44_000]),
        backpressure_run("http", 0, [100, 100, 100], producer="paged"),
        backpressure_run("sse", 0, [41_000, 41_000, 41_000]),
        backpressure_run("grpc", 0, [300_000, 600_000, None], **push, surplus_server=599_900, surplus_kernel=0),
        backpressure_run(
            "websocket", 0, [350_000, 700_000, 1_400_000], **push, surplus_server=1_399_900, surplus_kernel=0
        ),
        backpressure_run("grpc", 0, [5_000, 5_000, 5_000], producer="gated"),
        backpressure_run(
            "grpc",
            0,
            [5_000, 90_000, 200_000],
            producer="gated",
            consumer="eager",
            bounded_by="nothing",
            surplus_client=199_900,
            surplus_kernel=0,
        ),
        backpressure_run("grpc", 0, [100, 100, 100], producer="credited"),
        backpressure_run("rsocket", 0, [100, 100, 100], producer="credited"),
        backpressure_run("websocket", 0, [100, 100, 100], producer="credited"),
        backpressure_run("grpc", 0, [240, 240, 240], **probe),
        UNSUPPORTED,
    ]
    return runs


BROKEN = stream_run(
    "rsocket",
    1,
    engine="coalescing",
    verdict="failed",
    reason="the server exited with 1 before it was ready",
    errors={"server_exit": 1},
)
VOID = stream_run(
    "websocket",
    2,
    61_000,
    messages=49_000,
    verdict="void",
    reason="49,000 messages arrived, 50,000 were asked for",
)
INTERRUPTED = stream_run("websocket", 2, consumer="eager", verdict="interrupted", reason="stopped by Ctrl-C")
UNSUPPORTED = latency_run(
    "rsocket",
    0,
    scenario="echo",
    size_bytes=17_000_000,
    verdict="unsupported",
    reason="17,000,000 bytes in one message; rsocket carries at most 16,777,215",
)


def golden(path: Path) -> Path:
    """Sweep 1: two latency runs of a single scenario, labelled "before". Sweep 2: the article, as above."""
    earlier = [latency_run("grpc", repeat, p50_us, label="before") for repeat, p50_us in enumerate((400.0, 410.0))]
    write_sweep(path, earlier, 1, suite=None, command="bakeoff protocol=grpc label=before repeats=2", seed=1)
    write_sweep(path, article_runs(), 2)
    return path
