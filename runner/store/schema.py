"""The tables of results.db. Narrow, plainly named, units in the column names; a new measurement is a new row.

    sweep --< run >-- environment
              run --< measurement          one number with a unit
              run --< verdict_check        what its verdict rests on
              run --< sample, distribution, series    share (run_id, name)

Times are UTC, as text that sorts (2026-03-01T12:00:00.000000Z). JSON columns hold text that json_extract reads; in
PostgreSQL they are jsonb.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    TypeDecorator,
)
from sqlalchemy.dialects.postgresql import JSONB

from runner.store.record import VERDICTS

VERSION = 2  # of tables and views; stored in the file (PRAGMA user_version)
APPLICATION_ID = 0x42414B45  # "BAKE": tells our files from others' (PRAGMA application_id)

_STAMP = "%Y-%m-%dT%H:%M:%S.%fZ"


class Moment(TypeDecorator[datetime]):
    """A time zone aware datetime, kept as UTC text of fixed width."""

    impl = String(27)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Any) -> str | None:
        return None if value is None else value.astimezone(UTC).strftime(_STAMP)

    def process_result_value(self, value: str | None, dialect: Any) -> datetime | None:
        return None if value is None else datetime.strptime(value, _STAMP).replace(tzinfo=UTC)


metadata = MetaData(
    naming_convention={
        "ix": "ix_%(column_0_label)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)


# Whole numbers of SQLite have 64 bits whatever they are called.
Whole = Integer().with_variant(BigInteger(), "postgresql")
Document = JSON().with_variant(JSONB(), "postgresql")


def _text(name: str, comment: str, *args: Any, **options: Any) -> Column[str]:
    return Column(name, String, *args, nullable=False, comment=comment, **options)


def _whole(name: str, comment: str, kind: Any = Whole, **options: Any) -> Column[int]:
    return Column(name, kind, nullable=False, comment=comment, **options)


def _json(name: str, comment: str) -> Column[Any]:
    return Column(name, Document, nullable=False, comment=f"JSON: {comment}")


def _moment(name: str, comment: str, **options: Any) -> Column[datetime]:
    return Column(name, Moment, comment=f"{comment}, UTC", **options)


def _run_id() -> Column[str]:
    return _text("run_id", "the run", ForeignKey("run.run_id", ondelete="CASCADE"), primary_key=True)


sweep = Table(
    "sweep",
    metadata,
    _text("sweep_id", "26 letters and digits that sort by time", primary_key=True),
    Column("suite", String, comment="conf/suite/<name>.yaml, NULL when none was asked for"),
    _text("command", "as it was typed"),
    _whole("seed", "of the order of the runs", BigInteger),
    _whole("planned", "how many runs the plan had"),
    _moment("started_at", "start", nullable=False),
    _moment("ended_at", "end (NULL: still going, or it was killed)"),
    comment="all the runs started by one command",
)

environment = Table(
    "environment",
    metadata,
    _text("environment_hash", "of the facts", primary_key=True),
    _json("facts", "the machine, and the versions of what ran on it"),
    comment="the machine and the versions, once for all the runs that shared them",
)

run = Table(
    "run",
    metadata,
    _text("run_id", "26 letters and digits that sort by time", primary_key=True),
    _text("sweep_id", "the sweep it belongs to", ForeignKey("sweep.sweep_id")),
    _text("environment_hash", "where it ran", ForeignKey("environment.environment_hash")),
    _whole("position", "in the plan of the sweep, from 1"),
    _text("scenario", "conf/scenario/<name>.yaml"),
    _text("label", "a name given by the user, '' if none"),
    _text("operation", "what was measured"),
    _text("protocol", "the wire"),
    _text("engine", "which implementation of the protocol"),
    _text("codec", "how messages become bytes"),
    _text("variant", "protocol and codec knobs that differ from their defaults, '' if none"),
    _text("placement", "server and driver on different cores (split), on one (same) or unpinned (free)"),
    _whole("connections", "client connections, or calls at a time on one"),
    _whole("repeat", "which repetition of the cell, from 1"),
    _text("verdict", "ok, void, unsupported, failed or interrupted"),
    _text("reason", "why the verdict is not ok, '' if it is"),
    _moment("started_at", "start", nullable=False),
    Column("duration_s", Double, nullable=False, comment="s, from launch to stop of both processes"),
    _json("overrides", "what the user gave, as a list"),
    _json("config", "the composed configuration"),
    _json("conditions", "what may make two runs incomparable"),
    _json("facts", "what the protocol declares about itself"),
    _json("findings", "results that are words"),
    _json("errors", "how many, by kind"),
    CheckConstraint(f"verdict IN {VERDICTS}", name="verdict"),
    Index(None, "sweep_id"),
    comment="one execution of a cell in its own processes",
)

measurement = Table(
    "measurement",
    metadata,
    _run_id(),
    _text("metric", "the name of the views' column", primary_key=True),
    Column("value", Double, nullable=False, comment="the number, unrounded"),
    _text("unit", "of the value"),
    sqlite_with_rowid=False,
    comment="one number with a unit",
)

sample = Table(
    "sample",
    metadata,
    _run_id(),
    _text("name", "what was timed", primary_key=True),
    _whole("seq", "the true position, from 0", primary_key=True),
    _whole("value_ns", "ns", BigInteger),
    sqlite_with_rowid=False,
    comment="single timings, each or every k-th",
)

distribution = Table(
    "distribution",
    metadata,
    _run_id(),
    _text("name", "what was timed", primary_key=True),
    _whole("n", "how many timings"),
    _whole("min_ns", "ns, exact", BigInteger),
    _whole("max_ns", "ns, exact", BigInteger),
    _text(
        "encoding", "of data: hdrhistogram-v2-deflate (bakeoff export --hdr writes it for any HdrHistogram library)"
    ),
    Column("data", LargeBinary, nullable=False, comment="the histogram, in ns, to 3 significant digits"),
    comment="all timings of one name, as a histogram",
)

series = Table(
    "series",
    metadata,
    _run_id(),
    _text("name", "what was watched", primary_key=True),
    _whole("t_ns", "ns since the start of the watch", BigInteger, primary_key=True),
    Column("value", Double, comment="NULL: not reached or not known at that time"),
    sqlite_with_rowid=False,
    comment="a value over time",
)

verdict_check = Table(
    "verdict_check",
    metadata,
    _run_id(),
    _text("name", "what was looked at, as the views name it", primary_key=True),
    Column("value", Double, nullable=False, comment="what was found"),
    _text("unit", "of value, least and most, '' if none"),
    Column("least", Double, comment="the least it may be, NULL for no such limit"),
    Column("most", Double, comment="the most it may be, NULL for no such limit"),
    _whole("passed", "1: within the limits, or excused"),
    _text("weight", "what failing it means: void or warning"),
    _text("reason", "the sentence that says it"),
    sqlite_with_rowid=False,
    comment="what the verdict of a run rests on, one row for each thing that was looked at",
)
