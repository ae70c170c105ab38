"""Servers that are pools of threads: how many calls run at once, how many connections are held, how they end."""

from __future__ import annotations

import asyncio
import http.client
import json
import subprocess
import sys
import threading
import time
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from typing import Any

import pytest

from adapters.api import Adapter, ConnectionLost, Message, Method
from adapters.http import Http
from adapters.http_threads import HttpThreads
from adapters.messages import METHODS, QuoteRequest, SymbolRequest
from runner.blocking import BlockingService, WorkingBlockingService
from runner.config import check
from runner.engine import run
from runner.quotes import quote
from runner.service import Service
from runner.store.record import RunRecord
from runner.tcp import tcp_queues
from tests.cells import cell, config
from tests.http_strangers import ANY_PORT, fetch, still, until

QUOTE = METHODS["quote"]
THREADS = ["grpc_threads", "http_threads"]
BOUND_S = 20


def adapter(protocol: str, **knobs: Any) -> Adapter:
    return cell("request_response", protocol, protocol_=knobs).adapter


def execute(protocol: str, **parts: Any) -> RunRecord:
    return run(cell("request_response", protocol, **parts), sweep_id="S", repeat=1, position=1, overrides=[])


class Counting(BlockingService):
    """Counts the quotes it is making. None is done before `together` were under way."""

    def __init__(self, together: int) -> None:
        super().__init__()
        self._lock, self._met = threading.Lock(), threading.Event()
        self._together = together
        self.under_way = self.peak = self.served = 0

    def unary(self, method: Method, request: Message) -> Message:
        with self._lock:
            self.under_way += 1
            self.peak = max(self.peak, self.under_way)
            if self.under_way == self._together:
                self._met.set()
        self._met.wait(BOUND_S)
        with self._lock:
            self.under_way -= 1
            self.served += 1
        return super().unary(method, request)


async def calls(protocol: Adapter, service: BlockingService, connections: int, each: int) -> None:
    """`each` quotes over each of the connections, all connections at once."""
    async with asyncio.timeout(BOUND_S), AsyncExitStack() as stack:
        server = await stack.enter_async_context(protocol.serve(service, ANY_PORT))
        peers = [await stack.enter_async_context(protocol.connect(server.address)) for _ in range(connections)]

        async def some(peer: Any) -> None:
            for _ in range(each):
                assert await peer.unary(QUOTE, QuoteRequest("AAPL")) == quote("AAPL", 42)

        await asyncio.gather(*map(some, peers))
        queues = tcp_queues(server.address.port, local=True)
        assert queues is not None
        assert len(queues) == connections


@pytest.mark.parametrize("workers", [1, 3, 20])
@pytest.mark.parametrize("protocol", THREADS)
async def test_as_many_calls_run_at_once_as_there_are_workers(
    protocol: str, workers: int, caplog: pytest.LogCaptureFixture
) -> None:
    service = Counting(together=workers)
    await calls(adapter(protocol, workers=workers), service, connections=25, each=2)

    assert service.peak == workers
    assert service.served == 50
    assert caplog.records == []  # waitress would warn of each request that finds no thread free


@pytest.mark.parametrize("protocol", THREADS)
async def test_one_worker_serves_one_call_at_a_time_whoever_asks(protocol: str) -> None:
    """25 connections ask for 50 quotes that take 20 ms each (the test's own delay): one after another."""
    service = WorkingBlockingService(service_time_ms=20)
    began = time.monotonic()
    await calls(adapter(protocol, workers=1), service, connections=25, each=2)

    assert time.monotonic() - began >= 50 * 0.02
    assert service.peak_in_flight == 1


@pytest.mark.parametrize("protocol", THREADS)
async def test_streams_that_were_left_give_their_threads_back(protocol: str) -> None:
    """Twenty streams over a pool of ten: half run until nobody reads on, half wait for a thread. All are left; then
    the whole pool answers.
    """
    workers, method, request = 10, METHODS["quotes.unbounded"], SymbolRequest("A" * 65_536)
    threads, service = adapter(protocol, workers=workers), Counting(together=workers)
    async with asyncio.timeout(BOUND_S), AsyncExitStack() as stack:
        server = await stack.enter_async_context(threads.serve(service, ANY_PORT))
        left = AsyncExitStack()
        peers = [await left.enter_async_context(threads.connect(server.address)) for _ in range(2 * workers)]
        streams = [peer.server_stream(method, request) for peer in peers]
        firsts = [asyncio.create_task(anext(stream)) for stream in streams]
        await until(lambda: sum(first.done() for first in firsts) >= workers)
        await still(lambda: service.produced)
        assert sum(first.done() for first in firsts) == workers  # the others have no thread
        for first in firsts:
            first.cancel()
        await asyncio.wait(firsts)
        for stream in streams:
            await stream.aclose()
        others = [await stack.enter_async_context(threads.connect(server.address)) for _ in range(workers)]
        async with asyncio.timeout(5):
            asked = [peer.unary(QUOTE, QuoteRequest("AAPL")) for peer in others]
            assert await asyncio.gather(*asked) == [quote("AAPL", 42)] * workers
        assert service.peak == workers
        await left.aclose()


