"""Where `bakeoff report --html FILE` writes: one file, whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from runner.report.figures import counted, size
from runner.report.read import ReportError
from runner.report.render import Report

DATABASE = b"SQLite format 3\0"


def check_writable(file: str) -> None:
    """Raises ReportError for a FILE that cannot be written, before anything is read; and for a database, which
    nobody means to replace.
    """
    path = Path(file)
    try:
        if not file or path.is_dir():
            raise ReportError(f"--html {file}: it is a folder; give the name of a file in it")
        if not path.parent.is_dir():
            raise ReportError(f"--html {file}: there is no folder {path.parent}; create it or give another file")
        if path.exists():
            if not path.is_file():
                raise ReportError(f"--html {file}: it is not a file; give another name")
            with path.open("rb") as old:
                if old.read(len(DATABASE)) == DATABASE:
                    raise ReportError(f"--html {file}: it is a database; give another name")
    except (OSError, ValueError) as error:
        raise _unwritable(file, error) from None


def write_page(report: Report, file: str) -> str:
    """Writes the report, in place of what the file held. Returns the line that says so. Raises ReportError."""
    from runner.report.html import page  # only here: its template language is not what a text report waits for

    data = page(report).encode("utf-8", "backslashreplace")
    path = Path(file)
    try:
        target = path.resolve()  # a link stays one
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as new:
            try:
                new.write(data)
                new.close()
                os.chmod(new.name, target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask())
                os.replace(new.name, target)
            except BaseException:
                os.unlink(new.name)
                raise
    except OSError as error:
        raise _unwritable(file, error) from None
    tables = sum(len(section.tables) for section in report.sections)
    pictures = sum(len(section.pictures) for section in report.sections)
    return f"{file}: {counted(tables, 'table')}, {counted(pictures, 'picture')}, {size(len(data))}\n"


def _umask() -> int:
    """What new files are not allowed; asking is setting."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _unwritable(file: str, error: Exception) -> ReportError:
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return ReportError(f"--html {file}: {why}; give another file")
