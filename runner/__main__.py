"""bakeoff: `bakeoff [key=value ...]`, or one of runner.words (`bakeoff report`). The same as `python -m runner`."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

from runner.words import WORDS

INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Does what the command line says. Returns the exit code: 0, 1 a run failed, 2 a mistake, 130 Ctrl-C."""
    argv = list(sys.argv[1:] if argv is None else argv)
    word = argv[0] if argv else ""
    try:
        if word in WORDS:
            return WORDS[word].main(argv[1:])
        from runner.application import run

        return run(argv)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def entry() -> int:
    """`main` as a whole program: once it has an exit code, nothing changes it, not even one more Ctrl-C."""
    try:
        code = main()
    except KeyboardInterrupt:  # pressed again while the first press was being answered
        code = INTERRUPTED
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return code


if __name__ == "__main__":
    sys.exit(entry())