@pytest.mark.parametrize("protocol", THREADS)
def test_the_size_of_the_pool_is_stored_with_the_run(protocol: str) -> None:
    asked = {"count": 50, "service_time_ms": 1}
    record = execute(protocol, protocol_={"workers": 1}, load_={"connections": 25}, operation_=asked)

    assert (record.verdict, record.reason, record.errors) == ("ok", "", {})
    assert record.measurements["n"] == (50, "calls")
    assert record.variant == "workers=1"
    assert (record.conditions["model"], record.conditions["workers"]) == ("threads", 1)
    assert record.conditions["peers_seen"] == 25


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_an_event_loop_has_no_pool(protocol: str) -> None:
    """And 25 connections are 25, also those that a library would rather share."""
    record = execute(protocol, load_={"connections": 25}, operation_={"count": 50})

    assert (record.verdict, record.reason) == ("ok", "")
    assert (record.conditions["model"], record.conditions["workers"]) == ("event loop", None)
    assert record.conditions["peers_seen"] == 25


def test_three_hundred_connections_are_served_where_the_library_would_stop_at_a_hundred() -> None:
    record = execute("http_threads", load_={"connections": 300}, operation_={"count": 600, "warmup": 300})

    assert (record.verdict, record.reason, record.errors) == ("ok", "", {})
    assert record.conditions["peers_seen"] == 300
    assert record.measurements["n"] == (600, "calls")


@pytest.mark.parametrize("protocol", THREADS)
@pytest.mark.parametrize("workers", [0, -1, "many"])
def test_a_pool_of_no_threads_is_refused(protocol: str, workers: Any) -> None:
    _, problems = check(config("request_response", protocol, protocol_={"workers": workers}))

    assert len(problems) == 1
    assert problems[0].startswith("protocol.workers: ")


@pytest.mark.parametrize("shape", ["single", "batched", "per_record"])
@pytest.mark.parametrize("operation", ["upload", "download"])
@pytest.mark.parametrize("protocol", THREADS)
def test_records_go_both_ways_in_every_shape(protocol: str, operation: str, shape: str) -> None:
    target = cell(operation, protocol, operation_={"shape": shape})
    record = run(target, sweep_id="S", repeat=1, position=1, overrides=[])

    assert (record.verdict, record.reason) == ("ok", "")
    assert record.measurements["records"][0] == 2500
    assert record.measurements["messages"][0] == {"single": 1, "batched": 3, "per_record": 2500}[shape]


# The end


@pytest.mark.parametrize("protocol", THREADS)
async def test_the_end_does_not_wait_for_a_thread_that_is_busy(protocol: str) -> None:
    entered, done = threading.Event(), threading.Event()

    class Stuck(BlockingService):
        def unary(self, method: Method, request: Message) -> Message:
            entered.set()
            done.wait(60)
            return super().unary(method, request)

    served = adapter(protocol, workers=2)
    try:
        async with asyncio.timeout(BOUND_S):
            async with AsyncExitStack() as stack:
                serving = served.serve(Stuck(), ANY_PORT)
                server = await serving.__aenter__()
                peer = await stack.enter_async_context(served.connect(server.address))
                call = asyncio.create_task(peer.unary(QUOTE, QuoteRequest("AAPL")))
                await asyncio.to_thread(entered.wait, BOUND_S)
                await serving.__aexit__(None, None, None)
                with pytest.raises(ConnectionLost):
                    await call
    finally:
        done.set()


BUSY = """
import asyncio, sys
from adapters.api import Address
from adapters.messages import METHODS, QuoteRequest
from runner.blocking import WorkingBlockingService
from tests.cells import cell

async def main():
    adapter = cell("request_response", sys.argv[1]).adapter
    async with adapter.serve(WorkingBlockingService(service_time_ms=600_000), Address("127.0.0.1", 0)) as server:
        async with adapter.connect(server.address) as peer:
            call = asyncio.create_task(peer.unary(METHODS["quote"], QuoteRequest("AAPL")))
            await asyncio.sleep(0.3)
            call.cancel()
            await asyncio.wait([call])

asyncio.run(main())
print("ended")
"""


@pytest.mark.parametrize("protocol", THREADS)
def test_the_process_ends_while_a_thread_sleeps(protocol: str) -> None:
    root = Path(__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-c", BUSY, protocol], cwd=root, capture_output=True, text=True, timeout=60
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "ended\n", "")


async def test_the_end_also_comes_to_a_thread_that_waits_for_a_reader() -> None:
    before = {thread for thread in threading.enumerate() if thread.name.startswith("waitress")}
    served, service = adapter("http_threads", workers=2, write_limit=100_000), BlockingService()
    async with asyncio.timeout(BOUND_S), AsyncExitStack() as stack:
        serving = served.serve(service, ANY_PORT)
        server = await serving.__aenter__()
        peer = await stack.enter_async_context(served.connect(server.address))
        items = peer.server_stream(METHODS["quotes.unbounded"], SymbolRequest("AAPL"))
        assert (await anext(items)).seq == 0
        await still(lambda: service.produced)
        await serving.__aexit__(None, None, None)
        await items.aclose()
    for thread in threading.enumerate():
        if thread.name.startswith("waitress") and thread not in before:
            await asyncio.to_thread(thread.join, BOUND_S)
            assert not thread.is_alive()


