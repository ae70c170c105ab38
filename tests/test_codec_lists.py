"""Lists of messages inside a message, in every codec: exact bytes, round trips, refusals."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from adapters.api import Codec, Malformed, NotRepresentable
from adapters.codecs import CODECS, PROTOBUF_TYPES, Protobuf
from adapters.messages import OrderResponse, Orders, Readings, SensorReading
from adapters.wire import records_pb2

BY_NAME = {name: make() for name, make in CODECS.items()}
every_codec = pytest.mark.parametrize("codec", BY_NAME.values(), ids=BY_NAME)
Field = descriptor_pb2.FieldDescriptorProto

READING = SensorReading("device-00042", 20.42, 1_772_000_000_042, "celsius", "hall-2", 58, "ACTIVE", "2.4.1")
ORDER = OrderResponse("order-42", 104.2, "EUR", "PAID", 1_772_000_000_042, "customer-42", 3, "42 Main Street")


@pytest.mark.parametrize(
    ("name", "reading", "order"),
    [
        ("protobuf", 64, 68),
        ("json", 166, 172),
        ("cbor", 138, 144),
        ("cbor_definite", 137, 143),
        ("msgpack", 136, 143),
    ],
)
def test_one_record_has_exactly_this_size(name: str, reading: int, order: int) -> None:
    assert (len(BY_NAME[name].encode(READING)), len(BY_NAME[name].encode(ORDER))) == (reading, order)


@pytest.mark.parametrize(
    ("name", "overhead"),
    # a tag and a length per record; {"items":[]} and commas; a map, a key, an array and (cbor) their ends
    [("protobuf", 1000 * 2), ("json", 12 + 999), ("cbor", 10), ("cbor_definite", 10), ("msgpack", 10)],
)
def test_a_thousand_records_take_a_thousand_times_one_and_the_list(name: str, overhead: int) -> None:
    codec = BY_NAME[name]

    assert len(codec.encode(Readings([READING] * 1000))) == 1000 * len(codec.encode(READING)) + overhead


@every_codec
@pytest.mark.parametrize("count", [0, 1, 15, 16, 1000, 65_536])
def test_a_list_comes_back_equal_and_in_order(codec: Codec, count: int) -> None:
    records = Orders([msgspec.structs.replace(ORDER, item_count=number) for number in range(count)])

    assert codec.decode(Orders, codec.encode(records)) == records


def test_our_bytes_are_those_of_the_generated_class() -> None:
    theirs = records_pb2.Readings()
    for number in range(3):
        theirs.items.add(
            deviceId="d",
            value=number / 2,
            timestamp=number,
            unit="celsius",
            location="hall-2",
            batteryLevel=number,
            status="ACTIVE",
            firmwareVersion="2.4.1",
        )
    ours = [SensorReading("d", n / 2, n, "celsius", "hall-2", n, "ACTIVE", "2.4.1") for n in range(3)]

    assert Protobuf().encode(Readings(ours)) == theirs.SerializeToString()


@pytest.mark.parametrize("name", ["json", "cbor", "cbor_definite", "msgpack"])
def test_a_wrong_item_is_malformed(name: str) -> None:
    codec = BY_NAME[name]
    orders = codec.encode(Orders([ORDER]))

    with pytest.raises(Malformed, match="Readings"):
        codec.decode(Readings, orders)


def test_an_item_that_is_no_message_is_not_representable_in_protobuf() -> None:
    with pytest.raises(NotRepresentable, match="protobuf, Readings"):
        Protobuf().encode(Readings([READING, "a reading"]))  # type: ignore[list-item]


class Pet(msgspec.Struct):
    name: str
    color: int


class Hello(msgspec.Struct):
    name: str
    d: float
    f: float
    b: bool
    n: int
    l: int  # noqa: E741  # the published name
    c1: str
    pets: list[Pet]


class HelloRequest(msgspec.Struct):
    request: Hello


def nested_types() -> dict[type, Any]:
    """The published HelloRequest, but for its enum (an integer here) and its 32-bit float (a double)."""
    file = descriptor_pb2.FileDescriptorProto(name="hello.proto", syntax="proto3")
    layout: dict[str, list[tuple[str, Any]]] = {
        "Pet": [("name", Field.TYPE_STRING), ("color", Field.TYPE_INT32)],
        "Hello": [
            ("name", Field.TYPE_STRING),
            ("d", Field.TYPE_DOUBLE),
            ("f", Field.TYPE_DOUBLE),
            ("b", Field.TYPE_BOOL),
            ("n", Field.TYPE_INT32),
            ("l", Field.TYPE_INT64),
            ("c1", Field.TYPE_STRING),
        ],
        "HelloRequest": [],
    }
    for name, fields in layout.items():
        message = file.message_type.add(name=name)
        for number, (field, kind) in enumerate(fields, 1):
            message.field.add(name=field, number=number, type=kind, label=Field.LABEL_OPTIONAL)
    for owner, field, kind, label in [
        (1, "pets", ".Pet", Field.LABEL_REPEATED),
        (2, "request", ".Hello", Field.LABEL_OPTIONAL),
    ]:
        holder = file.message_type[owner]
        number = len(holder.field) + 1
        holder.field.add(name=field, number=number, type=Field.TYPE_MESSAGE, type_name=kind, label=label)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    classes = (message_factory.GetMessageClass(pool.FindMessageTypeByName(name)) for name in layout)
    return dict(zip((Pet, Hello, HelloRequest), classes, strict=True))


def test_a_message_in_a_message_with_a_list_of_messages_has_its_known_size(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind, wire in nested_types().items():
        monkeypatch.setitem(PROTOBUF_TYPES, kind, wire)
    pets = [Pet("Bof the dog", 1), Pet("Kim the cat", 2)]
    record = HelloRequest(Hello("a name", 4.55332, 232.3, True, 32, 444325235223, "ofcouse", pets))

    data = Protobuf().encode(record)

    assert len(data) == 78 + 4  # published with a 32-bit float, which we refuse: 4 bytes more for a double
    assert Protobuf().decode(HelloRequest, data) == record
    assert Protobuf().decode(HelloRequest, b"") == HelloRequest(Hello("", 0.0, 0.0, False, 0, 0, "", []))


def test_a_list_of_another_message_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = msgspec.defstruct("Wrong", [("items", list[OrderResponse])])
    monkeypatch.setitem(PROTOBUF_TYPES, kind, records_pb2.Readings)

    with pytest.raises(TypeError, match=r"Wrong\.items is not what Readings\.items holds"):
        Protobuf().encode(kind([]))
