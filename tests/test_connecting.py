"""What a connection costs stands apart from what its calls take; the clock only moves when everybody waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from adapters.api import Message, Method, Peer
from adapters.codecs import CODECS
from runner.connecting import Connecting, Refused, connecting_measurements
from runner.drive import Drive
from runner.operations.api import Raw
from runner.operations.hello import Hello
from runner.operations.request_response import RequestResponse
from runner.quotes import quote
from runner.report.connecting import FEW
from runner.service import Service
from tests.drives import LIMITS, OpenGate, load
from tests.golden_db import latency_run, stream_run
from tests.golden_transfers import hello_run
from tests.reports import Reporter
from tests.virtual_time import clock, virtually

MS = 1_000_000
CONNECT_MS, FIRST_MS, WARMING_MS, CALL_MS = 40, 500, 100, 1
WARMUP = 3


class Cold(Service):
    """The first call of a connection takes FIRST_MS, the next `warming` ones WARMING_MS, all others CALL_MS."""

    def __init__(self, run: str = "R", warming: int = 0) -> None:
        super().__init__(run=run)
        self.calls: list[str] = []
        self._warming = warming

    async def unary(self, method: Method, request: Message) -> Message:
        self.calls.append(method.name)
        n = len(self.calls)
        takes = FIRST_MS if n == 1 else WARMING_MS if n <= 2 + self._warming else CALL_MS
        await asyncio.sleep(takes / 1_000)
        return await super().unary(method, request)


@asynccontextmanager
async def connection(peer: Peer, takes_ms: float = CONNECT_MS) -> AsyncIterator[Peer]:
    await asyncio.sleep(takes_ms / 1_000)
    yield peer


def opened(*peers: Peer, takes_ms: Callable[[int], float] = lambda n: CONNECT_MS) -> dict[str, list[int]]:
    """The samples of connections to `peers`, of which the n-th takes `takes_ms(n)`, from 1."""

    async def work() -> dict[str, list[int]]:
        connecting = Connecting("R", clock)
        async with AsyncExitStack() as stack:
            for n, peer in enumerate(peers, 1):
                assert await connecting.open(stack, connection(peer, takes_ms(n))) is peer
        return connecting.samples

    return virtually(work())


def measured(operation: RequestResponse | Hello, service: Service) -> Drive:
    """One connection is opened, then `operation` is driven over it."""

    async def work() -> Drive:
        connecting = Connecting("R", clock)
        async with AsyncExitStack() as stack:
            peer = await connecting.open(stack, connection(service))
            gate = OpenGate()
            drive = Drive(peers=[peer], codec=CODECS["json"](), load=load(), limits=LIMITS, gate=gate, clock=clock)
            drive.raw.samples |= connecting.samples
            await operation.drive(drive)
        return drive

    return virtually(work())


def test_each_connection_has_a_sample_of_its_opening_and_of_its_first_call() -> None:
    found = opened(Cold(), Cold(), Cold(), takes_ms=lambda n: 10 * n)

    assert found == {"connect": [10 * MS, 20 * MS, 30 * MS], "first_call": [FIRST_MS * MS] * 3}


def test_every_connection_says_whose_server_it_is_and_the_first_one_also_answers_a_quote() -> None:
    services = [Cold(), Cold()]
    opened(*services)

    assert [service.calls for service in services] == [["run", "quote"], ["run"]]


def test_a_server_of_another_run_is_refused_on_any_connection() -> None:
    with pytest.raises(Refused, match="the server belongs to run 'other', not to 'R': something else listens"):
        opened(Cold(), Cold(run="other"))


def test_a_first_answer_that_is_wrong_is_refused() -> None:
    class Wrong(Service):
        async def unary(self, method: Method, request: Message) -> Message:
            return quote("AAPL", 1) if method.name == "quote" else await super().unary(method, request)

    with pytest.raises(Refused, match="the server's first answer is wrong"):
        opened(Wrong(run="R"))


@pytest.mark.parametrize(
    ("connect", "median_ms"), [([7], 7.0), ([1, 9], 1.0), ([9, 1, 4], 4.0), ([4, 1, 9, 2], 2.0)]
)
def test_the_measurement_is_the_nearest_rank_median_over_the_connections(
    connect: list[int], median_ms: float
) -> None:
    raw = Raw(samples={"connect": [n * MS for n in connect], "first_call": [500_000] * len(connect)})

    assert connecting_measurements(raw) == {"connect_ms": (median_ms, "ms"), "first_call_ms": (0.5, "ms")}


def test_without_connections_there_is_no_measurement() -> None:
    assert connecting_measurements(Raw()) == {}


def test_without_a_warm_up_the_first_call_of_a_connection_is_still_in_no_latency() -> None:
    operation = RequestResponse(name="request_response", count=10, warmup=0, size_bytes=None)
    drive = measured(operation, Cold())
    found = operation.summarize(drive.raw, drive.codec, {"connections": 1}).measurements

    assert list(drive.raw.samples["latency"]) == [CALL_MS * MS] * 10
    assert drive.raw.window_ns == 10 * CALL_MS * MS
    assert (found["n"], found["max_us"], found["mean_us"]) == ((10, "calls"), (1_000.0, "us"), (1_000.0, "us"))
    assert connecting_measurements(drive.raw) == {
        "connect_ms": (CONNECT_MS, "ms"),
        "first_call_ms": (FIRST_MS, "ms"),
    }


@pytest.mark.parametrize(
    "operation",
    [
        RequestResponse(name="request_response", count=10, warmup=WARMUP, size_bytes=None),
        Hello(name="hello", requests=10, warmup=WARMUP, service_time_ms=0, service_work="wait", crosscheck=False),
    ],
)
def test_calls_of_the_warm_up_are_in_no_statistic(operation: RequestResponse | Hello) -> None:
    service = Cold(warming=WARMUP)
    drive = measured(operation, service)
    found = operation.summarize(drive.raw, drive.codec, {"connections": 1}).measurements

    assert len(service.calls) == 2 + WARMUP + 10  # run, quote; the warm-up; the window
    assert list(drive.raw.samples["latency"]) == [CALL_MS * MS] * 10
    assert drive.raw.window_ns == 10 * CALL_MS * MS
    assert {name: value for name, (value, _) in found.items() if name in ("p50_us", "mean_us", "max_us")} == {
        "p50_us": 1_000.0,
        "mean_us": 1_000.0,
        "max_us": 1_000.0,
    }
    noun = "requests" if isinstance(operation, Hello) else "calls"
    assert found[f"{noun}_per_s"][0] == pytest.approx(1_000)


# In the tables


@pytest.fixture
def report(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Reporter:
    return Reporter(capsys, monkeypatch, tmp_path)


def test_tables_for_programs_have_what_each_row_took_to_connect(report: Reporter) -> None:
    costs = ({"connect_ms": 2.0, "first_call_ms": 4.5}, {"connect_ms": 3.0, "first_call_ms": 5.5})
    report.write([latency_run("grpc", repeat, 300, **cost) for repeat, cost in enumerate(costs)])

    [row] = report.rows("request_response")

    assert (row["connect_ms"], row["first_call_ms"], row["p50_us"]) == ("2.5", "5", "300")


def test_a_sentence_says_what_each_protocol_took_to_connect_whatever_the_codec(report: Reporter) -> None:
    tcp = {"connect_ms": 0.25, "first_call_ms": 0.125}
    runs = [
        latency_run("grpc", 0, 300, connect_ms=3.125, first_call_ms=2.5),
        latency_run("grpc", 0, 300, codec="json", connect_ms=3.375, first_call_ms=2.5),
        latency_run("tcp", 0, 50, **tcp),
        latency_run("tcp", 0, 50, variant="nodelay=false", **{**tcp, "connect_ms": 0.5}),
    ]
    report.write(runs)

    assert (
        "connecting, before anything is timed (median): tcp 0.25 ms, its first call 0.12 ms; "
        "tcp (nodelay=false) 0.50 ms, its first call 0.12 ms; grpc 3.25 ms, its first call 2.50 ms"
    ) in report.notes("request_response")


@pytest.mark.parametrize(
    ("table", "run"),
    [
        ("request_response", latency_run("grpc", 0, 300)),
        ("stream", stream_run("grpc", 0, 40_000)),
        ("hello", hello_run("grpc", 0, 2_500)),
    ],
)
def test_every_table_of_calls_or_messages_says_so(report: Reporter, table: str, run: object) -> None:
    report.write([run])  # type: ignore[list-item]

    [row] = report.rows(table)

    assert (row["connect_ms"], row["first_call_ms"]) == ("2", "0.5")
    assert "connecting, before anything is timed (median): grpc 2.00 ms, its first call 0.50 ms" in (
        report.notes(table)
    )


def test_nothing_is_said_where_nothing_was_connected_or_too_much(report: Reporter) -> None:
    unknown = {"connect_ms": None, "first_call_ms": None}
    report.write([latency_run("loopback", 0, 5, **unknown)], 1)
    report.write([latency_run("tcp", 0, 50, variant=f"read={n}") for n in range(FEW + 1)], 2)

    for number in (1, 2):
        notes = report.notes("request_response", "--sweep", f"01KG{number:022d}")
        assert not [note for note in notes if note.startswith("connecting")]
    rows = report.rows("request_response", "--sweep", f"01KG{1:022d}")
    assert [(row["connect_ms"], row["first_call_ms"]) for row in rows] == [("", "")]