# REST in threads


@pytest.mark.parametrize(
    ("path", "verb", "body"),
    [
        ("/", "GET", None),
        ("/quotes/AAPL?seq=42", "GET", None),
        ("/quotes/B%20%2F%C3%BC?seq=7", "GET", None),
        ("/quotes/AAPL/stream?count=3", "GET", None),
        ("/quotes/AAPL/stream?count=0", "GET", None),
        ("/quotes/AAPL/stream?count=-1", "GET", None),
        ("/quotes/AAPL?seq=x", "GET", None),
        ("/produced", "GET", None),
        ("/nonsense", "GET", None),
        ("/echo", "GET", None),
        ("/echo", "POST", b"\0\xff\r\n\r\n"),
        ("/echo", "POST", b""),
        ("/echo", "POST", b"a" * 1001),
    ],
)
async def test_threads_answer_as_the_event_loop_does(path: str, verb: str, body: bytes | None) -> None:
    codec = adapter("http").codec
    loop, threads = Http(codec=codec, max_message_bytes=1000), HttpThreads(codec=codec, max_message_bytes=1000)
    async with asyncio.timeout(BOUND_S), loop.serve(Service(), ANY_PORT) as one:
        async with threads.serve(BlockingService(), ANY_PORT) as other:
            expected = await fetch(one.address, path, verb, body)
            got = await fetch(other.address, path, verb, body)

    assert (got.status, got.kind, got.body) == (expected.status, expected.kind, expected.body)


async def test_a_connection_outlives_a_stream_unless_its_client_says_otherwise() -> None:
    async with asyncio.timeout(BOUND_S), adapter("http_threads").serve(BlockingService(), ANY_PORT) as server:

        def exchange() -> None:
            connection = http.client.HTTPConnection(*server.address, timeout=10)
            sockets = set()
            for _ in range(3):
                connection.request("GET", "/quotes/AAPL/stream?count=2")
                sockets.add(id(connection.sock))
                answer = connection.getresponse()
                assert answer.getheader("Transfer-Encoding") == "chunked"
                assert [json.loads(line)["seq"] for line in answer.read().splitlines()] == [0, 1]
            assert len(sockets) == 1
            connection.request("GET", "/quotes/AAPL/stream?count=2", headers={"Connection": "close"})
            answer = connection.getresponse()
            assert len(answer.read().splitlines()) == 2
            assert answer.will_close
            connection.close()

        await asyncio.to_thread(exchange)


async def test_what_waits_in_the_server_for_a_quiet_reader_is_bounded_and_seen() -> None:
    threads, service = adapter("http_threads", write_limit=200_000), BlockingService()
    async with asyncio.timeout(BOUND_S), threads.serve(service, ANY_PORT) as server:
        async with threads.connect(server.address) as peer:
            backlog = server.backlog()
            assert backlog is not None
            assert (backlog.messages, backlog.size_bytes) == (0, 0)
            async with aclosing(peer.server_stream(METHODS["quotes.unbounded"], SymbolRequest("AAPL"))) as items:
                assert (await anext(items)).seq == 0
                produced = await still(lambda: service.produced)
                waiting = server.backlog()
            assert waiting is not None
            assert 100_000 < waiting.size_bytes < 201_000  # over the limit by one item at most
            assert produced > 1000


def test_the_servers_buffer_is_in_the_ledger_of_what_a_quiet_reader_leaves() -> None:
    record = run(cell("backpressure", "http_threads"), sweep_id="S", repeat=1, position=1, overrides=[])
    found = {name: value for name, (value, _) in record.measurements.items()}

    assert (record.verdict, record.findings["bounded_by"]) == ("ok", "buffers")
    places = [found[f"surplus_{place}"] for place in ("server", "client", "kernel", "unaccounted")]
    assert sum(places) == found["plateau_messages"] > 1000
    assert found["surplus_server"] > 0.05 * found["plateau_messages"]
    assert found["surplus_kernel"] > found["surplus_server"]
    assert abs(found["surplus_unaccounted"]) < 0.05 * found["plateau_messages"]


# Files


@pytest.mark.parametrize("protocol", THREADS)
def test_more_connections_than_the_system_lets_a_process_hold_are_refused_up_front(
    protocol: str, tmp_path: Path
) -> None:
    command = f"ulimit -n 128; exec {sys.executable} -m runner protocol={protocol} load.connections=300"
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=60)

    assert done.returncode == 2
    assert "load.connections: 300 connections need about 350 open files in each process, the limit is 128" in (
        done.stderr
    )
    assert list(tmp_path.iterdir()) == []
