"""What an empty database becomes: tables, views and the version. Views are derived, so they follow the program.

SQLite keeps version and owner in the file's header, and the text of a view as it was given. In PostgreSQL there is
a table of one row for the version, and a digest of a view's text in its comment.
"""

from __future__ import annotations

import hashlib

from sqlalchemy import Connection

from runner.store import schema
from runner.store.errors import StoreError
from runner.store.views import POSTGRESQL_VIEWS, VIEWS

VERSION_TABLE = "bakeoff_version"
_HERE = "(SELECT oid FROM pg_namespace WHERE nspname = current_schema())"


def create(connection: Connection, shown: str) -> None:
    """Everything, in the caller's transaction: whoever sees the database sees either nothing or all of it."""
    schema.metadata.create_all(connection, checkfirst=False)
    refresh_views(connection, shown)
    stamp(connection)


def stamp(connection: Connection) -> None:
    """Notes that the database is ours, and of this version."""
    if _is_postgresql(connection):
        connection.exec_driver_sql(f"CREATE TABLE IF NOT EXISTS {VERSION_TABLE} (version integer NOT NULL)")
        connection.exec_driver_sql(f"DELETE FROM {VERSION_TABLE}")
        connection.exec_driver_sql(f"INSERT INTO {VERSION_TABLE} VALUES ({schema.VERSION})")
    else:
        connection.exec_driver_sql(f"PRAGMA application_id = {schema.APPLICATION_ID}")
        connection.exec_driver_sql(f"PRAGMA user_version = {schema.VERSION}")


def refresh_views(connection: Connection, shown: str) -> None:
    """Makes again whichever of our views is missing or was made by another text. Nothing is lost by that: a view
    holds no data, so a new column or a new view needs no new version. Views that are not ours stay.

    Raises StoreError where a table has the name of one.
    """
    stored = _views(connection)
    for name, statement in (POSTGRESQL_VIEWS if _is_postgresql(connection) else VIEWS).items():
        if stored.get(name) == _mark(connection, statement):
            continue
        if name in _tables(connection):
            raise StoreError(f"{shown}: it has a table {name}, which is the name of a view of bakeoff; rename it")
        connection.exec_driver_sql(f"DROP VIEW IF EXISTS {name}")
        connection.exec_driver_sql(statement)
        if _is_postgresql(connection):
            connection.exec_driver_sql(f"COMMENT ON VIEW {name} IS '{_mark(connection, statement)}'")


def drop_views(connection: Connection) -> dict[str, str]:
    """Drops the views that would stand in the way of a table's rebuilding: in SQLite all of them, in PostgreSQL,
    which alters tables in place, ours. Returns the statements of those that are not ours, to be made again.
    """
    postgresql = _is_postgresql(connection)
    stored = {name: text for name, text in _views(connection).items() if name in VIEWS or not postgresql}
    for name in stored:
        quoted = name.replace('"', '""')
        connection.exec_driver_sql(f'DROP VIEW "{quoted}"')
    return {name: statement for name, statement in stored.items() if name not in VIEWS}


def names_taken(connection: Connection) -> list[str]:
    """Which of our names are in use, in a database that is not ours."""
    ours = {table.name for table in schema.metadata.sorted_tables} | set(VIEWS)
    return sorted(ours & (_tables(connection) | set(_views(connection))))


def _views(connection: Connection) -> dict[str, str]:
    """Every view of the database, not only ours -> what `_mark` says of its text."""
    if _is_postgresql(connection):
        query = f"SELECT relname, obj_description(oid) FROM pg_class WHERE relkind = 'v' AND relnamespace = {_HERE}"
    else:
        query = "SELECT name, sql FROM sqlite_master WHERE type = 'view'"
    return {name: str(text) for name, text in connection.exec_driver_sql(query)}


def _tables(connection: Connection) -> set[str]:
    """In lower case: SQLite takes a table Stream for one named stream."""
    if _is_postgresql(connection):
        query = f"SELECT relname FROM pg_class WHERE relkind IN ('r', 'p', 'm', 'f') AND relnamespace = {_HERE}"
    else:
        query = "SELECT lower(name) FROM sqlite_master WHERE type = 'table'"
    return set(connection.exec_driver_sql(query).scalars())


def _mark(connection: Connection, statement: str) -> str:
    """What the database remembers of the text that made a view."""
    if not _is_postgresql(connection):
        return statement
    return f"bakeoff {hashlib.sha256(statement.encode()).hexdigest()[:16]}"


def _is_postgresql(connection: Connection) -> bool:
    return connection.dialect.name == "postgresql"
