"""Connections to an SQLite file: how they open, begin, wait and complain."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.engine import ExceptionContext

from runner.store.errors import StoreError, sentence
from runner.store.rows import to_json

RETRY_S = 0.01


def engine_for(path: Path, shown: str, mode: str, busy_s: float, pragmas: Sequence[str], begin: str) -> Engine:
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        creator=lambda: connect(path, mode, busy_s, pragmas),
        json_serializer=to_json,
    )

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    @event.listens_for(engine, "handle_error")
    def _translate(context: ExceptionContext) -> None:
        if what := sentence(context.original_exception, busy_s):
            raise StoreError(f"{shown}: {what}") from context.original_exception

    return engine


def connect(path: Path, mode: str, busy_s: float, pragmas: Sequence[str] = ()) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.as_uri()}?mode={mode}",
        uri=True,
        timeout=busy_s,
        isolation_level=None,  # transactions begin where we say so
        check_same_thread=False,
    )
    try:
        for pragma in pragmas:
            _patiently(connection, f"PRAGMA {pragma}", busy_s)
    except BaseException:
        connection.close()
        raise
    return connection


def _patiently(connection: sqlite3.Connection, statement: str, busy_s: float) -> None:
    # Two connections that change the journal mode at once would wait for each other for ever: SQLite refuses one
    # of them at once, whatever the timeout, and expects it to come again.
    deadline = time.monotonic() + busy_s
    while True:
        try:
            connection.execute(statement)
        except sqlite3.OperationalError as error:
            if not error.sqlite_errorname.startswith("SQLITE_BUSY") or time.monotonic() > deadline:
                raise
            time.sleep(RETRY_S)
        else:
            return
