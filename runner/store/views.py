"""The views: the usual questions in one SELECT. Plain SQL over the tables of runner.store.schema.

A column is a pair (name, expression) and its meaning stands beside it, so that view and documentation cannot
part. Numbers are as saved, unrounded; counts are integers. A metric that a run lacks is NULL.
"""

from __future__ import annotations

from typing import NamedTuple


class Field(NamedTuple):
    """One column of a view: its name, the SQL behind it, its unit and meaning."""

    name: str
    sql: str
    meaning: str


# An integer where the number is whole; estimates among the counts keep their fraction.
_WHOLE = "CASE WHEN {0} = CAST({0} AS INTEGER) THEN CAST({0} AS INTEGER) ELSE {0} END"


def _metric(name: str, value: str = "value") -> str:
    return f"(SELECT {value} FROM measurement AS m WHERE m.run_id = run.run_id AND m.metric = '{name}')"


def _number(name: str, meaning: str) -> Field:
    return Field(name, _metric(name), meaning)


def _count(name: str, meaning: str) -> Field:
    return Field(name, _metric(name, _WHOLE.format("value")), meaning)


def _word(name: str, meaning: str) -> Field:
    return Field(name, f"json_extract(run.findings, '$.{name}')", meaning)


def _column(name: str, meaning: str) -> Field:
    return Field(name, f"run.{name}", meaning)


_RUN_ID = _column("run_id", "the run; sorts by time")
_SWEEP_ID = _column("sweep_id", "the sweep the run belongs to; sorts by time")
_SUITE = Field("suite", "sweep.suite", "conf/suite/<name>.yaml, NULL when none was asked for")
_SCENARIO = _column("scenario", "conf/scenario/<name>.yaml")
_LABEL = _column("label", "a name given by the user, '' if none")
_OPERATION = _column("operation", "what was measured")
_PROTOCOL = _column("protocol", "the wire")
_ENGINE = _column("engine", "which implementation of the protocol")
_CODEC = _column("codec", "how messages become bytes")
_VARIANT = _column("variant", "protocol and codec knobs that differ from their defaults, '' if none")
_PLACEMENT = _column("placement", "server and driver on different cores (split), on one (same) or unpinned (free)")
_REPEAT = _column("repeat", "which repetition of the cell, from 1")
_VERDICT = _column("verdict", "ok, void, unsupported, failed or interrupted")

# What latency, stream and backpressure begin with.
_CELL = [
    _RUN_ID,
    _SWEEP_ID,
    _SUITE,
    _SCENARIO,
    _LABEL,
    _PROTOCOL,
    _ENGINE,
    _CODEC,
    _VARIANT,
    _PLACEMENT,
    _REPEAT,
    _VERDICT,
]

_RUNS = [
    _RUN_ID,
    _SWEEP_ID,
    _SUITE,
    _SCENARIO,
    _LABEL,
    _OPERATION,
    _PROTOCOL,
    _ENGINE,
    _CODEC,
    _VARIANT,
    _REPEAT,
    _VERDICT,
    _column("reason", "why the verdict is not ok, '' if it is"),
    _column("started_at", "UTC, as text that sorts"),
    _column("duration_s", "s, from launch to stop of both processes"),
]

_PAYLOAD = [
    _RUN_ID,
    _SWEEP_ID,
    _CODEC,
    _word("message", "which message was encoded"),
    _count("size_bytes", "bytes of the encoded message"),
    _word("hex", "the encoded message, in hexadecimal"),
    _number("encode_ns", "ns to encode it"),
    _number("decode_ns", "ns to decode it"),
    _word("representable", "'no' if the codec cannot carry the message unchanged, else 'yes'"),
]

_LATENCY = [
    *_CELL,
    _column("connections", "client connections, one call at a time on each"),
    _count("size_bytes", "bytes of the echoed body; NULL: a quote was asked for"),
    _count("n", "calls measured, the good ones"),
    _count("errors", "calls that failed"),
    _number("p50_us", "µs, median (nearest rank)"),
    _number("p90_us", "µs, 90th percentile"),
    _number("p99_us", "µs, 99th percentile; NULL below 100 samples"),
    _number("p999_us", "µs, 99.9th percentile; NULL below 1,000 samples"),
    _number("mean_us", "µs, arithmetic mean"),
    _number("max_us", "µs, the slowest call"),
    _number("calls_per_s", "calls per second over the measured window"),
    _number("server_cpu_us", "µs of CPU time per call, server process"),
    _number("driver_cpu_us", "µs of CPU time per call, driver process"),
]

_STREAM = [
    *_CELL,
    _word("producer", "how the server makes items: awaited, push, gated or credited"),
    _word("consumer", "how the driver takes them: pull or eager"),
    _count("messages", "messages received and checked"),
    _number("seconds", "s from the request to the last message"),
    _number("messages_per_s", "messages per second"),
    _number("us_per_message", "µs per message"),
    _number("first_ms", "ms from the request to the first message"),
    _number("gap_p99_us", "µs between messages, 99th percentile"),
    _count("client_held_max", "most messages that waited in the client; NULL where the library hides it"),
    _number("server_cpu_us", "µs of CPU time per message, server process"),
    _number("driver_cpu_us", "µs of CPU time per message, driver process"),
    _word("bound", "the busier side: driver or server"),
]

