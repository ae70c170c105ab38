"""The Hydra application: command line in, exit code out. `runner.__main__` decides whether it is asked at all."""

from __future__ import annotations

import argparse
import io
import math
import os
import shlex
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from hydra import compose, initialize_config_module, version
from hydra._internal.utils import _run_hydra, get_args_parser
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Quote, QuotedString
from hydra.errors import OverrideParseException
from omegaconf import OmegaConf

from runner.config import Cell
from runner.hydra_errors import MISTAKES, one_line
from runner.job import PATIENCE_S, Job, SweepResult
from runner.mistakes import Refused, complain, near
from runner.options import CONF, options
from runner.sweep import Combination, plan
from runner.words import WORDS, listed
from runner.yaml_files import refuse_bad_files

EXT = str(Path(__file__).parent / "_ext")
FULL_ERROR = "HYDRA_FULL_ERROR"
HELP_INDENT = 7  # of the usage lines in conf/hydra/help
_FIXED = {
    "hydra.mode": "every run is a sweep here",
    "hydra/sweeper": "bakeoff plans its sweeps itself",
    "hydra.sweep.dir": "bakeoff keeps nothing there",
}


def run(argv: Sequence[str]) -> int:
    """What `bakeoff ARGV` does, errors included: one line each on stderr."""
    asked_for_traceback = os.environ.get(FULL_ERROR) == "1"
    try:
        return _run(argv)
    except Refused as exc:
        if asked_for_traceback:
            raise
        return complain(exc.problems)
    except MISTAKES as exc:
        if asked_for_traceback:
            raise
        return complain([one_line(exc)])


def _run(argv: Sequence[str]) -> int:
    if "--version" in argv:
        from importlib.metadata import version as version_of

        print(f"bakeoff {version_of('bakeoff')}, Hydra {version_of('hydra-core')}")
        return 0
    parser = get_args_parser()
    args = arguments(parser, argv)
    folders = [Path(args.config_dir)] if args.config_dir is not None else []
    if not args.shell_completion:
        refuse_bad_files(*folders)
    if args.help:
        list_options(*folders)
    if args.help or args.hydra_help or args.cfg or args.info or args.shell_completion:
        return _hydra(args, parser, Job([]))
    for_hydra, overrides = split_overrides(args.overrides)
    job = Job(overrides, command=shlex.join(["bakeoff", *argv]))
    with _stoppable():
        with tempfile.TemporaryDirectory(prefix="bakeoff-") as scratch:
            args.run, args.multirun = False, True
            args.overrides = [f"hydra.sweep.dir={_quoted(scratch)}", *for_hydra]
            code = _hydra(args, parser, job)
        return finish(job.result) if job.result is not None else code


def list_options(*folders: Path) -> None:
    """Lets the help text say ${options:GROUP} and ${words:}."""
    OmegaConf.register_new_resolver("words", lambda *_: listed(HELP_INDENT), replace=True)
    OmegaConf.register_new_resolver(
        "options", lambda group: ", ".join(options(group, (CONF, *folders))), replace=True
    )


def arguments(parser: argparse.ArgumentParser, argv: Sequence[str]) -> argparse.Namespace:
    """Hydra's own options. Raises Refused for any other."""
    parser.exit_on_error = False
    try:
        args, unknown = parser.parse_known_intermixed_args(list(argv))
    except argparse.ArgumentError as exc:
        raise Refused([f"{exc} (bakeoff --help lists the options)"]) from None
    known = [option for action in parser._actions for option in action.option_strings]
    if unknown:
        raise Refused(f"{word}: no such option{near(word, known)} (bakeoff --help lists them)" for word in unknown)
    if args.experimental_rerun is not None:
        raise Refused(["--experimental-rerun: not here; every run's overrides are in results.db (run.overrides)"])
    return args


def split_overrides(texts: Sequence[str]) -> tuple[list[str], list[str]]:
    """Those that Hydra needs before any cell is composed (its own keys, the suite), and the others.

    Raises Refused with everything that cannot be read.
    """
    parser = OverridesParser.create()
    for_hydra, others, problems = [], [], []
    for text in texts:
        try:
            (override,) = parser.parse_overrides([text])
        except OverrideParseException as exc:
            problems.append(one_line(exc) + ("" if "=" in text else near(text, WORDS)))
            continue
        key = override.key_or_group
        if key == "hydra.searchpath" and isinstance(paths := override.value(), list):
            refuse_bad_files(*(Path(str(path).removeprefix("file://")) for path in paths if "file://" in str(path)))
        if key in _FIXED:
            problems.append(f"{key}: {_FIXED[key]}; leave it out")
        elif key == "suite" and override.is_sweep_override():
            problems.append(f"{text}: one suite at a time; start bakeoff once for each")
        elif override.is_hydra_override() or key == "suite":
            for_hydra.append(text)
        else:
            others.append(text)
    if problems:
        raise Refused(problems)
    return for_hydra, others


