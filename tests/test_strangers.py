"""Strangers' clients talk to our servers: the published names, by tools that know nothing of this project.

The server is `bakeoff serve`. No client here shares a module with it: the gRPC one is a stub generated from
proto/quotes.proto, in a process of its own; the WebSocket one types what a person would type.
"""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect

ROOT = Path(__file__).parent.parent
BOUND_S = 30

GRPC_CLIENT = """
import itertools, json, queue, sys
import grpc
import quotes_pb2 as pb, quotes_pb2_grpc

seen = {}
with grpc.insecure_channel(f"127.0.0.1:{sys.argv[1]}") as channel:
    stub = quotes_pb2_grpc.QuoteServiceStub(channel)
    seen["quote"] = stub.GetQuote(pb.QuoteRequest(symbol="AAPL")).SerializeToString().hex()
    seen["quote 0"] = stub.GetQuote(pb.QuoteRequest(symbol="AAPL", seq=0)).seq
    seen["stream"] = [quote.seq for quote in stub.StreamQuotes(pb.StreamRequest(symbol="AAPL", count=5))]
    for rpc in (stub.StreamUnbounded, stub.StreamUnboundedReady):
        call = rpc(pb.SymbolRequest(symbol="AAPL"))
        seen[rpc._method.decode()] = [quote.seq for quote in itertools.islice(call, 10)]
        call.cancel()
    credits = queue.SimpleQueue()
    credits.put(pb.Credit(symbol="AAPL", n=3))
    call = stub.StreamCredited(iter(credits.get, None))
    seen["credited"] = [next(call).seq for _ in range(3)]
    credits.put(pb.Credit(n=2))
    seen["credited"] += [next(call).seq for _ in range(2)]
    credits.put(None)
    seen["credited"] += [quote.seq for quote in call]
    seen["produced"] = stub.Produced(pb.Empty()).produced
    seen["echo"] = [len(stub.Echo(pb.Body(data=bytes(size))).data) for size in (0, 1, 70_000)]
    seen["run"] = stub.Run(pb.Empty()).run
    for name, ask in (
        ("/QuoteService/Nonsense", pb.Empty().SerializeToString()),
        ("/QuoteService/StreamQuotes", pb.StreamRequest(symbol="AAPL", count=-1).SerializeToString()),
        ("/QuoteService/GetQuote", b"nonsense"),
    ):
        try:
            list(channel.unary_stream(name)(ask))
        except grpc.RpcError as error:
            seen[name] = [error.code().name, error.details()]
assert not [name for name in sys.modules if name.split(".")[0] in ("adapters", "runner")]
print(json.dumps(seen))
"""


