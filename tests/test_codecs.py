"""What codecs write: exact bytes, round trips, and the values they cannot carry."""

from __future__ import annotations

import json
import math
import struct
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import cbor2
import msgspec
import pytest
from hypothesis import given, settings

from adapters.api import Codec, Malformed, NotRepresentable
from adapters.codecs import CODECS
from adapters.messages import Body, Empty, Produced, Quote, RunInfo
from tests.message_values import KINDS, UNTIMED, any_of, well_typed

BY_NAME = {name: make() for name, make in CODECS.items()}
JSON, CBOR, DEFINITE, MSGPACK = (BY_NAME[name] for name in ("json", "cbor", "cbor_definite", "msgpack"))
NAMED = [JSON, CBOR, DEFINITE, MSGPACK]  # those that write field names
MICROS = 1_772_000_000_000_000
QUOTE = Quote("AAPL", 42, 100.42, 100.44, MICROS)
FIELDS: dict[Any, Any] = {"symbol": "AAPL", "seq": 42, "bid": 100.42, "ask": 100.44, "epochMicros": MICROS}

every_codec = pytest.mark.parametrize("codec", BY_NAME.values(), ids=BY_NAME)
every_named_codec = pytest.mark.parametrize("codec", NAMED, ids=lambda codec: codec.name)
both_cbors = pytest.mark.parametrize("codec", [CBOR, DEFINITE], ids=lambda codec: codec.name)


@pytest.mark.parametrize(
    ("name", "size", "hexadecimal"),
    [
        ("protobuf", 35, "0a044141504c102a197b14ae47e11a5940215c8fc2f5281c5940288080abb4fef39203"),
        (
            "json",
            83,
            b'{"symbol":"AAPL","seq":42,"bid":100.42,"ask":100.44,"epochMicros":1772000000000000}'.hex(),
        ),
        (
            "cbor",
            67,
            "bf6673796d626f6c644141504c63736571182a63626964fb40591ae147ae147b"
            "6361736bfb40591c28f5c28f5c6b65706f63684d6963726f731b00064b9fe68ac000ff",
        ),
        (
            "cbor_definite",
            66,
            "a56673796d626f6c644141504c63736571182a63626964fb40591ae147ae147b"
            "6361736bfb40591c28f5c28f5c6b65706f63684d6963726f731b00064b9fe68ac000",
        ),
        (
            "msgpack",
            65,
            "85a673796d626f6ca44141504ca37365712aa3626964cb40591ae147ae147b"
            "a361736bcb40591c28f5c28f5cab65706f63684d6963726f73cf00064b9fe68ac000",
        ),
    ],
)
def test_the_published_quote_has_exactly_these_bytes(name: str, size: int, hexadecimal: str) -> None:
    data = BY_NAME[name].encode(QUOTE)

    assert data.hex() == hexadecimal
    assert len(data) == size


def test_codecs_know_their_names_and_kinds() -> None:
    facts = [(codec.name, codec.mime, codec.text) for codec in BY_NAME.values()]

    assert facts == [
        ("protobuf", "application/vnd.google.protobuf", False),
        ("json", "application/json", True),
        ("cbor", "application/cbor", False),
        ("cbor_definite", "application/cbor", False),
        ("msgpack", "application/vnd.msgpack", False),
    ]
    assert list(CODECS) == [codec.name for codec in BY_NAME.values()]


def test_any_reader_finds_the_camel_case_names() -> None:
    assert json.loads(JSON.encode(QUOTE)) == FIELDS
    assert cbor2.loads(CBOR.encode(QUOTE)) == cbor2.loads(DEFINITE.encode(QUOTE)) == FIELDS
    assert msgspec.msgpack.decode(MSGPACK.encode(QUOTE)) == FIELDS


@every_codec
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_message_comes_back_equal(codec: Codec, kind: type) -> None:
    @settings(UNTIMED, max_examples=60)
    @given(any_of(kind))
    def round_trip(message: Any) -> None:
        data = codec.encode(message)
        back: Any = codec.decode(kind, data)

        assert type(data) is bytes
        assert well_typed(back, kind)
        assert (back, repr(back)) == (message, repr(message))  # repr tells -0.0 from 0.0

    round_trip()


@every_codec
@pytest.mark.parametrize("buffer", [bytes, bytearray, memoryview])
def test_any_buffer_can_be_decoded(codec: Codec, buffer: type) -> None:
    assert codec.decode(Quote, buffer(codec.encode(QUOTE))) == QUOTE
    assert codec.decode(Body, buffer(codec.encode(Body(b"\0\xff")))) == Body(b"\0\xff")


@every_codec
def test_a_subclass_is_carried_like_its_parent(codec: Codec) -> None:
    late = msgspec.defstruct("Late", [], bases=(Quote,), frozen=True, rename="camel")
    wrapped = msgspec.defstruct("Wrapped", [], bases=(Body,), frozen=True)

    data = codec.encode(late("AAPL", 42, 100.42, 100.44, MICROS))

    assert data == codec.encode(QUOTE)
    assert type(codec.decode(late, data)) is late
    assert codec.encode(wrapped(b"x")) == codec.encode(Body(b"x"))
    assert codec.decode(wrapped, codec.encode(Body(b"x"))) == wrapped(b"x")


@every_named_codec
def test_a_body_is_its_bytes_and_is_not_copied(codec: Codec) -> None:
    data = b"null" * 1000

    assert codec.encode(Body(data)) is data
    assert codec.decode(Body, data).data is data


