"""What the tests of the report share: a database in the current folder, and what `bakeoff report` prints of it."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import pytest

from runner.report.command import main
from runner.store import RunRecord
from tests import golden_db

DB = "results.db"


class Reporter:
    """`bakeoff report` in a folder of its own, with a terminal of a given width."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self._capsys = capsys
        self._monkeypatch = monkeypatch
        self.path = folder / DB
        monkeypatch.chdir(folder)
        self.width(120)

    def width(self, columns: int) -> None:
        self._monkeypatch.setenv("COLUMNS", str(columns))

    def write(self, runs: Sequence[RunRecord], number: int = 1, **sweep: Any) -> str:
        return golden_db.write_sweep(self.path, runs, number, **sweep)

    def __call__(self, *argv: str) -> str:
        """What is printed; the command must succeed without a word on stderr."""
        code = main(list(argv))
        printed = self._capsys.readouterr()
        assert (code, printed.err) == (0, "")
        return printed.out

    def refused(self, *argv: str) -> str:
        """The one line of a command that must be refused."""
        code = main(list(argv))
        printed = self._capsys.readouterr()
        assert (code, printed.out) == (2, "")
        assert printed.err.count("\n") == 1
        return printed.err.rstrip("\n")

    def lines(self, *argv: str) -> list[str]:
        return self(*argv).splitlines()

    def rows(self, table: str, *argv: str) -> list[dict[str, str]]:
        """The rows of the CSV."""
        return list(csv.DictReader(io.StringIO(self(table, "--format", "csv", *argv))))

    def json(self, *argv: str) -> Any:
        """What a strict parser makes of the JSON."""
        return json.loads(self(*argv, "--format", "json"), parse_constant=_refuse)

    def notes(self, table: str, *argv: str) -> list[str]:
        """The sentences under the table."""
        [found] = self.json(table, *argv)["sweeps"][-1]["tables"]
        notes: list[str] = found["notes"]
        return notes


def _refuse(constant: str) -> NoReturn:
    raise AssertionError(f"{constant} is not JSON")
