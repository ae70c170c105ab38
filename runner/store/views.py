"""The views: the usual questions in one SELECT. Plain SQL over the tables of runner.store.schema.

A column is a pair (name, expression) and its meaning stands beside it, so that view and documentation cannot
part. Numbers are as saved, unrounded; counts are integers. A metric that a run lacks is NULL.
"""

from __future__ import annotations

from collections.abc import Callable

from runner.store.columns import (
    CELL,
    CODEC,
    CONNECTING,
    ENGINE,
    LABEL,
    OPERATION,
    PEAKS,
    PROTOCOL,
    REPEAT,
    RUN_ID,
    SCENARIO,
    SUITE,
    SWEEP_ID,
    VARIANT,
    VERDICT,
    WHOLE,
    Field,
    column,
    count,
    in_postgresql,
    number,
    resources,
    word,
)
from runner.store.conditions import CONDITION_FIELDS
from runner.store.open_loop import ARRIVAL, OPEN_LOOP
from runner.store.saturation import JOIN as SATURATION_STEPS
from runner.store.saturation import SATURATION


def _knob(key: str, meaning: str, kind: str = "") -> Field:
    """A key of the operation, as configured. `kind`: of a number, in PostgreSQL."""
    there = f"(run.config -> 'operation' ->> '{key}')"
    return Field(
        key,
        f"json_extract(run.config, '$.operation.{key}')",
        meaning,
        f"CAST({there} AS {kind})" if kind else there,
    )


_RUNS = [
    RUN_ID,
    SWEEP_ID,
    SUITE,
    SCENARIO,
    LABEL,
    OPERATION,
    PROTOCOL,
    ENGINE,
    CODEC,
    VARIANT,
    REPEAT,
    VERDICT,
    column("reason", "why the verdict is not ok, '' if it is"),
    column("started_at", "UTC, as text that sorts"),
    column("duration_s", "s, from launch to stop of both processes"),
]

_PAYLOAD = [
    RUN_ID,
    SWEEP_ID,
    CODEC,
    word("message", "which message was encoded"),
    count("size_bytes", "bytes of the encoded message"),
    word("hex", "the encoded message, in hexadecimal"),
    number("encode_ns", "ns to encode it"),
    number("decode_ns", "ns to decode it"),
    word("representable", "'no' if the codec cannot carry the message unchanged, else 'yes'"),
]

_LATENCY = [
    *CELL,
    column("connections", "client connections, one call at a time on each"),
    *ARRIVAL,
    count("size_bytes", "bytes of the echoed body; NULL: a quote was asked for"),
    count("n", "calls measured, the good ones"),
    count("errors", "calls that failed"),
    number("p50_us", "µs, median (nearest rank) of the service time, from the start of a call to its answer"),
    number("p90_us", "µs, 90th percentile"),
    number("p99_us", "µs, 99th percentile; NULL below 100 samples"),
    number("p999_us", "µs, 99.9th percentile; NULL below 1,000 samples"),
    number("mean_us", "µs, arithmetic mean"),
    number("max_us", "µs, the slowest call"),
    number("calls_per_s", "calls per second over the measured window; NULL in an open loop"),
    *OPEN_LOOP,
    number("server_cpu_us", "µs of CPU time per call, server process"),
    number("driver_cpu_us", "µs of CPU time per call, driver process"),
    *resources("call"),
    number("payload_bytes", "bytes of one encoded reply, the mean"),
    number("wire_in_bytes", "bytes above TCP that the driver received per call: payload, framing and headers"),
    number("wire_out_bytes", "bytes above TCP that the driver sent per call"),
    *CONNECTING,
]

_STREAM = [
    *CELL,
    word("producer", "how the server makes items: awaited, push, gated, credited or paged (a call for each page)"),
    word("consumer", "how the driver takes them: pull or eager"),
    Field(
        "streams",
        "run.connections",
        "streams at a time, a connection each (or one for all: multiplex in conditions)",
    ),
    count("messages", "messages received and checked, of all streams"),
    number("seconds", "s from the request to the last message"),
    number("messages_per_s", "messages per second"),
    number("us_per_message", "µs per message"),
    number("first_ms", "ms from the request to the first message; of several streams the median"),
    number("first_max_ms", "ms, of the stream whose first message came last; NULL for one stream"),
    number("fastest_ms", "ms from its request to its last message, of the fastest stream; NULL for one"),
    number("slowest_ms", "ms, of the slowest"),
    number("gap_p99_us", "µs between messages, 99th percentile"),
    count("client_held_max", "most messages that waited in the client; NULL where the library hides it"),
    number("server_cpu_us", "µs of CPU time per message, server process"),
    number("driver_cpu_us", "µs of CPU time per message, driver process"),
    *resources("message"),
    number("payload_bytes", "bytes of one encoded message, the mean"),
    number("wire_in_bytes", "bytes above TCP that the driver received per message: payload, framing and headers"),
    number("wire_out_bytes", "bytes above TCP that the driver sent per message"),
    word("bound", "the busier side: driver or server"),
    *CONNECTING,
]

