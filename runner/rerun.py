"""`bakeoff rerun RUN`: the overrides of a run that is in the database, again; and what is no longer the same."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence

from runner.command_line import Mistake, Parser, answer
from runner.report.changed import changes, conditions, machine, settings
from runner.report.read import open_report, sweeps
from runner.report.stored import Stored, chosen_run, stored_runs
from runner.store.located import without_password

EXAMPLES = """\
  bakeoff rerun 01M8QRN72F380                  one run, in a new sweep; the beginning of an id is enough
  bakeoff rerun 01M8QRN72F380 repeats=5        the same cell five times
  bakeoff rerun 01M8QRN72F380 --config-dir DIR   where its scenario is in a folder of yours

The sweep goes into the database that the run is in."""

# Not replayed: where results went, the suite (its line is among the overrides already), how often.
_LEFT_OUT = ("suite", "storage", "report", "repeats", "fail_fast", "plan", "hydra")


def main(argv: Sequence[str]) -> int:
    """The words after `bakeoff rerun`. Returns the exit code of the new sweep, or 2 for a mistake."""
    return answer(_parser(), argv, _answer)


def _parser() -> Parser:
    parser = Parser("rerun", "Run again what a run was, and say which conditions are no longer the same.", EXAMPLES)
    parser.add_argument("run", metavar="RUN", help="the id of a run, or its beginning")
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="what is to differ this time")
    parser.add_argument("--config-dir", metavar="DIR", help="more option files, as for bakeoff itself")
    return parser


def _answer(asked: argparse.Namespace) -> int:
    with open_report(asked.db) as connection:
        old = chosen_run(connection, asked.run)
        before = {sweep.sweep_id for sweep in sweeps(connection)}
    if wrong := [text for text in asked.overrides if "=" not in text and not text.startswith("~")]:
        raise Mistake(f"{wrong[0]}: expected key=value")
    argv = replayed(old, asked.overrides, asked.db)
    if asked.config_dir is not None:
        argv += ["--config-dir", asked.config_dir]
    print(f"again: {shlex.join(['bakeoff', *map(without_password, argv)])}\n", flush=True)
    from runner.application import run  # here: --help and mistakes come without Hydra

    code = run(argv)
    with open_report(asked.db) as connection:
        new = [sweep.sweep_id for sweep in sweeps(connection) if sweep.sweep_id not in before]
        runs = [run for sweep_id in new for run in stored_runs(connection, sweep_id=sweep_id)]
    if runs:
        print("\n".join(["", *told(old, runs)]))
    return code


def replayed(old: Stored, more: Sequence[str], db: str) -> list[str]:
    """The command line, without `bakeoff`: once, unless `more` says otherwise; results go to `db`."""
    replaced = {*_LEFT_OUT, *(_key(text) for text in more)}
    groups = {_key(text) for text in more if "." not in _key(text)}
    kept = [
        text
        for text in old.row["overrides"]
        if _key(text) not in replaced and _key(text).partition(".")[0] not in {*_LEFT_OUT, *groups}
    ]
    found = [*kept, *more]
    if not any(_key(text) == "repeats" for text in more):
        found.append("repeats=1")
    if db != "results.db":
        url = db if "://" in db else f"sqlite:///{db}"
        quoted = url.replace("\\", "\\\\").replace("'", "\\'")
        backend = url.partition(":")[0].partition("+")[0]
        found += [f"storage={backend}", f"storage.url='{quoted}'"]
    return found


def told(old: Stored, runs: Sequence[Stored]) -> list[str]:
    """What is no longer the same, one line for each kind; that everything is, if so."""
    lines = [
        f"{what} no longer the same: {', '.join(map(str, found))}"
        for what, facts in (("settings", settings), ("conditions", conditions), ("machine", machine))
        if (found := changes([facts(old)], map(facts, runs)))
    ]
    name = f"run {old.row['run_id']}"
    if not lines:
        return [f"compared with {name}: the same settings, conditions and machine"]
    return [f"compared with {name}:", *(f"  {line}" for line in lines)]


def _key(override: str) -> str:
    return override.lstrip("+~").partition("=")[0]
