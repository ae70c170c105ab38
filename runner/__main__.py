"""bakeoff: `bakeoff [key=value ...]`, `bakeoff report`, `bakeoff serve`. The same as `python -m runner`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Does what the command line says. Returns the exit code: 0, 1 a run failed, 2 a mistake, 130 Ctrl-C."""
    argv = list(sys.argv[1:] if argv is None else argv)
    word = argv[0] if argv else ""
    try:
        # Each word imports only what it needs: `report` and `serve --help` come without Hydra.
        if word == "report":
            from runner.report.command import main as report

            return report(argv[1:])
        if word == "serve":
            from runner.serve import main as serve

            return serve(argv[1:])
        from runner.application import run

        return run(argv)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


if __name__ == "__main__":
    sys.exit(main())
