"""What an empty database becomes: tables, views and the version. Views are derived, so they follow the program."""

from __future__ import annotations

from sqlalchemy import Connection

from runner.store import schema
from runner.store.errors import StoreError
from runner.store.views import VIEWS


def create(connection: Connection, shown: str) -> None:
    """Everything, in the caller's transaction: whoever sees the database sees either nothing or all of it."""
    schema.metadata.create_all(connection)
    refresh_views(connection, shown)
    stamp(connection)


def stamp(connection: Connection) -> None:
    """Notes that the database is ours, and of this version."""
    connection.exec_driver_sql(f"PRAGMA application_id = {schema.APPLICATION_ID}")
    connection.exec_driver_sql(f"PRAGMA user_version = {schema.VERSION}")


def stored_views(connection: Connection) -> dict[str, str]:
    """Every view of the database, not only ours -> the statement that made it."""
    found = connection.exec_driver_sql("SELECT name, sql FROM sqlite_master WHERE type = 'view'")
    return {name: str(statement) for name, statement in found}


def refresh_views(connection: Connection, shown: str) -> None:
    """Makes again whichever of our views is missing or was made by another text. Nothing is lost by that: a view
    holds no data, so a new column or a new view needs no new version. Views that are not ours stay.

    Raises StoreError where a table has the name of one.
    """
    stored = stored_views(connection)
    for name, statement in VIEWS.items():
        if stored.get(name) == statement:
            continue
        taken = connection.exec_driver_sql(
            "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ? COLLATE NOCASE", (name,)
        )
        if taken.first():
            raise StoreError(f"{shown}: it has a table {name}, which is the name of a view of bakeoff; rename it")
        connection.exec_driver_sql(f"DROP VIEW IF EXISTS {name}")
        connection.exec_driver_sql(statement)


def drop_views(connection: Connection) -> dict[str, str]:
    """Drops every view: SQLite refuses to rebuild a table that one refers to. Returns those that are not ours, to
    be made again.
    """
    stored = stored_views(connection)
    for name in stored:
        quoted = name.replace('"', '""')
        connection.exec_driver_sql(f'DROP VIEW "{quoted}"')
    return {name: statement for name, statement in stored.items() if name not in VIEWS}