_OVERHEAD = [
    *CELL,
    OPERATION,
    word("driven_by", "whose loop ran at both ends: bakeoff or hand_written"),
    number("p50_us", "µs, median of the calls; NULL for a stream"),
    number("us_per_message", "µs per message of the stream; NULL for calls"),
    number("fixed_s", "s of the run beside its warm-up and its window: starting, connecting, verifying, stopping"),
]

_BACKPRESSURE = [
    *CELL,
    word("producer", "how the server makes items: awaited, push, gated, credited or paged (a call for each page)"),
    word("consumer", "what being quiet means: pull (asks for nothing) or eager (reads on into memory)"),
    count("asked", "messages taken before going quiet"),
    Field(
        "quiet_s", "quiet.t_ns / 1e9", "s since the reader went quiet", "CAST(quiet.t_ns AS double precision) / 1e9"
    ),
    Field("produced", WHOLE.format("quiet.value"), "messages made by then; NULL if the run ended before"),
    word("bounded_by", "demand (exactly what was asked), buffers (more, then flat) or nothing (still rising)"),
    word("bound_reason", "what the verdict in bounded_by rests on"),
    count("plateau_messages", "messages made beyond those asked for, once flat; NULL if never flat"),
    count("plateau_bytes", "their payload in bytes"),
    number("plateau_after_s", "s of quiet until the count stayed flat"),
    count("surplus_server", "messages of the surplus in the service's outbound buffer"),
    count("surplus_client", "messages of the surplus in the driver's inbox and its library"),
    count("surplus_kernel", "messages of the surplus in socket buffers, from bytes / mean size"),
    count("surplus_unaccounted", "messages of the surplus whose place is not known"),
    count("server_rss_growth_bytes", "bytes by which the server's resident memory grew while quiet"),
    count("driver_rss_growth_bytes", "bytes by which the driver's resident memory grew while quiet"),
    *PEAKS,
]

_HELLO = [
    *CELL,
    word("model", "what serves: threads, or an event loop"),
    count("workers", "threads of the server's pool; NULL for an event loop"),
    column("connections", "client connections asked for, one request at a time on each"),
    count("connections_opened", "connections that the server counted"),
    _knob("service_time_ms", "ms that the server waits, or works, before it answers", "double precision"),
    _knob("service_work", "how it spends them: wait or busy"),
    count("n", "requests measured, the good ones"),
    count("errors", "requests that failed"),
    number("requests_per_s", "requests per second over the measured window"),
    number("requests_per_server_cpu_s", "requests per second of CPU time of the server process"),
    number("mean_us", "µs, arithmetic mean"),
    number("p50_us", "µs, median (nearest rank)"),
    number("p75_us", "µs, 75th percentile"),
    number("p90_us", "µs, 90th percentile"),
    number("p99_us", "µs, 99th percentile; NULL below 100 samples"),
    number("p999_us", "µs, 99.9th percentile; NULL below 1,000 samples"),
    number("max_us", "µs, the slowest request"),
    number("server_cpu_us", "µs of CPU time per request, server process"),
    number("driver_cpu_us", "µs of CPU time per request, driver process"),
    number("server_cpu_pct", "% of one core, server process"),
    number("driver_cpu_pct", "% of one core, driver process"),
    number("loop_lag_p90_us", "µs by which the driver's event loop was late, 90th percentile of looks every 5 ms"),
    *resources("request"),
    number("wire_in_bytes", "bytes above TCP that the driver received per request: payload, framing and headers"),
    number("wire_out_bytes", "bytes above TCP that the driver sent per request"),
    number("crosscheck_requests_per_s", "requests per second of another tool, same server; NULL without"),
    word("crosscheck_tool", "that tool: wrk or h2load"),
    word("law", "whether the rate keeps to workers / service time"),
    *CONNECTING,
]