@contextmanager
def server(protocol: str) -> Iterator[int]:
    """The port of `bakeoff serve`, which must end without a word on SIGINT."""
    process = subprocess.Popen(
        [sys.executable, "-m", "runner", "serve", f"protocol={protocol}", "limits.max_message_bytes=1048576"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        port = re.search(r"serves at 127\.0\.0\.1 port (\d+);", line)
        assert port, (line, process.communicate(timeout=BOUND_S))
        yield int(port[1])
        process.send_signal(signal.SIGINT)
        _, noise = process.communicate(timeout=BOUND_S)
        assert noise == ""
        assert process.returncode == 0
    finally:
        process.kill()
        process.wait(BOUND_S)


@pytest.fixture(scope="module")
def grpc_port() -> Iterator[int]:
    with server("grpc") as port:
        yield port


@pytest.fixture(scope="module")
def websocket_port() -> Iterator[int]:
    with server("websocket") as port:
        yield port


@asynccontextmanager
async def console(port: int) -> AsyncIterator[ClientConnection]:
    async with asyncio.timeout(BOUND_S), connect(f"ws://127.0.0.1:{port}/", proxy=None) as ws:
        yield ws


def test_a_stub_generated_from_the_proto_file_talks_to_the_grpc_server(grpc_port: int, tmp_path: Path) -> None:
    generate = ["-m", "grpc_tools.protoc", f"-I{ROOT / 'proto'}", "--python_out=.", "--grpc_python_out=."]
    subprocess.run([sys.executable, *generate, "quotes.proto"], cwd=tmp_path, check=True, timeout=BOUND_S)
    (tmp_path / "client.py").write_text(GRPC_CLIENT)

    done = subprocess.run(
        [sys.executable, "client.py", str(grpc_port)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=BOUND_S,
        env={"GRPC_VERBOSITY": "NONE"},
    )

    assert done.stderr == ""
    seen: dict[str, Any] = json.loads(done.stdout)
    malformed = seen.pop("/QuoteService/GetQuote")
    assert malformed[0] == "INVALID_ARGUMENT"
    assert seen == {
        "quote": "0a044141504c102a197b14ae47e11a5940215c8fc2f5281c5940288080abb4fef39203",
        "quote 0": 0,
        "stream": [0, 1, 2, 3, 4],
        "/QuoteService/StreamUnbounded": list(range(10)),
        "/QuoteService/StreamUnboundedReady": list(range(10)),
        "credited": [0, 1, 2, 3, 4],
        "produced": 5,
        "echo": [0, 1, 70_000],
        "run": "serve",
        "/QuoteService/Nonsense": ["UNIMPLEMENTED", "Method not found!"],
        "/QuoteService/StreamQuotes": ["INVALID_ARGUMENT", "count and delayMs must be 0 or more"],
    }


async def test_a_person_at_a_websocket_console_gets_quotes(websocket_port: int) -> None:
    async with console(websocket_port) as ws:
        await ws.send("QUOTE AAPL")
        assert (
            await ws.recv() == '{"symbol":"AAPL","seq":42,"bid":100.42,"ask":100.44,"epochMicros":1772000000000000}'
        )
        await ws.send("QUOTE AAPL 7")
        assert json.loads(await ws.recv())["seq"] == 7
        await ws.send("RUN")
        assert await ws.recv() == '{"run":"serve"}'
        await ws.send("ECHO")
        await ws.send(b"\0\xff")
        assert await ws.recv() == b"\0\xff"


async def test_a_typed_stream_ends_with_its_count(websocket_port: int) -> None:
    async with console(websocket_port) as ws:
        for command in ("STREAM AAPL 5 0", "STREAM AAPL 5", "STREAM AAPL 5 1"):
            await ws.send(command)
            assert [json.loads(await ws.recv())["seq"] for _ in range(5)] == [0, 1, 2, 3, 4]
            assert await ws.recv() == "END 5"
        await ws.send("STREAM AAPL 0")
        assert await ws.recv() == "END 0"
        await ws.send("PRODUCED")
        assert await ws.recv() == '{"produced":0}'


@pytest.mark.parametrize("command", ["UNBOUNDED AAPL", "UNBOUNDED_READY AAPL"])
async def test_stop_ends_an_endless_stream_with_the_number_of_items_sent(websocket_port: int, command: str) -> None:
    async with console(websocket_port) as ws:
        await ws.send(command)
        items = [json.loads(await ws.recv())["seq"] for _ in range(10)]
        await ws.send("STOP")
        while not str(last := await ws.recv()).startswith("END "):
            items.append(json.loads(last)["seq"])

        assert items == list(range(len(items)))
        assert last == f"END {len(items)}"
        await ws.send("QUOTE AAPL")  # the connection is as good as before
        assert json.loads(await ws.recv())["seq"] == 42


async def test_a_credited_stream_gives_exactly_what_was_paid_for(websocket_port: int) -> None:
    async with console(websocket_port) as ws:
        await ws.send("CREDITED AAPL")
        await ws.send("MORE 3")
        assert [json.loads(await ws.recv())["seq"] for _ in range(3)] == [0, 1, 2]
        await ws.send("MORE 2")
        assert [json.loads(await ws.recv())["seq"] for _ in range(2)] == [3, 4]
        await ws.send("STOP")
        assert await ws.recv() == "END 5"
        await ws.send("PRODUCED")
        assert await ws.recv() == '{"produced":5}'


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("nonsense", "ERR unknown command"),
        ("quote AAPL", "ERR unknown command"),
        ("", "ERR unknown command"),
        ('{"symbol":"AAPL"}', "ERR unknown command"),
        (b"QUOTE AAPL", "ERR unknown command"),
        ("QUOTE", "ERR invalid_argument: usage: QUOTE <symbol> [<seq>]"),
        ("QUOTE AAPL seven", "ERR invalid_argument: usage: QUOTE <symbol> [<seq>]"),
        ("STREAM AAPL", "ERR invalid_argument: usage: STREAM <symbol> <count> [<delayMs>]"),
        ("STREAM AAPL 5 0 0", "ERR invalid_argument: usage: STREAM <symbol> <count> [<delayMs>]"),
        ("STREAM AAPL -1 0", "ERR invalid_argument: count and delayMs must be 0 or more"),
        ("CREDITED", "ERR invalid_argument: usage: CREDITED <symbol>, then MORE <n>"),
        ("ECHO hello", "ERR invalid_argument: usage: ECHO, then one binary frame"),
        ("MORE 3", "ERR no credited stream"),
        ("RUN now", "ERR invalid_argument: usage: RUN"),
    ],
)
async def test_what_is_typed_wrong_is_answered_and_forgiven(
    websocket_port: int, typed: str | bytes, answer: str
) -> None:
    async with console(websocket_port) as ws:
        await ws.send(typed)
        assert await ws.recv() == answer
        await ws.send("QUOTE AAPL")
        assert json.loads(await ws.recv())["seq"] == 42


async def test_a_command_during_a_stream_is_refused_and_the_stream_goes_on(websocket_port: int) -> None:
    async with console(websocket_port) as ws:
        await ws.send("CREDITED AAPL")
        await ws.send("QUOTE AAPL")
        assert await ws.recv() == "ERR busy"
        await ws.send("MORE 1")
        assert json.loads(await ws.recv())["seq"] == 0
        await ws.send("MORE many")
        assert await ws.recv() == "ERR invalid_argument: usage: CREDITED <symbol>, then MORE <n>"
        for late in ("STOP", "MORE 1", "END 3"):  # they may cross the end of a stream: not an error
            await ws.send(late)
        await ws.send("QUOTE AAPL")
        assert json.loads(await ws.recv())["seq"] == 42


async def test_a_grant_after_another_command_belongs_to_no_stream(websocket_port: int) -> None:
    async with console(websocket_port) as ws:
        await ws.send("CREDITED AAPL")
        await ws.send("STOP")
        assert await ws.recv() == "END 0"
        await ws.send("MORE 3")  # may have crossed the END: no answer
        await ws.send("QUOTE AAPL")
        assert json.loads(await ws.recv())["seq"] == 42
        await ws.send("MORE 3")
        assert await ws.recv() == "ERR no credited stream"


async def test_a_command_in_the_middle_of_a_flood_is_answered(websocket_port: int) -> None:
    async with console(websocket_port) as ws:
        await ws.send("UNBOUNDED AAPL")
        await ws.recv()
        await ws.send("QUOTE AAPL")
        while (said := await ws.recv()) != "ERR busy":
            assert "seq" in json.loads(said)
        await ws.send("STOP")
        while not str(await ws.recv()).startswith("END "):
            pass


async def test_a_command_that_waits_for_its_body_takes_nothing_else(websocket_port: int) -> None:
    async with console(websocket_port) as ws:
        await ws.send("ECHO")
        await ws.send("hello")
        assert await ws.recv() == "ERR invalid_argument: usage: ECHO, then one binary frame"


async def test_a_frame_over_the_limit_closes_the_connection_of_who_sent_it(websocket_port: int) -> None:
    async with console(websocket_port) as ws, console(websocket_port) as other:
        await ws.send("ECHO")
        await ws.send(bytes(2**20 + 1))
        await ws.wait_closed()
        assert ws.close_code == 1009
        await other.send("QUOTE AAPL")
        assert json.loads(await other.recv())["seq"] == 42
