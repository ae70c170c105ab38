"""An older database becomes one of this version, after a copy of it was made beside it.

The steps are Alembic revisions (runner.store.migrations). They run in one transaction with the new version:
whatever stops them, the database is as it was.
"""

from __future__ import annotations

import contextlib
import sqlite3
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from runner.store import layout, schema
from runner.store.connect import connect, engine_for
from runner.store.errors import StoreError

REVISIONS = [Path(__file__).parent / "migrations"]


def upgrade_file(path: Path, shown: str, busy_s: float) -> None:
    """Does nothing to a file of this version. What was done, and where the copy is, goes to stderr as one line.

    Raises StoreError; the file is then as it was.
    """
    # A rebuilt table is dropped for a moment. With foreign keys on, SQLite would delete the rows that refer to it.
    engine = engine_for(path, shown, "rw", busy_s, ["foreign_keys = OFF"], "BEGIN IMMEDIATE")
    backup = None
    try:
        with engine.begin() as connection:
            found: int = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
            if found >= schema.VERSION:  # somebody else was faster
                return
            backup = _copy(path, shown, found, busy_s)
            migrate(connection, found, shown)
            if lost := connection.exec_driver_sql("PRAGMA foreign_key_check").all():
                raise StoreError(f"{shown}: {len(lost)} rows refer to nothing after upgrading; it stays as it was")
    except BaseException:
        if backup is not None:
            backup.unlink(missing_ok=True)  # the original is unchanged
        raise
    finally:
        engine.dispose()
    print(f"{shown}: upgraded from version {found} to {schema.VERSION}; as it was: {backup}", file=sys.stderr)


def migrate(connection: Connection, found: int, shown: str) -> None:
    """Every step from version `found` on, in the caller's transaction. No view stands in the way of a step.

    Raises StoreError.
    """
    from alembic.migration import MigrationContext
    from alembic.operations import Operations

    others = layout.drop_views(connection)
    try:
        with Operations.context(MigrationContext.configure(connection)):
            for step in _steps(found):
                step()
    except SQLAlchemyError as error:
        said = str(error).partition("\n")[0]
        raise StoreError(f"{shown}: upgrading it from version {found} failed: {said}") from error
    for statement in others.values():
        connection.exec_driver_sql(statement)
    layout.refresh_views(connection, shown)
    layout.stamp(connection)


def _steps(found: int) -> Iterator[Callable[[], None]]:
    """The `upgrade` of every revision after `found`, the oldest first."""
    from alembic.script import ScriptDirectory

    scripts = ScriptDirectory(str(REVISIONS[0]), version_locations=[str(place) for place in REVISIONS])
    base = f"{found:04d}" if found else "base"
    newest_first = list(scripts.iterate_revisions(f"{schema.VERSION:04d}", base))
    for script in reversed(newest_first):
        yield script.module.upgrade


def _copy(path: Path, shown: str, found: int, busy_s: float) -> Path:
    """A copy beside the file, under a name that is free. The caller's transaction keeps writers away meanwhile."""
    copy = path.with_name(f"{path.name}.version-{found}")
    number = 1
    try:
        while True:
            try:
                copy.open("xb").close()
                break
            except FileExistsError:
                number += 1
                copy = path.with_name(f"{path.name}.version-{found}-{number}")
        try:
            with (
                contextlib.closing(connect(path, "rw", busy_s)) as source,
                contextlib.closing(connect(copy, "rw", busy_s)) as target,
            ):
                source.backup(target)
                target.execute("PRAGMA journal_mode = DELETE")  # one complete file
        except BaseException:
            copy.unlink(missing_ok=True)
            raise
    except (OSError, sqlite3.Error) as error:
        raise StoreError(
            f"{shown}: its version {found} needs an upgrade, and no copy could be made first ({error}); "
            "make room beside it, make its folder writable, or give another file"
        ) from error
    return copy
