"""`bakeoff serve`: one server in this process, for strangers' clients to talk to, until Ctrl-C."""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
from collections.abc import Sequence
from pathlib import Path

from adapters.api import Adapter, Address, AddressInUse
from adapters.messages import METHODS
from runner.blocking import served_by
from runner.build import locate
from runner.config import Cell
from runner.host import run_loop
from runner.mistakes import Refused, complain, near
from runner.options import CONF, option, option_file, options

USAGE = """\
usage: bakeoff serve protocol=NAME [port=7000] [host=127.0.0.1] [codec=NAME] [operation.producer=STYLE]
                     [--config-dir DIR]

Serves the quote service over one protocol in this process, until Ctrl-C. Without a port, any free one is taken
and printed. STYLE: awaited, push, gated or credited. Every key of `bakeoff --cfg job scenario=backpressure` is
understood; those about measuring mean nothing here."""

SCENARIO = "scenario=backpressure"  # the one whose operation has a producer to choose
# How a protocol's option file says what a stranger would type, and with which codec alone that works:
# "# Talk to it: curl ..." or "# Talk to it (codec=json): rsc ..."
TALK = re.compile(r"# Talk to it(?: \(codec=(\w+)\))?: (.+)")
SIGNALS = (signal.SIGINT, signal.SIGTERM)


def main(argv: Sequence[str]) -> int:
    """The words after `bakeoff serve`. Returns the exit code: 0 after Ctrl-C, 2 for a mistake or a taken port."""
    if "--help" in argv or "-h" in argv:
        print(USAGE)
        return 0
    try:
        folder, overrides = _split(argv)
        cell = _cell(overrides, folder)
        how = talk(cell, (CONF, folder) if folder else (CONF,))
        with contextlib.suppress(KeyboardInterrupt):  # where the loop cannot be given a signal handler
            run_loop(serve(cell, how), cell.loop)
    except Refused as exc:
        return complain(exc.problems)
    return 0


async def serve(cell: Cell, how: str) -> None:
    """Serves until SIGINT or SIGTERM; says where, and `how` to talk to it. Raises Refused for a taken port."""
    service = served_by(cell.adapter, cell.operation, "serve")
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        with contextlib.suppress(NotImplementedError):  # Windows; Ctrl-C then ends the loop itself
            loop.add_signal_handler(number, stop.set)
    try:
        async with cell.adapter.serve(service, Address(cell.host, cell.port)) as served:
            host, port = served.address
            line = f"{cell.protocol} ({cell.adapter.engine}, {cell.codec}) serves at {host} port {port}; "
            print(line + how.replace("{host}", host).replace("{port}", str(port)) + "; Ctrl-C ends it", flush=True)
            await stop.wait()
    except AddressInUse as exc:
        raise Refused([f"port: {exc}; choose another, or 0 for any free one"]) from exc
    except OSError as exc:
        raise Refused([f"host: cannot listen at {cell.host} port {cell.port}: {exc.strerror or exc}"]) from exc


def talk(cell: Cell, folders: tuple[Path, ...]) -> str:
    """What a stranger would type, with {host} and {port} to be filled in; the methods where nobody has said it."""
    file = option_file("protocol", cell.protocol, folders)
    lines = file.read_text(encoding="utf-8").splitlines() if file else []
    told = next(filter(None, map(TALK.fullmatch, lines)), None)
    if told is None:
        return f"it answers {', '.join(METHODS)}"
    if told[1] not in (None, cell.codec):
        return f"start with codec={told[1]} to talk by hand"
    return f"talk to it with: {told[2]}"


def _split(words: Sequence[str]) -> tuple[Path | None, list[str]]:
    """--config-dir and its value, and the other words. Raises Refused for any other option."""
    folder: Path | None = None
    overrides = []
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if name in ("--config-dir", "-cd"):
            folder = Path(value if equals else next(rest, ""))
        elif word.startswith("-"):
            raise Refused([f"{word}: no such option (bakeoff serve --help)"])
        else:
            overrides.append(word)
    return folder, overrides


def _cell(overrides: Sequence[str], folder: Path | None) -> Cell:
    """The cell whose adapter is to serve. Raises Refused."""
    from runner.application import composed_cell  # here: --help comes without Hydra

    problems = [f"{word}: expected key=value{_meant(word)}" for word in overrides if not _is_override(word)]
    if problems:
        raise Refused(problems)
    if not any(override.startswith("protocol=") for override in overrides):
        raise Refused([f"serve: say which protocol: protocol=NAME, one of {', '.join(_wires())}"])
    cell = composed_cell([SCENARIO, *overrides], folder)
    if cell.adapter.in_process:
        raise Refused([f"protocol: {cell.protocol} has no wire to serve on; choose one of {', '.join(_wires())}"])
    return cell


def _is_override(word: str) -> bool:
    return "=" in word or word.startswith("~")


def _meant(word: str) -> str:
    named = near(word, options("protocol")).replace("'", "protocol=", 1).replace("'", "")
    return named or " (bakeoff serve --help)"


def _wires() -> list[str]:
    """Our protocols that a stranger could talk to."""
    names = []
    for name in options("protocol"):
        kind = locate("", (option("protocol", name) or {}).get("_target_"), Adapter, [])
        if kind is None or not kind.in_process:  # one whose library is missing says so when it is chosen
            names.append(name)
    return names