_BULK = [
    *CELL,
    column("operation", "upload (client to server) or download"),
    word("shape", "single (one body), batched (streamed, `batch` records a message) or per_record"),
    _knob("batch", "records of one message, where the shape is batched", "bigint"),
    word("sender", "upload: how the client sends: awaited, or push (never looks at readiness)"),
    word("producer", "download: how the server sends: awaited or push"),
    count("records", "records transferred and checked: count, order and checksum"),
    count("messages", "messages that carried them"),
    number("seconds", "s from the first byte asked or sent to the last record checked"),
    number("records_per_s", "records per second"),
    count("payload_bytes", "bytes of the encoded messages, without the protocol's own"),
    number("bytes_per_record", "bytes of payload per record"),
    number("first_ms", "ms to the first batch received; NULL for an upload"),
    count("buffered_max", "most messages in the buffer of a sender that pushes; NULL for the others"),
    _knob("service_time_ms", "upload: ms that the server takes for each message of a stream", "double precision"),
    count("ahead_max", "most messages made and not yet taken by a server with a service time; NULL without one"),
    count("ahead_max_bytes", "bytes of their payload, by the mean message"),
    count("driver_rss_growth_bytes", "bytes by which the driver's peak resident memory passed its level before"),
    count("server_rss_growth_bytes", "bytes by which the server's peak resident memory passed its level before"),
    number("server_cpu_us", "µs of CPU time per record, server process"),
    number("driver_cpu_us", "µs of CPU time per record, driver process"),
    *resources("record"),
    number("wire_in_bytes", "bytes above TCP that the driver received per record: payload, framing and headers"),
    number("wire_out_bytes", "bytes above TCP that the driver sent per record"),
    word("checksum", "of the records as the receiver got them"),
]

_CHECKS = [
    *CELL,
    OPERATION,
    *(
        Field(name, f"verdict_check.{name}", meaning)
        for name, meaning in (
            ("name", "what was looked at"),
            ("value", "what was found"),
            ("unit", "of value, least and most, '' if none"),
            ("least", "the least it may be; NULL: no such limit"),
            ("most", "the most it may be; NULL: no such limit"),
            ("passed", "1: within the limits, or excused"),
            ("weight", "what failing it means: void or warning"),
            ("reason", "the sentence that says it"),
        )
    ),
]

_SWEEP = "JOIN sweep ON sweep.sweep_id = run.sweep_id"
_ENVIRONMENT = "JOIN environment AS env ON env.environment_hash = run.environment_hash"
_QUIET = "LEFT JOIN series AS quiet ON quiet.run_id = run.run_id AND quiet.name = 'produced_at_quiet'"


def _measuring(operation: str) -> str:
    return f"WHERE run.operation = '{operation}'"


_FIELDS: dict[str, tuple[list[Field], list[str]]] = {
    "runs": (_RUNS, [_SWEEP]),
    # No verdict among its columns, so only the runs that came to an answer.
    "payload": (_PAYLOAD, [_measuring("payload"), "AND run.verdict IN ('ok', 'unsupported')"]),
    "latency": (_LATENCY, [_SWEEP, _measuring("request_response")]),
    "stream": (_STREAM, [_SWEEP, _measuring("stream")]),
    "backpressure": (_BACKPRESSURE, [_SWEEP, _QUIET, _measuring("backpressure")]),
    "hello": (_HELLO, [_SWEEP, _measuring("hello")]),
    "bulk": (_BULK, [_SWEEP, "WHERE run.operation IN ('upload', 'download')"]),
    "overhead": (_OVERHEAD, [_SWEEP, "WHERE run.operation IN ('call_overhead', 'stream_overhead')"]),
    "saturation": (SATURATION, [_SWEEP, SATURATION_STEPS, _measuring("saturation")]),
    "checks": (_CHECKS, [_SWEEP, "JOIN verdict_check ON verdict_check.run_id = run.run_id"]),
    "conditions": (CONDITION_FIELDS, [_ENVIRONMENT]),
}


def _create(view: str, expression: Callable[[Field], str]) -> str:
    fields, rest = _FIELDS[view]
    columns = ",\n".join(f"  {expression(field)} AS {field.name}" for field in fields)
    return "\n".join([f"CREATE VIEW {view} AS SELECT", columns, "FROM run", *rest])


# View -> the statement that makes it, in SQLite's and in PostgreSQL's dialect.
VIEWS = {view: _create(view, lambda field: field.sql) for view in _FIELDS}
POSTGRESQL_VIEWS = {view: _create(view, in_postgresql) for view in _FIELDS}

# View -> its columns in order, each with its unit and meaning.
COLUMNS = {view: [(field.name, field.meaning) for field in fields] for view, (fields, _) in _FIELDS.items()}