_BACKPRESSURE = [
    *_CELL,
    _word("producer", "how the server makes items: awaited, push, gated or credited"),
    _word("consumer", "what being quiet means: pull (asks for nothing) or eager (reads on into memory)"),
    _count("asked", "messages taken before going quiet"),
    Field("quiet_s", "quiet.t_ns / 1e9", "s since the reader went quiet"),
    Field("produced", _WHOLE.format("quiet.value"), "messages made by then; NULL if the run ended before"),
    _word("bounded_by", "demand (exactly what was asked), buffers (more, then flat) or nothing (still rising)"),
    _word("bound_reason", "what the verdict in bounded_by rests on"),
    _count("plateau_messages", "messages made beyond those asked for, once flat; NULL if never flat"),
    _count("plateau_bytes", "their payload in bytes"),
    _number("plateau_after_s", "s of quiet until the count stayed flat"),
    _count("surplus_server", "messages of the surplus in the service's outbound buffer"),
    _count("surplus_client", "messages of the surplus in the driver's inbox and its library"),
    _count("surplus_kernel", "messages of the surplus in socket buffers, from bytes / mean size"),
    _count("surplus_unaccounted", "messages of the surplus whose place is not known"),
    _count("server_rss_growth_bytes", "bytes by which the server's resident memory grew while quiet"),
    _count("driver_rss_growth_bytes", "bytes by which the driver's resident memory grew while quiet"),
]

# What is recorded with each run, and its unit and meaning. The `conditions` view has a column for each, in this
# order, after run_id.
CONDITIONS = {
    "protocol": "the wire",
    "engine": "which implementation of the protocol",
    "codec": "how messages become bytes",
    "variant": "protocol and codec knobs that differ from their defaults",
    "placement": "server and driver on different cores (split), on one (same) or unpinned (free)",
    "in_process": "1: no server process, the driver hosted both ends",
    "connections": "client connections, or calls at a time on one",
    "multiplex": "1: all calls share one connection",
    "connections_opened": "TCP connections that the driver opened",
    "peers_seen": "TCP connections that the server saw",
    "loop": "event loop of both processes",
    "server_cpus": "CPUs of the server process, as a JSON list",
    "driver_cpus": "CPUs of the driver process, as a JSON list",
    "gc": "what the garbage collector did while measuring",
    "malloc": "settings of the allocator",
    "python_debug": "1: a debugging interpreter or development mode",
    "asyncio_debug": "1: asyncio's debug mode",
    "debug_logging": "1: a logger was set to debug",
    "message_bytes": "bytes of the encoded message",
    "frame_bytes": "bytes that the protocol adds to a message",
    "max_message_bytes": "bytes, the limit set on both ends",
    "python": "version",
    "implementation": "of Python",
    "kernel": "operating system and its version",
    "machine": "processor architecture",
    "cpu": "model of the processor",
    "cpus": "how many CPUs could be used",
    "memory_bytes": "bytes of memory of the machine",
    "hostname": "name of the machine",
    "tcp_rmem": "bytes: least, default and most of a TCP receive buffer",
    "tcp_wmem": "bytes: least, default and most of a TCP send buffer",
    "bakeoff": "version",
    "grpcio": "version",
    "rsocket": "version",
    "websockets": "version",
    "protobuf": "version",
    "cbor2": "version",
    "msgspec": "version",
    "uvloop": "version",
}
_OF_RUN = ("protocol", "engine", "codec", "variant", "placement", "connections")  # columns of the table


def _condition(name: str, meaning: str) -> Field:
    if name in _OF_RUN:
        return _column(name, meaning)
    path = f"'$.{name}'"
    return Field(name, f"coalesce(json_extract(run.conditions, {path}), json_extract(env.facts, {path}))", meaning)


_KNOWN = ", ".join(f"'{name}'" for name in CONDITIONS)


def _rest(name: str, source: str, meaning: str) -> Field:
    """What `source` holds beyond CONDITIONS."""
    each = f"SELECT key, {source} -> fullkey AS fact FROM json_each({source}) WHERE key NOT IN ({_KNOWN})"
    return Field(name, f"(SELECT json_group_object(key, json(fact)) FROM ({each}))", meaning)


_CONDITIONS = [
    _RUN_ID,
    *(_condition(name, meaning) for name, meaning in CONDITIONS.items()),
    _rest("knobs", "run.conditions", "JSON: the protocol's knobs, as protocol.<knob>, and what else was recorded"),
    _rest("other_facts", "env.facts", "JSON: what else was recorded of the machine, such as further versions"),
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
    "conditions": (_CONDITIONS, [_ENVIRONMENT]),
}


def _create(view: str) -> str:
    fields, rest = _FIELDS[view]
    columns = ",\n".join(f"  {field.sql} AS {field.name}" for field in fields)
    return "\n".join([f"CREATE VIEW {view} AS SELECT", columns, "FROM run", *rest])


# View -> the statement that makes it.
VIEWS = {view: _create(view) for view in _FIELDS}

# View -> its columns in order, each with its unit and meaning.
COLUMNS = {view: [(field.name, field.meaning) for field in fields] for view, (fields, _) in _FIELDS.items()}
