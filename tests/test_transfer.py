"""Upload and download: exact figures over a peer that is called directly, and every protocol with few records."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Callable
from typing import Any

import msgspec
import pytest

from adapters.api import Address, Message, Method, Shape
from adapters.codecs import CODECS
from adapters.messages import METHODS, Orders, Readings
from runner.blocking import served_by
from runner.engine import run
from runner.operations.download import Download
from runner.operations.transfer import PIECE, Transfer
from runner.operations.upload import Upload
from runner.records import batches, order, orders_of, reading, readings_of
from runner.service import Service
from tests.cells import cell
from tests.drives import OpenGate, drive_over, run_over

THREADS = ["http_threads", "grpc_threads"]
SHAPES = ["single", "batched", "per_record"]
EACH_WAY: list[tuple[type[Transfer], str]] = [(Upload, "sender"), (Download, "producer")]
each_way = pytest.mark.parametrize(("kind", "style_key"), EACH_WAY, ids=["upload", "download"])
every_shape = pytest.mark.parametrize("shape", SHAPES)


def transfer(kind: type[Transfer], **knobs: Any) -> Transfer:
    style = "sender" if kind is Upload else "producer"
    usual = {"records": 250, "shape": "batched", "batch": 100, "warmup": 20, style: "awaited"}
    return kind(**{"name": kind.__name__.lower(), **usual, **knobs})


@each_way
@every_shape
async def test_every_record_arrives_and_is_counted(kind: type[Transfer], style_key: str, shape: str) -> None:
    drive, summary = await run_over(transfer(kind, shape=shape), [Service()])

    assert summary.void == []
    assert drive.raw.errors == {}
    assert summary.measurements["records"] == (250, "records")
    assert summary.measurements["messages"] == ({"single": 1, "batched": 3, "per_record": 250}[shape], "messages")
    assert summary.measurements["errors"] == (0, "errors")
    assert summary.findings == {"shape": shape, style_key: "awaited", "checksum": drive.raw.facts["checksum"]}


@each_way
@every_shape
@pytest.mark.parametrize("codec", CODECS)
async def test_payload_bytes_are_the_sum_of_the_encoded_messages(
    kind: type[Transfer], style_key: str, shape: str, codec: str
) -> None:
    make: Callable[[int], Any] = reading if kind is Upload else order
    together: Callable[[range], Any] = readings_of if kind is Upload else orders_of
    messages = {
        "single": [together(range(250))],
        "batched": [together(numbers) for numbers in batches(250, 100)],
        "per_record": [make(number) for number in range(250)],
    }[shape]
    size = sum(len(CODECS[codec]().encode(message)) for message in messages)

    _, summary = await run_over(transfer(kind, shape=shape), [Service()], codec=codec)

    assert summary.measurements["payload_bytes"] == (size, "bytes")
    assert summary.measurements["bytes_per_record"] == (size / 250, "bytes")


@each_way
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("records", [250, PIECE, 2 * PIECE + 17, 65_535])
def test_the_size_of_one_body_is_known_before_it_is_made(
    kind: type[Transfer], style_key: str, codec: str, records: int
) -> None:
    make = readings_of if kind is Upload else orders_of
    operation = transfer(kind, shape="single", records=records)

    assert operation.largest_message_bytes(CODECS[codec]()) == len(CODECS[codec]().encode(make(range(records))))


@pytest.mark.parametrize("codec", CODECS)
def test_the_size_of_a_larger_body_is_known_within_the_header_of_its_list(codec: str) -> None:
    operation = transfer(Upload, shape="single", records=70_000)

    exact = len(CODECS[codec]().encode(readings_of(range(70_000))))

    assert 0 <= exact - operation.largest_message_bytes(CODECS[codec]()) <= 4


Bend = Callable[[AsyncIterable[Message]], AsyncGenerator[Message, None]]


class Bent(Service):
    """A service that sees and sends streams through `bend`, and single bodies through `cut`."""

    def __init__(self, bend: Bend, cut: Callable[[list[Any]], list[Any]] = lambda items: items) -> None:
        super().__init__()
        self._bend, self._cut = bend, cut

    async def unary(self, method: Method, request: Message) -> Message:
        if isinstance(request, Readings):
            request = Readings(self._cut(request.items))
        reply = await super().unary(method, request)
        return Orders(self._cut(reply.items)) if isinstance(reply, Orders) else reply

    async def client_stream(self, method: Method, requests: AsyncIterable[Message]) -> Message:
        return await super().client_stream(method, self._bend(requests))

    def server_stream(self, method: Method, request: Message) -> AsyncGenerator[Message, None]:
        return self._bend(super().server_stream(method, request))


async def dropping(stream: AsyncIterable[Message]) -> AsyncGenerator[Message, None]:
    n = 0
    async for item in stream:
        n += 1
        if n != 2:
            yield item


async def swapping(stream: AsyncIterable[Message]) -> AsyncGenerator[Message, None]:
    items = [item async for item in stream]
    for item in (items[1], items[0], *items[2:]):
        yield item


async def repeating(stream: AsyncIterable[Message]) -> AsyncGenerator[Message, None]:
    last = None
    async for item in stream:
        yield item
        last = item
    yield last


async def altering(stream: AsyncIterable[Message]) -> AsyncGenerator[Message, None]:
    async for item in stream:
        if isinstance(item, Readings | Orders):
            yield type(item)([msgspec.structs.replace(item.items[0], status="LOST"), *item.items[1:]])
        else:
            yield msgspec.structs.replace(item, status="LOST")


@each_way
@pytest.mark.parametrize(
    ("bend", "shape", "errors", "void"),
    [
        (dropping, "per_record", {"missing_record": 1, "wrong_checksum": 1}, "249 records arrived, 250 were sent"),
        (dropping, "batched", {"missing_record": 100, "wrong_checksum": 1}, "150 records arrived, 250 were sent"),
        (repeating, "per_record", {"surplus_record": 1, "wrong_checksum": 1}, "251 records arrived, 250 were sent"),
        (swapping, "per_record", {"wrong_checksum": 1}, "a record was changed, or their order"),
        (swapping, "batched", {"wrong_checksum": 1}, "a record was changed, or their order"),
        (altering, "per_record", {"wrong_checksum": 1}, "a record was changed, or their order"),
        (altering, "batched", {"wrong_checksum": 1}, "a record was changed, or their order"),
    ],
)
async def test_what_is_lost_repeated_out_of_order_or_altered_makes_the_run_void(
    kind: type[Transfer], style_key: str, bend: Bend, shape: str, errors: dict[str, int], void: str
) -> None:
    drive, summary = await run_over(transfer(kind, shape=shape, warmup=0), [Bent(bend)])

    assert drive.raw.errors == errors
    assert void in summary.void[0]
    assert summary.measurements["errors"] == (sum(errors.values()), "errors")


@each_way
async def test_one_body_that_comes_short_makes_the_run_void(kind: type[Transfer], style_key: str) -> None:
    service = Bent(dropping, cut=lambda items: items[:-1])

    drive, summary = await run_over(transfer(kind, shape="single", warmup=0), [service])

    assert drive.raw.errors == {"missing_record": 1, "wrong_checksum": 1}
    assert summary.void == ["249 records arrived, 250 were sent"]


async def recut(stream: AsyncIterable[Message]) -> AsyncGenerator[Message, None]:
    records = [record async for item in stream for record in item.items]
    yield Readings(records)


async def test_the_same_records_in_other_messages_make_the_run_void() -> None:
    _, summary = await run_over(transfer(Upload, warmup=0), [Bent(recut)])

    assert summary.void == ["they came in 1 messages, not 3"]


async def test_a_pushing_sender_is_seen_to_pile_up_what_the_transport_did_not_take() -> None:
    _, awaited = await run_over(transfer(Upload, shape="per_record"), [Service()])
    _, push = await run_over(transfer(Upload, shape="per_record", sender="push"), [Service()])

    assert "buffered_max" not in awaited.measurements
    assert push.measurements["buffered_max"][0] >= 2
    assert push.void == []


@each_way
def test_a_single_body_has_nothing_to_push(kind: type[Transfer], style_key: str) -> None:
    operation = transfer(kind, shape="single", **{style_key: "push"})

    assert operation.problems() == [
        f"{style_key}: push needs a stream, and single is one message; shape=batched or per_record"
    ]
    assert transfer(kind, **{style_key: "push"}).problems() == []


async def test_the_window_closes_before_anything_is_checked_or_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = OpenGate()
    steps = gate.steps
    sent = Transfer._sent

    def noted(self: Transfer, *args: Any) -> Any:
        steps.append("checked")
        return sent(self, *args)

    monkeypatch.setattr(Transfer, "_sent", noted)
    await run_over(transfer(Download), [Service()], gate=gate)

    assert steps == ["ready", "closed", "checked"]


async def test_times_on_a_clock_that_ticks_once_per_look() -> None:
    """Opening, asking, the first message, closing: three ticks from the first look to the last."""
    _, summary = await run_over(transfer(Download, warmup=0), [Service()])

    assert summary.measurements["first_ms"] == (pytest.approx(0.001), "ms")
    assert summary.measurements["seconds"] == (pytest.approx(3e-6), "s")
    assert summary.measurements["records_per_s"] == (pytest.approx(250 / 3e-6), "1/s")


async def test_memory_is_the_peak_over_the_level_before_and_never_below_it() -> None:
    drive = drive_over([Service()])
    operation = transfer(Download)
    await operation.drive(drive)
    drive.raw.usage = {"server": {"high_water_bytes": 5_000_000}, "driver": {"high_water_bytes": -8192}}

    measured = operation.summarize(drive.raw, drive.codec, {}).measurements
    drive.raw.usage = {}
    unknown = operation.summarize(drive.raw, drive.codec, {}).measurements

    assert measured["server_rss_growth_bytes"] == (5_000_000, "bytes")
    assert measured["driver_rss_growth_bytes"] == (0, "bytes")
    assert "server_rss_growth_bytes" not in unknown


@each_way
@every_shape
@pytest.mark.parametrize("codec", ["protobuf", "json"])
@pytest.mark.parametrize("protocol", ["tcp", "grpc", "http", "rsocket", "websocket", *THREADS])
async def test_every_protocol_carries_records_both_ways_in_every_shape(
    protocol: str, codec: str, kind: type[Transfer], style_key: str, shape: str
) -> None:
    adapter = cell("stream", protocol, codec).adapter
    operation = transfer(kind, shape=shape)
    service: Any = served_by(adapter, operation, "test")
    async with adapter.serve(service, Address("127.0.0.1", 0)) as served, adapter.connect(served.address) as peer:
        drive, summary = await run_over(operation, [peer], codec=codec)

    assert summary.void == []
    assert drive.raw.errors == {}
    assert summary.measurements["records"] == (250, "records")


@pytest.mark.parametrize("protocol", ["grpc", "http", *THREADS])
@pytest.mark.parametrize("style", ["awaited", "push"])
@each_way
async def test_every_style_delivers_everything_over_a_real_wire(
    kind: type[Transfer], style_key: str, style: str, protocol: str
) -> None:
    adapter = cell("stream", protocol).adapter
    operation = transfer(kind, shape="per_record", **{style_key: style})
    service: Any = served_by(adapter, operation, "test")
    async with adapter.serve(service, Address("127.0.0.1", 0)) as served, adapter.connect(served.address) as peer:
        _, summary = await run_over(operation, [peer], codec=adapter.codec.name)

    assert summary.void == []
    assert summary.findings[style_key] == style


@each_way
def test_a_run_in_two_processes_says_what_memory_it_took(kind: type[Transfer], style_key: str) -> None:
    target = cell(kind.__name__.lower(), "tcp", operation_={"records": 20_000, "shape": "single"})

    record = run(target, sweep_id="S", repeat=1, position=1, overrides=[])

    assert (record.verdict, record.reason) == ("ok", "")
    # 20,000 records are some 2 MB encoded and at least as much as objects, on both sides.
    for side in ("driver", "server"):
        assert 2_000_000 < record.measurements[f"{side}_rss_growth_bytes"][0] < 200_000_000
    assert record.measurements["server_cpu_us"][0] > 0


@each_way
def test_a_body_over_the_limit_is_unsupported_with_both_numbers(kind: type[Transfer], style_key: str) -> None:
    target = cell(
        kind.__name__.lower(),
        "rsocket",
        operation_={"records": 200, "shape": "single"},
        limits_={"max_message_bytes": 1000},
    )

    record = run(target, sweep_id="S", repeat=1, position=1, overrides=[])

    size = target.operation.largest_message_bytes(target.adapter.codec)
    assert record.verdict == "unsupported"
    assert record.reason == f"a message of {size:,} bytes is over the 1,000 that rsocket carries"
    assert record.measurements == {"records": (200, "records")}
    assert record.findings == {"shape": "single", style_key: "awaited"}


def test_a_run_that_passes_the_memory_ceiling_is_void_and_says_so() -> None:
    target = cell("upload", "tcp", operation_={"records": 200_000, "shape": "single"}, limits_={"max_rss_mb": 30})

    record = run(target, sweep_id="S", repeat=1, position=1, overrides=[])

    assert record.verdict == "void"
    assert record.reason.startswith("memory: the ")
    assert record.reason.endswith("over limits.max_rss_mb=30")
    assert record.findings == {"shape": "single", "sender": "awaited"}


def test_the_methods_of_every_shape_are_those_that_the_shape_needs() -> None:
    shapes = {shape: METHODS[Upload.names[shape]].shape for shape in SHAPES}

    assert shapes == {
        "single": Shape.UNARY,
        "batched": Shape.CLIENT_STREAM,
        "per_record": Shape.CLIENT_STREAM,
    }
    assert METHODS[Download.names["batched"]].shape is Shape.SERVER_STREAM
