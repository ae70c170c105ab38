"""What can go wrong with a database, as one line for the person who started the program."""

from __future__ import annotations

import sqlite3

# Result codes of SQLite that are about the file, not about our SQL; extended codes start with these names.
_SENTENCES = {
    "SQLITE_BUSY": "it is locked by another program (waited {busy_s:g} s); close that or give another file",
    "SQLITE_READONLY": "it cannot be written; make it and its folder writable or give another file",
    "SQLITE_CANTOPEN": "it cannot be opened; make it and its folder readable and writable or give another file",
    "SQLITE_PERM": "it may not be opened; change its permissions or give another file",
    "SQLITE_NOTADB": "it is not a database; give another file",
    "SQLITE_CORRUPT": "the database is damaged; move it away or put back a copy",
    "SQLITE_FULL": "the disk is full; make room or give another file",
    "SQLITE_IOERR": "reading or writing it failed; check the disk or give another file",
}


class StoreError(Exception):
    """A database that cannot be used, and the way out: one line, ready to be shown."""


class Unstorable(StoreError):
    """A record that holds something no database keeps unchanged. Raised before anything is written."""


def sentence(error: BaseException | None, busy_s: float) -> str | None:
    """What is wrong with the file, or None if `error` says nothing about the file."""
    name = getattr(error, "sqlite_errorname", None) if isinstance(error, sqlite3.Error) else None
    found = next((text for code, text in _SENTENCES.items() if name and name.startswith(code)), None)
    return found and found.format(busy_s=busy_s)
