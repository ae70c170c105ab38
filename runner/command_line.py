"""What the words of `bakeoff` that only read and keep books have in common: mistakes, help and output."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

from runner.mistakes import near
from runner.report.read import ReportError
from runner.store import StoreError


class Mistake(Exception):
    """A mistake in the command line or in a file that it names: one line with the way out."""


class Parser(argparse.ArgumentParser):
    """The options of one word; `--db` is among them. `examples`: lines that --help ends with."""

    def __init__(self, word: str, description: str, examples: str) -> None:
        super().__init__(
            prog=f"bakeoff {word}",
            description=description,
            epilog=f"Examples\n{examples.rstrip()}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        self.add_argument("--db", default="results.db", metavar="PATH|URL", help="default: results.db")

    def error(self, message: str) -> NoReturn:
        prefix = "unrecognized arguments: "
        if message.startswith(prefix):
            word = message.removeprefix(prefix).split()[0]
            options = [option for action in self._actions for option in action.option_strings]
            message = f"{word}: not understood{near(word, options)}"
        raise Mistake(f"{message} ({self.prog} --help)")


def answer(parser: Parser, argv: Sequence[str], do: Callable[[argparse.Namespace], int]) -> int:
    """What `do` returns for the words `argv`; 2, with one line on stderr, for a mistake."""
    try:
        return do(parser.parse_intermixed_args(argv))
    except SystemExit as leaving:  # --help
        return int(leaving.code or 0)
    except (Mistake, ReportError, StoreError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2


def write(text: str) -> None:
    """Prints in UTF-8, whatever the locale says. A reader that has seen enough (`| head`) is no failure."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(encoding="utf-8", newline="\n")
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
