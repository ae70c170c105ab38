"""Writing: each run is one transaction, and a run that cannot be written is kept in a file beside the database."""

from __future__ import annotations

import contextlib
import shlex
import tempfile
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Connection, Table, insert, update
from sqlalchemy.dialects import postgresql, sqlite

from runner.store import schema
from runner.store.record import RunRecord, SweepRecord
from runner.store.rows import RunRows, moment, sweep_row

UNSAVED_FORMAT = "bakeoff unsaved run 1"


def insert_sweep(connection: Connection, record: SweepRecord) -> None:
    """The row of a sweep that starts. Raises Unstorable."""
    connection.execute(insert(schema.sweep), sweep_row(record))


def finish_sweep(connection: Connection, sweep_id: str, ended_at: datetime) -> None:
    """The end of a sweep. Raises Unstorable."""
    sweep = schema.sweep
    connection.execute(
        update(sweep).where(sweep.c.sweep_id == sweep_id).values(ended_at=moment(ended_at, "ended_at"))
    )


def insert_run(connection: Connection, rows: RunRows) -> None:
    """All the rows of a run; the caller's transaction holds them together."""
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    connection.execute(dialect.insert(schema.environment).on_conflict_do_nothing(), rows.environment)
    connection.execute(insert(schema.run), rows.run)
    _insert_many(connection, schema.measurement, rows.measurement)
    _insert_many(connection, schema.verdict_check, rows.verdict_check)
    _insert_many(connection, schema.distribution, rows.distribution)
    _insert_many(connection, schema.series, rows.series)
    _insert_many(connection, schema.sample, rows.sample)


def _insert_many(connection: Connection, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
    # Straight to the driver: a third of the time of Core's executemany, which looks at every parameter.
    if rows:
        columns = ", ".join(column.name for column in table.columns)
        mark = "%s" if connection.dialect.name == "postgresql" else "?"
        marks = ", ".join(mark for _ in table.columns)
        connection.exec_driver_sql(f"INSERT INTO {table.name} ({columns}) VALUES ({marks})", list(rows))


class Unsaved(msgspec.Struct):
    """A file results.db.unsaved-<run_id>.json: the complete run, all samples too, and why it is not saved.

    `bakeoff merge FILE` (runner.store.merge) brings it in. `sweep`: None where the one who saved had not begun it.
    """

    format: str
    reason: str
    run: RunRecord
    sweep: SweepRecord | None = None


def keep(database: Path, shown: str, record: RunRecord, reason: str, sweep: SweepRecord | None = None) -> str:
    """Keeps a run that cannot be saved, and says where and what to do with it: the end of a sentence."""
    try:
        kept = write_unsaved(database, record, reason, sweep)
    except OSError as failure:
        return f"run {record.run_id} is lost, its file could not be written either: {failure}"
    into = "" if shown in ("results.db", "sqlite:///results.db") else f" --db {shlex.quote(shown)}"
    return f"the run is kept in {kept}; later: bakeoff merge {shlex.quote(str(kept))}{into}"


def write_unsaved(database: Path, record: RunRecord, reason: str, sweep: SweepRecord | None = None) -> Path:
    """Keeps the run in a file beside the database or, where that cannot be written, in the temporary folder.

    Raises OSError if neither takes it.
    """
    data = msgspec.json.encode(Unsaved(UNSAVED_FORMAT, reason, record, sweep), enc_hook=_as_list)
    name = f"{database.name}.unsaved-{record.run_id}.json"
    with contextlib.suppress(OSError):
        return _written(database.parent / name, data)
    return _written(Path(tempfile.gettempdir()) / name, data)


def _written(path: Path, data: bytes) -> Path:
    try:
        path.write_bytes(data)
    except OSError:
        with contextlib.suppress(OSError):
            path.unlink()  # half of a run looks like a run
        raise
    return path


def _as_list(values: Any) -> Any:
    """Samples may be any sequence of integers: array, range, numpy's."""
    return values.tolist() if hasattr(values, "tolist") else list(values)


def read_unsaved(path: Path) -> Unsaved:
    """What `write_unsaved` kept. Raises OSError, msgspec.DecodeError."""
    return msgspec.json.decode(path.read_bytes(), type=Unsaved)
