"""What a view is made of: columns as pairs (name, expression), each with its unit and meaning beside it.

The SQL is SQLite's. PostgreSQL's follows from it where it is plain SQL, WHOLE or WORD; any other field says both.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Field(NamedTuple):
    """One column of a view: its name, the SQL behind it, its unit and meaning."""

    name: str
    sql: str
    meaning: str
    postgresql: str = ""  # "": what in_postgresql makes of `sql`


# An integer where the number is whole; estimates among the counts keep their fraction. A column of PostgreSQL has
# one type, so there the number stays what it is.
WHOLE = "CASE WHEN {0} = CAST({0} AS INTEGER) THEN CAST({0} AS INTEGER) ELSE {0} END"
# A text in a JSON column.
WORD = "json_extract({0}, '$.{1}')"

_WHOLE = re.compile(re.escape(WHOLE).replace(r"\{0\}", "(.+?)", 1).replace(r"\{0\}", r"\1"))
_WORD = re.compile(re.escape(WORD).replace(r"\{0\}", r"([\w.]+)").replace(r"\{1\}", r"(\w+)"))


def in_postgresql(field: Field) -> str:
    """The expression behind the column in PostgreSQL's dialect."""
    return field.postgresql or _WORD.sub(r"(\1 ->> '\2')", _WHOLE.sub(r"\1", field.sql))


def metric(name: str, value: str = "value") -> str:
    return f"(SELECT {value} FROM measurement AS m WHERE m.run_id = run.run_id AND m.metric = '{name}')"


def number(name: str, meaning: str) -> Field:
    return Field(name, metric(name), meaning)


def count(name: str, meaning: str) -> Field:
    return Field(name, metric(name, WHOLE.format("value")), meaning)


def word(name: str, meaning: str) -> Field:
    return Field(name, WORD.format("run.findings", name), meaning)


def column(name: str, meaning: str) -> Field:
    return Field(name, f"run.{name}", meaning)


RUN_ID = column("run_id", "the run; sorts by time")
SWEEP_ID = column("sweep_id", "the sweep the run belongs to; sorts by time")
SUITE = Field("suite", "sweep.suite", "conf/suite/<name>.yaml, NULL when none was asked for")
SCENARIO = column("scenario", "conf/scenario/<name>.yaml")
LABEL = column("label", "a name given by the user, '' if none")
OPERATION = column("operation", "what was measured")
PROTOCOL = column("protocol", "the wire")
ENGINE = column("engine", "which implementation of the protocol")
CODEC = column("codec", "how messages become bytes")
VARIANT = column("variant", "protocol and codec knobs that differ from their defaults, '' if none")
PLACEMENT = column("placement", "server and driver on different cores (split), on one (same) or unpinned (free)")
REPEAT = column("repeat", "which repetition of the cell, from 1")
VERDICT = column("verdict", "ok, void, unsupported, failed or interrupted")

# What latency, stream and backpressure begin with.
CELL = [
    RUN_ID,
    SWEEP_ID,
    SUITE,
    SCENARIO,
    LABEL,
    PROTOCOL,
    ENGINE,
    CODEC,
    VARIANT,
    PLACEMENT,
    REPEAT,
    VERDICT,
]


PEAKS = [
    count("server_peak_rss_bytes", "bytes, most resident memory of the server process"),
    count("driver_peak_rss_bytes", "bytes, most resident memory of the driver process"),
]


def resources(item: str) -> list[Field]:
    """What an `item` took beside time. The columns of every view with a speed."""
    return [
        *PEAKS,
        number("server_switches", f"context switches per {item}, server process: voluntary and not"),
        number("driver_switches", f"context switches per {item}, driver process: voluntary and not"),
    ]


# What came before anything was timed. The columns of every view with the calls or messages of a connection.
CONNECTING = [
    number(
        "connect_ms",
        "ms from asking to connect to an open connection, the median over the run's; in no other time; NULL where "
        "server and driver are one process",
    ),
    number("first_call_ms", "ms of the first call over a connection, likewise; it precedes the warm-up"),
]
