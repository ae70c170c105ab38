"""An empty database of each kind that results can go to, and what a stranger sees in it.

The fixture `database` (tests/conftest.py) runs a test once for each. PostgreSQL's server is the one that
BAKEOFF_TEST_POSTGRESQL_URL names; each test has a schema of its own there.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import make_url

VARIABLE = "BAKEOFF_TEST_POSTGRESQL_URL"
needs_server = pytest.mark.skipif(
    not os.environ.get(VARIABLE), reason=f"{VARIABLE} names no PostgreSQL server (.ci/run starts one)"
)
KINDS = ("sqlite", pytest.param("postgresql", marks=needs_server))


@dataclass(frozen=True)
class Database:
    """`url` opens it, with runner.store; `folder` is empty but for an SQLite file."""

    kind: str
    url: str
    folder: Path

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """What a query finds, with the driver alone."""
        with closing(self.connect()) as connection:
            return list(connection.execute(sql).fetchall())

    def change(self, sql: str) -> None:
        """Executes a statement, with the driver alone."""
        with closing(self.connect()) as connection:
            connection.execute(sql)
            connection.commit()

    def connect(self) -> Any:
        """A connection of sqlite3 or psycopg."""
        if self.kind == "sqlite":
            connection = sqlite3.connect(self.url)
            connection.execute("PRAGMA foreign_keys = ON")
            return connection
        return server_connection(self.url)


def server_connection(url: str, **given: Any) -> Any:
    """A connection of psycopg."""
    import psycopg

    plain = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    return psycopg.connect(plain, **given)


@contextmanager
def empty_database(kind: str, folder: Path) -> Iterator[Database]:
    """A new one, gone afterwards."""
    if kind == "sqlite":
        yield Database(kind, str(folder / "results.db"), folder)
        return
    server = os.environ[VARIABLE]
    name = f"bakeoff_test_{secrets.token_hex(8)}"
    with closing(server_connection(server, autocommit=True)) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
        try:
            yield Database(kind, own_schema(server, name), folder)
        finally:
            connection.execute(f"DROP SCHEMA {name} CASCADE")


def own_schema(server: str, name: str) -> str:
    """The URL of the schema `name` on the server."""
    url = make_url(server).update_query_dict({"options": f"-csearch_path={name}"})
    return url.render_as_string(hide_password=False)
