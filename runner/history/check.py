"""`bakeoff check FILE`: thresholds for CI. Every broken rule is listed, and one that matches nothing is broken."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from runner.command_line import Mistake, Parser, answer, write
from runner.history.compare import REFERENCE, opened
from runner.report.figures import counted
from runner.report.judge import Judged, judged
from runner.report.pairs import Measured, paired
from runner.report.thresholds import Misstated, Rule, rules

EXAMPLES = """\
  bakeoff check conf/thresholds/example.yaml
  bakeoff check thresholds.yaml --baseline last~1         ratios against the sweep before
  bakeoff check thresholds.yaml --sweep 01M8QRN6RTB80 --baseline released.db

A rule is one of
  - p99_us < 2000                          the median of the good runs of every cell that measures it
  - p50_us ratio < 1.10 with 95 %          against the same cell of the baseline: all of the 95 % interval (from 5
                                           runs on each side); without `with 95 %` only the ratio of the medians
  - bounded_by = demand                    a finding, condition, setting or column, in every run
and as `rule: ...` it may have `where: {protocol: [grpc, rsocket]}` and `name: ...` beside it.

Exit codes: 0 all rules hold; 1 a rule is broken, or matches nothing; 2 a mistake in file or command line."""


def main(argv: Sequence[str]) -> int:
    """The words after `bakeoff check`. Returns the exit code: 0, 1 a rule is broken, 2 a mistake."""
    return answer(_parser(), argv, _answer)


def _parser() -> Parser:
    parser = Parser("check", "Hold a sweep against thresholds: the last one, unless told otherwise.", EXAMPLES)
    parser.add_argument("file", metavar="FILE", help="the thresholds, in YAML")
    parser.add_argument("--sweep", default="last", metavar="ID", help=REFERENCE)
    parser.add_argument("--baseline", metavar="ID|FILE", help="what ratios are taken against: likewise")
    return parser


def _answer(asked: argparse.Namespace) -> int:
    wanted = read(asked.file)
    for number, rule in enumerate(wanted, 1):
        if rule.relative and asked.baseline is None:
            raise Mistake(f"{asked.file}: rule {number}: {rule.text!r} needs a baseline; add --baseline last~1")
    with ExitStack() as stack:
        new = stack.enter_context(opened(asked.sweep, asked.db))
        base = stack.enter_context(opened(asked.baseline, asked.db)) if asked.baseline is not None else None
        found = [judged(rule, new, base) for rule in wanted]
        write("\n".join(told(found, new, base)) + "\n")
    return 1 if any(one.broken for one in found) else 0


def read(file: str) -> list[Rule]:
    """The rules of a file. Raises Mistake."""
    try:
        return rules(Path(file).read_text(encoding="utf-8"), file)
    except FileNotFoundError:
        raise Mistake(f"{file}: there is no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise Mistake(f"{file}: cannot be read ({getattr(error, 'strerror', None) or 'not UTF-8'})") from None
    except Misstated as error:
        raise Mistake(str(error)) from None


def told(found: Sequence[Judged], new: Measured, base: Measured | None) -> list[str]:
    """What is printed: each rule, under it the cells that break it."""
    lines = [new.title]
    if base is not None:
        lines.append(f"baseline: {base.title}")
        if differs := paired(base, new).machine:
            lines.append(f"the environment is not the same: {'; '.join(map(str, differs))}")
    for one in found:
        named = f"{one.rule.name}: " if one.rule.name else ""
        where = f" (where {' and '.join(map(str, one.rule.where))})" if one.rule.where else ""
        text = f"{named}{one.rule.text}{where}"
        if one.broken:
            lines += [f"broken  {text}", *(f"          {line}" for line in one.broken)]
        else:
            lines.append(f"holds   {text}: {counted(one.held, 'cell')}")
    broken = sum(bool(one.broken) for one in found)
    lines.append(
        f"{broken} of {counted(len(found), 'rule')} broken"
        if broken
        else f"all of {counted(len(found), 'rule')} hold"
    )
    return lines
