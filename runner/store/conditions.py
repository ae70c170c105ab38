"""The columns of the view `conditions`: what is recorded with each run that may make two runs incomparable."""

from __future__ import annotations

from runner.store.columns import RUN_ID, Field, column

# What is recorded with each run, and its unit and meaning. The `conditions` view has a column for each, in this
# order, after run_id.
CONDITIONS = {
    "protocol": "the wire",
    "engine": "which implementation of the protocol",
    "codec": "how messages become bytes",
    "variant": "protocol and codec knobs that differ from their defaults",
    "placement": "server and driver on different cores (split), on one (same) or unpinned (free)",
    "in_process": "1: no server process, the driver hosted both ends",
    "model": "how the server does many things at once: event loop or threads",
    "workers": "threads of the server's pool; NULL where it has none",
    "connections": "client connections, or calls at a time on one",
    "multiplex": "1: all calls share one connection",
    "arrival": "closed (the next call when the last is answered), constant or poisson (calls are due by the clock)",
    "rate_per_s": "calls per second asked for; NULL in a closed loop",
    "max_in_flight": "calls waiting and under way beyond which one is dropped; NULL in a closed loop",
    "arrival_seed": "seed of poisson arrivals",
    "connections_opened": "TCP connections that the driver opened",
    "peers_seen": "TCP connections that the server saw",
    "loop": "event loop of both processes",
    "server_cpus": "CPUs of the server process, as a JSON list",
    "driver_cpus": "CPUs of the driver process, as a JSON list",
    "gc": "what the garbage collector did while measuring",
    "malloc": "settings of the allocator",
    "load_average": "processes that wanted a CPU in the minute before launch, on average",
    "load_average_after": "the same at the end of the run, its own processes among them",
    "steal_pct": "% of the CPU time of the measured window that the machine's host gave to others",
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
    "governor": "who chooses the clock speed: performance, powersave, schedutil",
    "turbo": "on or off: whether the clock may pass its nominal speed",
    "smt": "on or off: whether two hardware threads share a core",
    "clock_source": "what the kernel reads the time from",
    "cpu_quota_pct": "% of one CPU that the control group may use; NULL for no limit, or none that is told",
    "memory_limit_bytes": "bytes that the control group may use; NULL for no limit, or none that is told",
    "tcp_rmem": "bytes: least, default and most of a TCP receive buffer",
    "tcp_wmem": "bytes: least, default and most of a TCP send buffer",
    "somaxconn": "connections that may wait to be accepted, at most",
    "python_build": "how Python was built: debug, pgo, lto; plain for none of them",
    "bakeoff": "version",
    "grpcio": "version",
    "waitress": "version",
    "rsocket": "version",
    "websockets": "version",
    "protobuf": "version",
    "cbor2": "version",
    "msgspec": "version",
    "uvloop": "version",
}
# Those that are whole numbers, or 0 and 1, and those that are not: PostgreSQL wants to know the type of a column.
_NUMBERS = {
    "in_process",
    "connections_opened",
    "peers_seen",
    "multiplex",
    "workers",
    "max_in_flight",
    "arrival_seed",
    "python_debug",
    "asyncio_debug",
    "debug_logging",
    "message_bytes",
    "frame_bytes",
    "max_message_bytes",
    "cpus",
    "memory_bytes",
    "cpu_quota_pct",
    "memory_limit_bytes",
    "somaxconn",
}
_FRACTIONS = {"rate_per_s", "load_average", "load_average_after", "steal_pct"}
_OF_RUN = ("protocol", "engine", "codec", "variant", "placement", "connections")  # columns of the table


def _condition(name: str, meaning: str) -> Field:
    if name in _OF_RUN:
        return column(name, meaning)
    path = f"'$.{name}'"
    sql = f"coalesce(json_extract(run.conditions, {path}), json_extract(env.facts, {path}))"
    found = f"coalesce(nullif(run.conditions -> '{name}', 'null'), nullif(env.facts -> '{name}', 'null'))"
    if name in _FRACTIONS:
        return Field(name, sql, meaning, _number(found, "double precision"))
    if name in _NUMBERS:
        return Field(name, sql, meaning, _number(found, "bigint"))
    return Field(name, sql, meaning, f"({found} #>> '{{}}')")


def _number(document: str, kind: str) -> str:
    return (
        f"CASE jsonb_typeof({document}) WHEN 'number' THEN CAST({document} AS {kind})"
        f" WHEN 'boolean' THEN CAST(CAST({document} AS boolean) AS integer) END"
    )


_KNOWN = ", ".join(f"'{name}'" for name in CONDITIONS)


def _rest(name: str, source: str, meaning: str) -> Field:
    """What `source` holds beyond CONDITIONS."""
    each = f"SELECT key, {source} -> fullkey AS fact FROM json_each({source}) WHERE key NOT IN ({_KNOWN})"
    sql = f"(SELECT json_group_object(key, json(fact)) FROM ({each}))"
    rest = f"SELECT jsonb_object_agg(key, value) FROM jsonb_each({source}) WHERE key NOT IN ({_KNOWN})"
    return Field(name, sql, meaning, f"CAST(coalesce(({rest}), '{{}}') AS text)")


CONDITION_FIELDS = [
    RUN_ID,
    *(_condition(name, meaning) for name, meaning in CONDITIONS.items()),
    _rest("knobs", "run.conditions", "JSON: the protocol's knobs, as protocol.<knob>, and what else was recorded"),
    _rest("other_facts", "env.facts", "JSON: what else was recorded of the machine, such as further versions"),
]