def find_plugins() -> None:
    """Lets Hydra find our sweeper. It looks for plugins once, when it is first used."""
    if EXT not in sys.path:
        sys.path.append(EXT)


def _hydra(args: argparse.Namespace, parser: argparse.ArgumentParser, job: Job) -> int:
    find_plugins()
    version.setbase("1.3")
    with _raising():
        try:
            _run_hydra(
                args=args,
                args_parser=parser,
                task_function=job,
                config_path="pkg://conf",
                config_name="config",
            )
        except SystemExit as exc:  # how Hydra leaves after --help
            return exc.code if isinstance(exc.code, int) else int(exc.code is not None)
    return 0


@contextmanager
def _raising() -> Iterator[None]:
    """Hydra raises its errors instead of printing them and leaving."""
    before = os.environ.get(FULL_ERROR)
    os.environ[FULL_ERROR] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[FULL_ERROR]
        else:
            os.environ[FULL_ERROR] = before


@contextmanager
def _stoppable() -> Iterator[None]:
    """Ctrl-C and SIGTERM raise KeyboardInterrupt: processes closed, finished runs saved, Hydra's folder removed.

    Presses within PATIENCE_S are one: a hasty second one would hit the cleaning up after the first.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed_at = -math.inf

    def press(signum: int, frame: FrameType | None) -> None:
        nonlocal pressed_at
        now = time.monotonic()
        if now - pressed_at >= PATIENCE_S:
            pressed_at = now
            raise KeyboardInterrupt

    before = {number: signal.signal(number, press) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)


def finish(result: SweepResult) -> int:
    """Prints the report of a sweep and what went wrong in it. Returns the exit code."""
    from runner.report import command
    from runner.report.read import ReportError
    from runner.store import StoreError

    lines = [*result.trouble]
    if result.outcomes:
        try:
            text = command.sweep_report(result.url, result.sweep_id)
            show(text)
            if result.report is not None:
                Path(result.report).write_text(text, encoding="utf-8")
        except (StoreError, ReportError, OSError) as exc:
            lines.append(f"the report could not be given: {exc}")
    lines += [f"failed: {title}: {outcome.reason}" for title, outcome in result.failed()]
    if result.outcomes and all(outcome.verdict == "unsupported" for _, outcome in result.outcomes):
        lines.append(f"no run was good: {result.outcomes[0][1].reason}")
    left = result.planned - len(result.outcomes)
    if result.interrupted:
        lines.append(f"interrupted: {left} of {result.planned} runs were not started; the others are saved")
    elif left:
        lines.append(f"fail_fast: {left} of {result.planned} runs were not started")
    for line in lines:
        print(line, file=sys.stderr)
    if result.interrupted:
        return 130
    return 1 if lines else 0


def show(text: str) -> None:
    """Prints in UTF-8, whatever the locale says. A reader that has seen enough (`| head`) is no failure."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def composed_cell(overrides: Sequence[str], config_dir: Path | None) -> Cell:
    """The one cell that `overrides` describe. Raises Refused."""
    find_plugins()
    refuse_bad_files(*([config_dir] if config_dir is not None else []))
    for_hydra, others = split_overrides(overrides)
    if config_dir is not None:
        for_hydra.append(f"hydra.searchpath=[{_quoted(f'file://{config_dir.absolute()}')}]")
    parser = OverridesParser.create()
    if several := [o.input_line for o in parser.parse_overrides(list(others)) if o.is_sweep_override()]:
        raise Refused(f"{text}: give one value" for text in several)
    try:
        with initialize_config_module("conf", version_base="1.3"):
            wanted = [Combination((*for_hydra, *others))]
            return plan(wanted, lambda texts: compose("config", list(texts)))[0].cell
    except MISTAKES as exc:
        raise Refused([one_line(exc)]) from exc


def _quoted(text: str) -> str:
    """As Hydra's command line takes any text."""
    return QuotedString(text, Quote.single).with_quotes()
