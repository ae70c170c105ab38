"""Protobuf: the committed code, which message carries which type, and what the format accepts by its own rules."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message as WireMessage

from adapters import messages
from adapters.api import Malformed, NotRepresentable
from adapters.codecs import PROTOBUF_TYPES, Protobuf
from adapters.codecs_table import item_kind
from adapters.messages import Body, Credit, Quote, QuoteRequest, StreamRequest
from adapters.wire import quotes_pb2, records_pb2

ROOT = Path(__file__).resolve().parent.parent
PROTOBUF = Protobuf()
PROTOS = sorted(f"proto/{path.name}" for path in (ROOT / "proto").glob("*.proto"))
GENERATED = [quotes_pb2, records_pb2]
QUOTE = Quote("AAPL", 42, 100.42, 100.44, 1_772_000_000_000_000)

Field = descriptor_pb2.FieldDescriptorProto
FLAT: dict[str, Any] = {
    "f_bool": (Field.TYPE_BOOL, True),
    "f_int32": (Field.TYPE_INT32, 442269),
    "f_int64": (Field.TYPE_INT64, 446816),
    "f_float64": (Field.TYPE_DOUBLE, 649.1968904313869),
    "f_string": (Field.TYPE_STRING, "xljybqxfemz"),
    "f_bool_2": (Field.TYPE_BOOL, False),
    "f_int32_2": (Field.TYPE_INT32, 598855),
    "f_string_2": (Field.TYPE_STRING, "eobwzfgdqglt"),
}


def wire_class(name: str, fields: dict[str, Any], repeated: frozenset[str] = frozenset()) -> type[WireMessage]:
    """A protobuf message with `fields` (name: type) numbered from 1, in a pool of its own."""
    file = descriptor_pb2.FileDescriptorProto(name=f"{name}.proto", syntax="proto3")
    message = file.message_type.add(name=name)
    for number, (field, kind) in enumerate(fields.items(), 1):
        label = Field.LABEL_REPEATED if field in repeated else Field.LABEL_OPTIONAL
        message.field.add(name=field, number=number, type=kind, label=label)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = pool.FindMessageTypeByName(name)
    return message_factory.GetMessageClass(found)


def carried(
    monkeypatch: pytest.MonkeyPatch, kind: type, fields: dict[str, Any], repeated: frozenset[str] = frozenset()
) -> None:
    monkeypatch.setitem(PROTOBUF_TYPES, kind, wire_class(kind.__name__, fields, repeated))


@pytest.mark.parametrize("name", ["quotes_pb2.py", "quotes_pb2.pyi", "records_pb2.py", "records_pb2.pyi"])
def test_the_generated_code_is_current(name: str, tmp_path: Path) -> None:
    outputs = [f"--python_out={tmp_path}", f"--pyi_out={tmp_path}"]
    command = [sys.executable, "-m", "grpc_tools.protoc", "-Iproto", *outputs, *PROTOS]
    subprocess.run(command, cwd=ROOT, check=True, timeout=60)

    assert (ROOT / "adapters/wire" / name).read_text() == (tmp_path / name).read_text()


def test_every_message_type_has_a_protobuf_message() -> None:
    ours = {kind for kind in vars(messages).values() if isinstance(kind, type) and issubclass(kind, msgspec.Struct)}

    assert set(PROTOBUF_TYPES) == ours
    assert {wire.DESCRIPTOR.name for wire in PROTOBUF_TYPES.values()} == {
        name for module in GENERATED for name in module.DESCRIPTOR.message_types_by_name
    }


@pytest.mark.parametrize("kind", list(PROTOBUF_TYPES), ids=lambda kind: kind.__name__)
def test_fields_of_both_sides_have_the_same_names_order_and_types(kind: type) -> None:
    wire_types = {
        str: FieldDescriptor.TYPE_STRING,
        int: FieldDescriptor.TYPE_INT64,
        float: FieldDescriptor.TYPE_DOUBLE,
        bytes: FieldDescriptor.TYPE_BYTES,
    }

    ours = [
        (field.encode_name, FieldDescriptor.TYPE_MESSAGE if item_kind(field.type) else wire_types[field.type])
        for field in msgspec.structs.fields(kind)
    ]

    assert [(field.name, field.type) for field in PROTOBUF_TYPES[kind].DESCRIPTOR.fields] == ours


def test_the_methods_of_the_services_are_those_of_the_table() -> None:
    services = [service for module in GENERATED for service in module.DESCRIPTOR.services_by_name.values()]

    theirs = sorted((rpc.input_type.name, rpc.output_type.name) for service in services for rpc in service.methods)

    assert theirs == sorted(
        (PROTOBUF_TYPES[method.request].DESCRIPTOR.name, PROTOBUF_TYPES[method.reply].DESCRIPTOR.name)
        for method in messages.METHODS.values()
    )


def test_our_bytes_are_those_of_the_generated_class() -> None:
    theirs = quotes_pb2.Quote(symbol="AAPL", seq=42, bid=100.42, ask=100.44, epochMicros=1_772_000_000_000_000)

    assert PROTOBUF.encode(QUOTE) == theirs.SerializeToString()


def test_fields_at_their_defaults_take_no_bytes() -> None:
    for message in (Quote("", 0, 0.0, 0.0, 0), Credit(), StreamRequest("", 0), Body(b"")):
        assert PROTOBUF.encode(message) == b""
        assert PROTOBUF.decode(type(message), b"") == message


def test_an_absent_seq_means_42_and_seq_0_is_carried() -> None:
    assert PROTOBUF.decode(QuoteRequest, b"\x0a\x01A") == QuoteRequest("A", 42)
    assert PROTOBUF.encode(QuoteRequest("A", 0)) == b"\x0a\x01A\x10\x00"
    assert PROTOBUF.decode(QuoteRequest, b"\x0a\x01A\x10\x00") == QuoteRequest("A", 0)


@pytest.mark.parametrize("seq", [2**63, -(2**63) - 1, 2**64])
def test_an_integer_beyond_int64_is_not_representable(seq: int) -> None:
    with pytest.raises(NotRepresentable, match="protobuf, QuoteRequest: "):
        PROTOBUF.encode(QuoteRequest("A", seq))


def test_a_value_of_a_wrong_type_is_not_written_as_a_default() -> None:
    with pytest.raises(NotRepresentable):
        PROTOBUF.encode(Quote("A", 1, None, 1.0, 1))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x0a\x01A\x10\x07\x98\x06\x01", Credit("A", 7)),  # unknown field 99
        (b"\x0a\x01A\x12\x01x", Credit("A", 0)),  # n as a string: unknown
        (b"\x10\x01\x0a\x01A\x10\x07", Credit("A", 7)),  # out of order, and the last n wins
        (b"\x0a\x01A" + b"\x0a\x01B\x10\x07", Credit("B", 7)),  # two messages in a row are merged
        (b"\x10\x87\x80\x00", Credit("", 7)),  # a longer varint than needed
    ],
)
def test_what_protobuf_accepts_by_its_own_rules(data: bytes, message: Credit) -> None:
    assert PROTOBUF.decode(Credit, data) == message


@pytest.mark.parametrize(
    "data",
    [b"\x0a", b"\x0a\x05A", b"\x0a\x01\xff", b"\x00\x01", b"\x10", b"\x13", b"\x10" + b"\xff" * 10 + b"\x01"],
    ids=["no length", "cut short", "bad UTF-8", "field 0", "no varint", "open group", "varint over 10 bytes"],
)
def test_bytes_that_are_no_protobuf_are_malformed(data: bytes) -> None:
    with pytest.raises(Malformed, match=r"^protobuf, Credit: "):
        PROTOBUF.decode(Credit, data)


def test_a_registered_type_is_carried(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = msgspec.defstruct("Flat", [(name, type(value)) for name, (_, value) in FLAT.items()])
    carried(monkeypatch, kind, {name: wire for name, (wire, _) in FLAT.items()})
    record = kind(**{name: value for name, (_, value) in FLAT.items()})

    data = PROTOBUF.encode(record)

    assert len(data) == 50
    assert PROTOBUF.decode(kind, data) == record


def test_small_registered_records_have_their_known_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    person = msgspec.defstruct("Person", [("name", str), ("age", int)])
    carried(monkeypatch, person, {"name": Field.TYPE_STRING, "age": Field.TYPE_INT32})
    compact = msgspec.defstruct("Compact", [("compact", bool), ("schema", int)])
    carried(monkeypatch, compact, {"compact": Field.TYPE_BOOL, "schema": Field.TYPE_INT32})

    assert len(PROTOBUF.encode(person("Alice", 30))) == 9
    assert len(PROTOBUF.encode(compact(True, 0))) == 2


def test_nothing_but_defaults_takes_no_bytes_and_comes_back_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    fields = [("a", int), ("b", str), ("c", bool), ("d", float), ("e", list[int])]
    kind = msgspec.defstruct("Defaults", fields)
    wires = [Field.TYPE_INT64, Field.TYPE_STRING, Field.TYPE_BOOL, Field.TYPE_DOUBLE, Field.TYPE_INT64]
    carried(monkeypatch, kind, dict(zip("abcde", wires, strict=True)), frozenset("e"))

    assert PROTOBUF.encode(kind(0, "", False, 0.0, [])) == b""
    assert PROTOBUF.decode(kind, b"") == kind(0, "", False, 0.0, [])
    full = kind(1, "x", True, -0.0, [3, -1])
    assert repr(PROTOBUF.decode(kind, PROTOBUF.encode(full))) == repr(full)


def test_an_unregistered_type_is_refused_by_name() -> None:
    stray = msgspec.defstruct("Stray", [("a", int)])

    with pytest.raises(TypeError, match="no protobuf message carries a Stray"):
        PROTOBUF.encode(stray(1))
    with pytest.raises(TypeError, match="no protobuf message carries a Stray"):
        PROTOBUF.decode(stray, b"")


def test_a_subclass_with_another_field_is_refused() -> None:
    wider = msgspec.defstruct("Wider", [("venue", str, "")], bases=(Quote,), frozen=True, rename="camel")

    with pytest.raises(TypeError, match="Wider and protobuf's Quote have different fields"):
        PROTOBUF.encode(wider("A", 1, 1.0, 1.0, 1, "X"))


def test_a_32_bit_float_is_refused_because_it_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = msgspec.defstruct("Rounded", [("f", float)])
    carried(monkeypatch, kind, {"f": Field.TYPE_FLOAT})

    with pytest.raises(TypeError, match=r"Rounded\.f is a 32-bit float"):
        PROTOBUF.encode(kind(232.3))
