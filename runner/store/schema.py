"""The tables of results.db. Narrow, plainly named, units in the column names; a new measurement is a new row.

    sweep --< run >-- environment
              run --< measurement          one number with a unit
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

VERSION = 1  # of tables and views; stored in the file (PRAGMA user_version)
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


def _text(name: str, *args: Any, **options: Any) -> Column[str]:
    return Column(name, String, *args, nullable=False, **options)


def _json(name: str) -> Column[Any]:
    return Column(name, Document, nullable=False)


def _run_id() -> Column[str]:
    return _text("run_id", ForeignKey("run.run_id", ondelete="CASCADE"), primary_key=True)


# All the runs started by one command.
sweep = Table(
    "sweep",
    metadata,
    _text("sweep_id", primary_key=True),
    Column("suite", String),
    _text("command"),
    Column("seed", BigInteger, nullable=False),
    Column("planned", Whole, nullable=False),
    Column("started_at", Moment, nullable=False),
    Column("ended_at", Moment),  # NULL: still going, or it was killed
)

# The machine and the versions, once for all the runs that shared them.
environment = Table(
    "environment",
    metadata,
    _text("environment_hash", primary_key=True),
    _json("facts"),
)

# One execution of a cell in its own processes.
run = Table(
    "run",
    metadata,
    _text("run_id", primary_key=True),
    _text("sweep_id", ForeignKey("sweep.sweep_id")),
    _text("environment_hash", ForeignKey("environment.environment_hash")),
    Column("position", Whole, nullable=False),  # in the plan of the sweep
    _text("scenario"),
    _text("label"),
    _text("operation"),
    _text("protocol"),
    _text("engine"),
    _text("codec"),
    _text("variant"),  # the knobs that differ from their option's defaults
    _text("placement"),
    Column("connections", Whole, nullable=False),
    Column("repeat", Whole, nullable=False),
    _text("verdict"),
    _text("reason"),
    Column("started_at", Moment, nullable=False),
    Column("duration_s", Double, nullable=False),
    _json("overrides"),  # what the user gave, as a list
    _json("config"),  # the composed configuration
    _json("conditions"),  # what may make two runs incomparable
    _json("facts"),  # what the protocol declares about itself
    _json("findings"),  # results that are words
    _json("errors"),  # how many, by kind
    CheckConstraint(f"verdict IN {VERDICTS}", name="verdict"),
    Index(None, "sweep_id"),
)

# One number with a unit. `metric` is the name of the views' column.
measurement = Table(
    "measurement",
    metadata,
    _run_id(),
    _text("metric", primary_key=True),
    Column("value", Double, nullable=False),
    _text("unit"),
    sqlite_with_rowid=False,
)

# Single timings, each or every k-th: `seq` is the true position, counted from 0.
sample = Table(
    "sample",
    metadata,
    _run_id(),
    _text("name", primary_key=True),
    Column("seq", Whole, primary_key=True),
    Column("value_ns", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

# All timings of one name, as a histogram (runner.store.histogram); min and max are exact.
distribution = Table(
    "distribution",
    metadata,
    _run_id(),
    _text("name", primary_key=True),
    Column("n", Whole, nullable=False),
    Column("min_ns", BigInteger, nullable=False),
    Column("max_ns", BigInteger, nullable=False),
    _text("encoding"),
    Column("data", LargeBinary, nullable=False),
)

# A value over time. NULL: not reached or not known at that time.
series = Table(
    "series",
    metadata,
    _run_id(),
    _text("name", primary_key=True),
    Column("t_ns", BigInteger, primary_key=True),  # since the start of the watch
    Column("value", Double),
    sqlite_with_rowid=False,
)
