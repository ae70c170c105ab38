"""What is said about a mistake: one sentence with where, what and the way out. Imports nothing of ours."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable
from typing import Any


class Refused(Exception):
    """The command line or the configuration is not to be run. `problems`: one line each, not empty."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = list(dict.fromkeys(problems))
        super().__init__("; ".join(self.problems))


def complain(problems: Iterable[str]) -> int:
    """Prints mistakes, one line each. Returns the exit code for them."""
    for problem in problems:
        print(f"bakeoff: {problem}", file=sys.stderr)
    return 2


def near(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'count'?`, or nothing where nothing is near."""
    import difflib  # here: the measured processes never need it

    found = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean '{found[0]}'?" if found else ""


def shown(value: Any) -> str:
    """A value as the configuration spells it: text in double quotes, null, true."""
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    try:
        return json.dumps(value, ensure_ascii=False)
    except TypeError:
        return repr(value)


def no_such_key(path: str, taker: str, known: Iterable[str], elsewhere: Iterable[str] = ()) -> str:
    """`operation.cuont: no such key; did you mean 'count'? (operation stream takes: count, ...)`.

    `known`: what there is at this place; `elsewhere`: the dotted keys of other places, named when one of them
    ends in exactly this word.
    """
    word, known = path.rpartition(".")[2], list(known)
    moved = next((key for key in elsewhere if key != path and key.rpartition(".")[2] == word), None)
    hint = f"; did you mean '{moved}'?" if moved else near(word, known)
    return f"{path}: no such key{hint} ({taker} takes: {', '.join(known) or 'nothing'})"


def no_such_option(group: str, option: str, options: Iterable[str]) -> str:
    """`protocol: no option 'grcp'; did you mean 'grpc'? (there are: grpc, ...)`."""
    options = sorted(options)
    return f"{group}: no option '{option}'{near(option, options)} (there are: {', '.join(options) or 'none'})"
