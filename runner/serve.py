"""`bakeoff serve`: one server in this process, for strangers' clients to talk to, until Ctrl-C."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Sequence
from pathlib import Path

from adapters.api import Address, AddressInUse
from adapters.messages import METHODS
from runner.config import Cell
from runner.host import run_loop
from runner.mistakes import Refused, complain
from runner.options import CONF, option_file, options
from runner.service import Service

USAGE = """\
usage: bakeoff serve protocol=NAME [port=7000] [host=127.0.0.1] [codec=NAME] [operation.producer=STYLE]
                     [--config-dir DIR]

Serves the quote service over one protocol in this process, until Ctrl-C. Without a port, any free one is taken
and printed. STYLE: awaited, push, gated or credited. Every key of `bakeoff --cfg job scenario=backpressure` is
understood; those about measuring mean nothing here."""

SCENARIO = "scenario=backpressure"  # the one whose operation has a producer to choose
TALK = "# Talk to it: "  # how a protocol's option file says what a stranger would type
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
    service = Service(producer=cell.operation.producer_style(), mark=cell.operation.gate_mark(), run="serve")
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
    told = next((line.removeprefix(TALK) for line in lines if line.startswith(TALK)), None)
    return f"talk to it with: {told}" if told else f"it answers {', '.join(METHODS)}"


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

    names = ", ".join(options("protocol"))
    if not any(override.startswith("protocol=") for override in overrides):
        raise Refused([f"serve: say which protocol: protocol=NAME, one of {names}"])
    cell = composed_cell([SCENARIO, *overrides], folder)
    if cell.adapter.in_process:
        raise Refused([f"protocol: {cell.protocol} has no wire to serve on; choose another of {names}"])
    return cell
