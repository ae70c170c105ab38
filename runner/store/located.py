"""Where a database is and whether it is ours, found out without changing it."""

from __future__ import annotations

import re
from pathlib import Path

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from runner.store import schema
from runner.store.errors import StoreError

# Every SQLite file starts like this; what is in it is found at fixed places, as big-endian integers.
_MAGIC = b"SQLite format 3\0"
_HEADER_BYTES = 100
# The password of a URL, and that of one of its options.
_PASSWORD = re.compile(r"(\w://[^\s:/@]*:|\w://\S*[?&]password=)[^\s/@&'\"]+(@|(?=[&'\"\s]|$))")
_USER_VERSION = slice(60, 64)
_APPLICATION_ID = slice(68, 72)


def locate(url: str) -> tuple[Path, str]:
    """The absolute path that `url` (or just a path) means, and how to name it to the user. Raises StoreError."""
    shown = _path_of(url) if "://" in url else url
    if not shown or shown == ":memory:" or "\0" in shown:
        raise StoreError(f"{url!r} names no file; give a path or sqlite:///results.db")
    return Path(shown).absolute(), shown.encode(errors="backslashreplace").decode()


def _path_of(url: str) -> str:
    try:
        parts = make_url(url)
    except (ArgumentError, ValueError):
        raise StoreError("not a database URL; give a path or sqlite:///results.db") from None
    if parts.get_backend_name() != "sqlite":
        ways = "use sqlite:///results.db or postgresql+psycopg://user@host/database"
        raise StoreError(f"{parts.get_backend_name()} databases are not supported; {ways}")
    if parts.host is not None:
        raise StoreError(f"{url}: a sqlite URL has three slashes; write sqlite:///{parts.host}")
    if parts.query:
        raise StoreError(f"{url}: a sqlite URL takes no options here; leave out ? and what follows")
    return parts.database or ""


def check_file(path: Path, shown: str) -> int:
    """The version of a file of ours; 0: there is none, or an empty one. Raises StoreError for anything else that is
    there.

    Reads the header itself: merely opening a file with SQLite may already change it.
    """
    try:
        if path.is_dir():
            raise StoreError(f"{shown}: it is a folder; give the name of a file in it")
        if not path.parent.is_dir():
            raise StoreError(f"{shown}: there is no folder {path.parent}; create it or give another file")
        if not path.exists():
            return 0
        if not path.is_file():
            raise StoreError(f"{shown}: it is not a file; give another name")
        with path.open("rb") as file:
            header = file.read(_HEADER_BYTES)
    except OSError as error:
        raise StoreError(f"{shown}: {error.strerror}; change that or give another file") from None
    if not header:
        return 0
    if len(header) < _HEADER_BYTES or not header.startswith(_MAGIC):
        raise StoreError(f"{shown}: it is not a database; give another file")
    version = _integer(header[_USER_VERSION])
    check_identity(_integer(header[_APPLICATION_ID]), version, shown)
    return version


def check_identity(application_id: int, version: int, shown: str) -> None:
    """Raises StoreError unless it is a database of ours that this program can read, or upgrade."""
    if application_id != schema.APPLICATION_ID:
        raise StoreError(f"{shown}: it is another program's database; give another file")
    check_version(version, shown)


def check_version(version: int, shown: str) -> None:
    """Raises StoreError for a version that this program can neither read nor upgrade."""
    if version > schema.VERSION:
        raise StoreError(
            f"{shown}: a newer bakeoff wrote it (version {version}, this one knows {schema.VERSION}); "
            "upgrade bakeoff or give another file"
        )
    if version < 1:
        raise StoreError(f"{shown}: its version {version} is unknown; give another file")


def without_password(text: str) -> str:
    """`text` with *** for the password of every URL in it."""
    return _PASSWORD.sub(r"\1***\2", text)


def _integer(data: bytes) -> int:
    return int.from_bytes(data, "big", signed=True)
