"""Opening results.db, for a sweep or for reading, and leaving it as one complete file.

While a sweep writes, the file is in WAL mode: readers do not wait, and a killed process costs only the run that was
being saved. At the end it goes back to one file, so that a copy of it is complete. Transactions that write say so
when they begin (BEGIN IMMEDIATE): SQLite refuses, without waiting, one that starts by reading when another writer
has come between.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from runner.store import layout, postgresql, save, schema
from runner.store.connect import connect, engine_for
from runner.store.errors import StoreError
from runner.store.located import check_file, check_identity, locate
from runner.store.record import RunRecord, SweepRecord
from runner.store.rows import run_rows
from runner.store.upgrade import upgrade_file

BUSY_S = 10.0  # how long another program's lock is waited for, unless told otherwise
CLOSING_S = 0.5  # the same when closing: what is not done then, the next to close does


class Store:
    """An open database. `engine` is SQLAlchemy's; what is wrong with the file reaches its users as StoreError.

    `path`: the file. Where a server has the database, it is only what the files of unsaved runs are named after.
    `url`: opens it from another folder too, password included. `shown`: its name for people.

    A context manager: leaving it closes. Not for two threads at once.
    """

    def __init__(self, path: Path, shown: str, engine: Engine, *, writes: bool, server: str | None = None) -> None:
        self.path = path
        self.url = server or str(path)
        self.engine = engine
        self.shown = shown
        self._writes = writes
        self._identity = None if server else _identity(path)
        self._begun: SweepRecord | None = None

    def begin_sweep(self, record: SweepRecord) -> None:
        """Saves the row that the runs of the sweep refer to. Raises StoreError."""
        with self.writing() as connection:
            save.insert_sweep(connection, record)
        self._begun = record

    def save_run(self, record: RunRecord, samples_max: int | None = None) -> None:
        """Saves a finished run, all of it or nothing. Its sweep must have begun.

        `samples_max`: how many rows of one name at most, by default what the run's configuration says. Of more
        samples every k-th is kept as a row, with its true position; the histogram always has all.

        Raises Unstorable (nothing was written; correct the record) or StoreError, which then names the file
        where the run is kept instead.
        """
        rows = run_rows(record, samples_max)
        try:
            with self.writing() as connection:
                save.insert_run(connection, rows)
        except (StoreError, SQLAlchemyError) as error:
            reason = str(error).partition("\n")[0]
            begun = self._begun if self._begun and self._begun.sweep_id == record.sweep_id else None
            kept = save.keep(self.path, self.shown, record, reason, begun)
            raise StoreError(f"{reason}; {kept}") from error

    def end_sweep(self, sweep_id: str, ended_at: datetime) -> None:
        """Notes when the sweep ended. Raises StoreError."""
        with self.writing() as connection:
            save.finish_sweep(connection, sweep_id, ended_at)

    def close(self) -> None:
        """Closes every connection and leaves one complete file, unless another program still has it open: then
        the last to close does that. Raises nothing for a database that is busy or gone.
        """
        self.engine.dispose()
        if self._writes and self._identity is not None and _identity(self.path) == self._identity:
            with (
                contextlib.suppress(sqlite3.Error),
                contextlib.closing(connect(self.path, "rw", CLOSING_S)) as last,
            ):
                last.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # complete also where the next line is refused
                last.execute("PRAGMA journal_mode = DELETE")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextlib.contextmanager
    def writing(self) -> Iterator[Connection]:
        """One transaction, kept if the block ends well. Raises StoreError."""
        with self.engine.begin() as connection:
            yield connection
            # SQLite goes on writing into a file that was deleted, and nobody would see it again.
            if self._identity is not None and _identity(self.path) != self._identity:
                raise StoreError(f"{self.shown}: the file was deleted or replaced while it was in use")


def open_store(url: str, create: bool = True, busy_s: float = BUSY_S) -> Store:
    """The database at `url` (postgresql+psycopg://..., sqlite:///results.db, or just a path; relative ones start at
    the current folder), ready to be written. `create`: make it if it does not exist. `busy_s`: how long to wait for
    a lock.

    An older version is upgraded, after a copy was made beside it. Views that were made by another text than this
    program's are made again.

    Raises StoreError if it cannot be written or is not ours; it is then as it was.
    """
    if postgresql.is_server(url):
        place, shown = postgresql.locate_server(url)
        engine = postgresql.writing_engine(place, shown, busy_s, create)
        return Store(postgresql.beside(place), shown, engine, writes=True, server=url)
    path, shown = _ready(url, busy_s, create)
    plain = engine_for(path, shown, "rwc" if create else "rw", busy_s, [], "BEGIN IMMEDIATE")
    try:
        with plain.begin() as connection:
            _create_or_check(connection, shown)
    finally:
        plain.dispose()
    engine = engine_for(path, shown, "rw", busy_s, ["journal_mode = WAL", "foreign_keys = ON"], "BEGIN IMMEDIATE")
    return _opened(Store(path, shown, engine, writes=True))


def read_store(url: str, busy_s: float = BUSY_S) -> Store:
    """The database at `url`, for reading only: never created, never changed, unless it is of an older version: then
    it is upgraded, after a copy was made beside it.

    Raises StoreError if it does not exist or is not ours.
    """
    if postgresql.is_server(url):
        place, shown = postgresql.locate_server(url)
        engine = postgresql.reading_engine(place, shown, busy_s)
        return Store(postgresql.beside(place), shown, engine, writes=False, server=url)
    path, shown = _ready(url, busy_s, create=False)
    # Not mode=ro: a reader that is the last to close must be able to fold the WAL back into the file.
    engine = engine_for(path, shown, "rw", busy_s, ["query_only = ON"], "BEGIN")
    return _opened(Store(path, shown, engine, writes=False))


def _ready(url: str, busy_s: float, create: bool) -> tuple[Path, str]:
    """Path and name of a file of this version, or of none where that is allowed. Raises StoreError."""
    path, shown = locate(url)
    version = check_file(path, shown)
    if not version and not create:
        raise StoreError(f"{shown} not found; run bakeoff first")
    if 0 < version < schema.VERSION:
        upgrade_file(path, shown, busy_s)
    return path, shown


def _opened(store: Store) -> Store:
    """`store` with its first connection made, so that what is wrong with the file shows now."""
    try:
        with store.engine.connect() as connection:
            _check(connection, store.shown)
    except BaseException:
        store.close()
        raise
    return store


def _create_or_check(connection: Connection, shown: str) -> None:
    # In the file's own journal mode, and in one transaction with the version: whoever sees the file sees
    # either nothing or all of it, also after a crash and when two sweeps start at once.
    if connection.exec_driver_sql("SELECT count(*) FROM sqlite_master").scalar_one():
        _check(connection, shown)
        layout.refresh_views(connection, shown)
    else:
        layout.create(connection, shown)


def _check(connection: Connection, shown: str) -> None:
    check_identity(
        connection.exec_driver_sql("PRAGMA application_id").scalar_one(),
        connection.exec_driver_sql("PRAGMA user_version").scalar_one(),
        shown,
    )


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