@every_codec
def test_a_body_of_something_else_than_bytes_is_not_representable(codec: Codec) -> None:
    for data in (5, "text", bytearray(b"x")):
        with pytest.raises(NotRepresentable):
            codec.encode(Body(data))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "size"), [("protobuf", 42), ("json", 97), ("cbor", 74), ("cbor_definite", 73), ("msgpack", 73)]
)
def test_an_integer_beyond_the_doubles_keeps_its_digits(name: str, size: int) -> None:
    quote = Quote("AAPL", 9007199254740993, 100.42, 100.44, MICROS)

    data = BY_NAME[name].encode(quote)

    assert len(data) == size  # in JSON 14 more than the seq of two digits: a number, no string
    assert BY_NAME[name].decode(Quote, data) == quote


def test_an_integer_beyond_64_bits_is_carried_by_json_and_cbor_alone() -> None:
    quote = Quote("AAPL", 2**64, 100.42, 100.44, MICROS)
    sizes: dict[str, int | None] = {}
    for name, codec in BY_NAME.items():
        try:
            data = codec.encode(quote)
        except NotRepresentable:
            sizes[name] = None
        else:
            sizes[name] = len(data)
            assert codec.decode(Quote, data) == quote

    assert sizes == {"protobuf": None, "json": 101, "cbor": 76, "cbor_definite": 75, "msgpack": None}


def test_unsigned_64_bits_fit_msgpack_but_not_protobuf() -> None:
    assert MSGPACK.decode(Produced, MSGPACK.encode(Produced(2**64 - 1))) == Produced(2**64 - 1)
    with pytest.raises(NotRepresentable):
        BY_NAME["protobuf"].encode(Produced(2**64 - 1))


def test_a_number_of_more_digits_than_python_converts_is_not_representable_in_json() -> None:
    with pytest.raises(NotRepresentable):
        JSON.encode(Produced(10**5000))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_nan_and_infinities_are_not_representable_in_json_and_kept_elsewhere(value: float) -> None:
    quote = Quote("null", 42, 100.42, value, MICROS)

    with pytest.raises(NotRepresentable, match="json, Quote: it would be written as null"):
        JSON.encode(quote)
    for name in ("protobuf", "cbor", "cbor_definite", "msgpack"):
        back = BY_NAME[name].decode(Quote, BY_NAME[name].encode(quote))
        assert struct.pack("d", back.ask) == struct.pack("d", value)


@every_codec
def test_a_lone_surrogate_is_not_representable(codec: Codec) -> None:
    with pytest.raises(NotRepresentable, match=f"{codec.name}, RunInfo: .*surrogates not allowed"):
        codec.encode(RunInfo("a\ud800b"))
    assert codec.decode(RunInfo, codec.encode(RunInfo("ab"))) == RunInfo("ab")  # nothing is left over


def test_json_writes_text_as_utf8_without_escapes() -> None:
    text = msgspec.defstruct("Text", [("text", str)])

    assert len(JSON.encode(text("漢" * 4000))) == 12_011


@every_codec
def test_one_codec_serves_many_threads(codec: Codec) -> None:
    quotes = [Quote("A" * size, size, 1.0, 2.0, MICROS) for size in range(8)]
    expected = [codec.encode(quote) for quote in quotes]

    def encoded(which: int) -> set[bytes]:
        return {codec.encode(quotes[which]) for _ in range(500)}

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(len(quotes)) as threads:
            found = list(threads.map(encoded, range(len(quotes))))
    finally:
        sys.setswitchinterval(interval)

    assert found == [{data} for data in expected]


class Pet(msgspec.Struct):
    name: str
    color: str


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


class Flat(msgspec.Struct):
    f_bool: bool
    f_int32: int
    f_int64: int
    f_float64: float
    f_string: str
    f_bool_2: bool
    f_int32_2: int
    f_string_2: str


class Person(msgspec.Struct):
    name: str
    age: int


class Chunk(msgspec.Struct):
    content: bytes


PETS = [Pet("Bof the dog", "BLUE"), Pet("Kim the cat", "RED")]
NESTED = HelloRequest(Hello("a name", 4.55332, 232.3, True, 32, 444325235223, "ofcouse", PETS))
FLAT = Flat(True, 442269, 446816, 649.1968904313869, "xljybqxfemz", False, 598855, "eobwzfgdqglt")


@pytest.mark.parametrize(
    ("record", "sizes"),
    [
        (NESTED, {"json": 183, "cbor": 141, "cbor_definite": 136, "msgpack": 135}),
        (FLAT, {"json": 168, "cbor": 125, "cbor_definite": 124, "msgpack": 124}),
        (Person("Alice", 30), {"json": 25, "cbor": 19, "cbor_definite": 18, "msgpack": 17}),
    ],
    ids=["nested", "flat", "person"],
)
def test_known_records_have_their_known_sizes(record: Any, sizes: dict[str, int]) -> None:
    encoded = {codec.name: codec.encode(record) for codec in NAMED}

    assert {name: len(data) for name, data in encoded.items()} == sizes
    assert [codec.decode(type(record), encoded[codec.name]) for codec in NAMED] == [record] * 4


@both_cbors
def test_bytes_inside_a_record_are_cbor_bytes_and_text_is_not_taken_for_them(codec: Codec) -> None:
    assert cbor2.loads(codec.encode(Chunk(b"hi"))) == {"content": b"hi"}
    assert codec.decode(Chunk, codec.encode(Chunk(b"hi"))) == Chunk(b"hi")
    with pytest.raises(Malformed):
        codec.decode(Chunk, cbor2.dumps({"content": "aGk="}))


def test_nothing_to_say_is_said_in_two_bytes_at_most() -> None:
    encoded = {name: codec.encode(Empty()) for name, codec in BY_NAME.items()}

    assert encoded == {
        "protobuf": b"",
        "json": b"{}",
        "cbor": b"\xbf\xff",
        "cbor_definite": b"\xa0",
        "msgpack": b"\x80",
    }
