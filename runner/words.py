"""The words that `bakeoff` recognises before Hydra: for `runner.__main__`, `bakeoff --help` and the README."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Word:
    """`usage`: what follows the word. `does`: what it is for. `module`: its `main` takes the rest of the line."""

    name: str
    usage: str
    does: str
    module: str

    @property
    def main(self) -> Callable[[Sequence[str]], int]:
        """Takes the words after this one and returns the exit code. Imported when asked for: most need no Hydra."""
        found: Callable[[Sequence[str]], int] = importlib.import_module(self.module).main
        return found


WORDS = {
    word.name: word
    for word in (
        Word("report", "[TABLE ...]", "the tables of the last sweep, or of any other", "runner.report.command"),
        Word("runs", "[--where protocol=grpc]", "a list of runs, and what became of them", "runner.history.runs"),
        Word("show", "RUN", "everything that is known of one run", "runner.history.show"),
        Word(
            "compare",
            "BASE NEW",
            "two sweeps cell by cell, and what changed between them",
            "runner.history.compare",
        ),
        Word("check", "FILE", "hold a sweep against thresholds, for CI", "runner.history.check"),
        Word("rerun", "RUN [key=value ...]", "the same again, and what is no longer the same", "runner.rerun"),
        Word(
            "export",
            "RUN --samples FILE",
            "raw samples as CSV or Parquet, histograms as a log",
            "runner.history.export",
        ),
        Word("delete", "SWEEP", "remove a sweep and its runs from the database", "runner.history.delete"),
        Word("merge", "FILE ...", "bring in another database, or a run that could not be saved", "runner.merge"),
        Word("doctor", "", "whether this machine is fit to measure, and what to change", "runner.doctor.command"),
        Word("serve", "protocol=NAME", "only the server, until Ctrl-C", "runner.serve"),
    )
}


def listed(indent: int) -> str:
    """One line for measuring and one per word: how it is used, and what for. Lines after the first are indented."""
    said = [("bakeoff [key=value ...]", "run, save, and print the tables")]
    said += [(f"bakeoff {word.name} {word.usage}".rstrip(), word.does) for word in WORDS.values()]
    width = max(len(usage) for usage, _ in said)
    return f"\n{' ' * indent}".join(f"{usage:{width}}  {does}" for usage, does in said)
