"""What the tests of the words share: results.db of the hand-written sweeps, and what a command line prints."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from runner.__main__ import main
from runner.store import RunRecord
from tests import golden_db


class Bakeoff:
    """`bakeoff WORD ...` in a folder of its own."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self._capsys = capsys
        self.folder = folder
        self.path = folder / "results.db"
        monkeypatch.chdir(folder)
        monkeypatch.setenv("COLUMNS", "120")

    def write(self, runs: Sequence[RunRecord], number: int = 1, path: Path | None = None, **sweep: Any) -> str:
        return golden_db.write_sweep(path or self.path, runs, number, **sweep)

    def __call__(self, *argv: str, code: int = 0) -> str:
        """What is printed; the command must not say a word on stderr."""
        ended = main(list(argv))
        printed = self._capsys.readouterr()
        assert (ended, printed.err) == (code, "")
        return printed.out

    def refused(self, *argv: str) -> str:
        """The one line of a command that must be refused, without the name of the word."""
        ended = main(list(argv))
        printed = self._capsys.readouterr()
        assert (ended, printed.out) == (2, "")
        assert printed.err.count("\n") == 1
        return printed.err.removeprefix(f"bakeoff {argv[0]}: ").rstrip("\n")

    def lines(self, *argv: str, code: int = 0) -> list[str]:
        return self(*argv, code=code).splitlines()

    def rows(self, *argv: str) -> list[dict[str, str]]:
        """The rows of the CSV."""
        return list(csv.DictReader(io.StringIO(self(*argv, "--format", "csv"))))

    def json(self, *argv: str) -> Any:
        return json.loads(self(*argv, "--format", "json"))
