"""`bakeoff serve`: says where and how, ends cleanly, refuses a taken port."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from adapters.api import Address
from adapters.messages import METHODS, QuoteRequest
from runner.__main__ import main
from runner.options import CONF, options
from runner.quotes import quote
from runner.serve import TALK, serve, talk
from tests.cells import cell

CHILD_S = 30.0  # a bound, not an expectation
WIRES = [name for name in options("protocol") if not cell("request_response", name).adapter.in_process]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_server_says_where_it_is_and_ends_with_0(number: int, tmp_path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-m", "runner", "serve", "protocol=tcp", "codec=json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    try:
        assert child.stdout is not None
        line = child.stdout.readline()
        child.send_signal(number)
        rest, err = child.communicate(timeout=CHILD_S)
    finally:
        child.kill()
        child.wait()

    assert line.startswith("tcp (asyncio, json) serves at 127.0.0.1 port ")
    assert line.endswith("; Ctrl-C ends it\n")
    assert (child.returncode, rest, err) == (0, "", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("protocol", WIRES)
def test_a_taken_port_is_one_line(protocol: str, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        assert main(["serve", f"protocol={protocol}", f"port={port}"]) == 2
    assert capsys.readouterr().err == (
        f"bakeoff: port: port {port} on 127.0.0.1 is taken by another process; "
        "choose another, or 0 for any free one\n"
    )


async def test_a_loop_without_signal_handlers_still_serves(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As on Windows."""

    def refuse(*args: object) -> None:
        raise NotImplementedError

    monkeypatch.setattr(asyncio.get_running_loop(), "add_signal_handler", refuse)
    checked = cell("backpressure", "tcp")
    serving = asyncio.create_task(serve(checked, "at {host}:{port}"))
    said = ""
    async with asyncio.timeout(CHILD_S):
        while not said:
            await asyncio.sleep(0.01)
            said = capsys.readouterr().out
        port = int(said.split()[7].rstrip(";"))
        async with checked.adapter.connect(Address("127.0.0.1", port)) as peer:
            assert await peer.unary(METHODS["quote"], QuoteRequest("AAPL")) == quote("AAPL", 42)
    serving.cancel()
    await asyncio.wait([serving], timeout=CHILD_S)

    assert serving.cancelled()
    assert said == f"tcp (asyncio, protobuf) serves at 127.0.0.1 port {port}; at 127.0.0.1:{port}; Ctrl-C ends it\n"


@pytest.mark.parametrize("protocol", WIRES)
def test_every_protocol_with_a_wire_says_how_to_talk_to_it(protocol: str) -> None:
    told = TALK.fullmatch((CONF / "protocol" / f"{protocol}.yaml").read_text().splitlines()[1])

    assert told is not None
    assert "{port}" in told[2]
    assert talk(cell("backpressure", protocol, told[1] or "default"), (CONF,)) == f"talk to it with: {told[2]}"


@pytest.mark.parametrize(
    ("protocol", "codec", "needed"), [("rsocket", "default", "json"), ("grpc", "json", "protobuf")]
)
def test_a_hint_that_another_codec_needs_names_that_codec(protocol: str, codec: str, needed: str) -> None:
    how = talk(cell("backpressure", protocol, codec), (CONF,))

    assert how == f"start with codec={needed} to talk by hand"


def test_a_users_own_protocol_without_that_line_names_the_methods(tmp_path: Path) -> None:
    assert talk(cell("backpressure", "loopback"), (tmp_path,)).startswith("it answers quote, quotes, ")


def test_a_users_own_option_can_be_served(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "protocol").mkdir()
    (tmp_path / "protocol" / "mine.yaml").write_text("name: mine\n_target_: adapters.tcp.Tcp\n")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        words = ["protocol=mine", "--config-dir", str(tmp_path), f"port={taken.getsockname()[1]}"]

        assert main(["serve", *words]) == 2
    assert "is taken by another process" in capsys.readouterr().err


def test_serve_has_a_help_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--help"]) == 0
    assert capsys.readouterr().out.startswith("usage: bakeoff serve protocol=NAME")
