"""A database on a PostgreSQL server: where it is, whether it is ours, and what its errors mean.

The tables are those of runner.store.schema, the views say the same in PostgreSQL's dialect. The database itself
must be there; tables are made in its current schema, which ?options=-csearch_path%3DNAME chooses.
"""

from __future__ import annotations

import importlib.util
import math
import re
import sys
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError

from runner.store import layout, schema
from runner.store.errors import StoreError
from runner.store.located import check_version
from runner.store.rows import to_json
from runner.store.upgrade import migrate

DRIVER = "postgresql+psycopg"
# SQLSTATE, or how it begins -> what is wrong and the way out; {said} is the first line of what the server said.
_SENTENCES = {
    "28": "the server does not let you in ({said}); check user, password and database",
    "3F000": "there is no such schema; create it or give another search_path",
    "42501": "you may not do that ({said}); ask for the right or give another database",
    "2BP01": "a view of bakeoff cannot be made anew ({said}); drop what depends on it and make it again",
    "25006": "it cannot be written ({said}); give another database",
    "53": "the server has no room or no connection left ({said}); make room or give another database",
    "55P03": "it is locked by another program (waited {busy_s:g} s); close that or give another database",
    "57": "the server ended the connection ({said}); try again",
    "08": "the server cannot be reached ({said}); start it or check host and port",
    "22P05": "a text has the character NUL, which PostgreSQL does not keep; an SQLite file does",
}
_NUL = "cannot contain NUL"  # refused by the driver, which has no SQLSTATE


def is_server(url: str) -> bool:
    """Whether `url` begins like one of PostgreSQL, of whichever driver."""
    return url.startswith(("postgresql:", "postgresql+"))


def locate_server(url: str) -> tuple[URL, str]:
    """The URL, and how to name it to the user: without a password. Raises StoreError."""
    try:
        parts = make_url(url)
    except (ArgumentError, ValueError):
        raise StoreError(f"not a database URL; write {DRIVER}://user@host/database") from None
    if parts.drivername not in ("postgresql", DRIVER):
        raise StoreError(f"{parts.drivername}: that driver is not supported; write {DRIVER}://...")
    hidden = {key: "***" if key == "password" else value for key, value in parts.query.items()}
    shown = parts.set(query=hidden).render_as_string(hide_password=True)
    if importlib.util.find_spec("psycopg") is None:
        raise StoreError(f"{shown}: PostgreSQL needs a library more; pip install 'bakeoff[postgresql]'")
    return parts.set(drivername=DRIVER), shown


def beside(url: URL) -> Path:
    """What the files of runs that could not be saved are named after: they go into the current folder."""
    name = re.sub(r"[^\w.-]", "_", url.database or "") or "postgresql"
    return Path(name).absolute()


def writing_engine(url: URL, shown: str, busy_s: float, create: bool) -> Engine:
    """For a database that is ready to be written: made, or upgraded, where that is needed. Raises StoreError."""
    engine = _engine(url, shown, busy_s, [])
    try:
        with engine.begin() as connection:
            found = _make_ready(connection, shown, create)
    except BaseException:
        engine.dispose()
        raise
    if found < schema.VERSION:
        done = f"upgraded from version {found} to {schema.VERSION} in place; a copy is made by pg_dump, not here"
        print(f"{shown}: {done}", file=sys.stderr)
    return engine


def reading_engine(url: URL, shown: str, busy_s: float) -> Engine:
    """For reading only: every connection sees one state of the database. Raises StoreError if it is not ours."""
    settings = ["default_transaction_read_only = on", "default_transaction_isolation = 'repeatable read'"]
    engine = _engine(url, shown, busy_s, settings)
    try:
        with engine.connect() as connection:
            version = _version(connection)
        if version is None:
            raise StoreError(f"{shown}: bakeoff has no tables there; run bakeoff first")
        check_version(version, shown)
        if version < schema.VERSION:
            writing_engine(url, shown, busy_s, create=False).dispose()
    except BaseException:
        engine.dispose()
        raise
    return engine


def _make_ready(connection: Connection, shown: str, create: bool) -> int:
    """The version that was found, or made."""
    # One at a time: two that start at once would both make the tables.
    lock = f"SELECT pg_advisory_xact_lock({schema.APPLICATION_ID}, hashtext(current_schema()))"
    connection.exec_driver_sql(lock)
    version = _version(connection)
    if version is None:
        if not create:
            raise StoreError(f"{shown}: bakeoff has no tables there; run bakeoff first")
        if taken := layout.names_taken(connection):
            raise StoreError(f"{shown}: {', '.join(taken)} there is another program's; give another search_path")
        layout.create(connection, shown)
        return schema.VERSION
    check_version(version, shown)
    if version < schema.VERSION:
        migrate(connection, version, shown)  # all or nothing
    else:
        layout.refresh_views(connection, shown)
    return version


def _version(connection: Connection) -> int | None:
    """None: there is nothing of ours in the current schema."""
    place = "SELECT 1 FROM pg_tables WHERE schemaname = current_schema() AND tablename = "
    if connection.exec_driver_sql(f"{place} '{layout.VERSION_TABLE}'").first() is None:
        return None
    found: int = connection.exec_driver_sql(f"SELECT version FROM {layout.VERSION_TABLE}").scalar_one()
    return found


def _engine(url: URL, shown: str, busy_s: float, settings: list[str]) -> Engine:
    engine = create_engine(
        url,
        json_serializer=to_json,
        pool_pre_ping=True,  # a server that was restarted between two runs is connected to again
        connect_args={"connect_timeout": max(2, math.ceil(busy_s)), "application_name": "bakeoff"},
    )
    wait = f"lock_timeout = {max(1, round(busy_s * 1000))}"

    @event.listens_for(engine, "connect")
    def _set(connection: DBAPIConnection, record: Any) -> None:
        cursor = connection.cursor()
        for setting in [wait, *settings]:
            cursor.execute(f"SET {setting}")
        cursor.close()
        connection.commit()

    @event.listens_for(engine, "handle_error")
    def _translate(context: ExceptionContext) -> None:
        if context.is_pre_ping:  # answered by connecting again
            return
        if what := _sentence(context.original_exception, busy_s):
            raise StoreError(f"{shown}: {what}") from context.original_exception

    return engine


def _sentence(error: BaseException | None, busy_s: float) -> str | None:
    """What is wrong with server or database, or None if `error` says nothing about them."""
    import psycopg

    if not isinstance(error, psycopg.Error):
        return None
    state = error.sqlstate or ("22P05" if _NUL in str(error) else "")
    said = next(iter(str(error).splitlines()), "").strip()
    if not state and isinstance(error, psycopg.OperationalError):  # while connecting; libpq tells no state
        before, fatal, words = said.partition("FATAL:")
        state, said = ("28", words.strip()) if fatal else ("08", before)
    found = next((text for code, text in _SENTENCES.items() if state.startswith(code)), None)
    return found and found.format(said=said, busy_s=busy_s)
