"""What codecs read: damage is refused, and each format's own freedoms are accepted."""

from __future__ import annotations

import json
from typing import Any

import cbor2
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.api import Codec, Malformed
from adapters.codecs import CODECS
from adapters.messages import Body, Credit, Produced, Quote, QuoteRequest, RunInfo
from tests.message_values import KINDS, UNTIMED, any_of, sevens, well_typed

BY_NAME = {name: make() for name, make in CODECS.items()}
JSON, CBOR, DEFINITE, MSGPACK = (BY_NAME[name] for name in ("json", "cbor", "cbor_definite", "msgpack"))
NAMED = [JSON, CBOR, DEFINITE, MSGPACK]  # those that write field names
MICROS = 1_772_000_000_000_000
QUOTE = Quote("AAPL", 42, 100.42, 100.44, MICROS)
FIELDS: dict[Any, Any] = {"symbol": "AAPL", "seq": 42, "bid": 100.42, "ask": 100.44, "epochMicros": MICROS}

every_codec = pytest.mark.parametrize("codec", BY_NAME.values(), ids=BY_NAME)
every_named_codec = pytest.mark.parametrize("codec", NAMED, ids=lambda codec: codec.name)
both_cbors = pytest.mark.parametrize("codec", [CBOR, DEFINITE], ids=lambda codec: codec.name)


def with_fields(codec: Codec, fields: dict[Any, Any]) -> bytes:
    """A map as `codec` would write it."""
    if codec.name == "json":
        return json.dumps(fields).encode()
    if codec.name == "msgpack":
        return msgspec.msgpack.encode(fields)
    return cbor2.dumps(fields, indefinite_containers=codec.name == "cbor")


@every_named_codec
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind is not Body], ids=lambda kind: kind.__name__)
def test_a_message_cut_short_is_malformed(codec: Codec, kind: type) -> None:
    data = codec.encode(sevens(kind))

    for size in range(len(data)):
        with pytest.raises(Malformed):
            codec.decode(kind, data[:size])


@every_named_codec
def test_anything_after_the_message_is_malformed(codec: Codec) -> None:
    data = codec.encode(QUOTE)
    tails = [bytes([byte]) for byte in range(256)] + [data, data[:5], b"null", b"\xff\xff", b"\xff" + data]
    tails += [
        bytes.fromhex(tail) for tail in ("d9d9f7", "d81c", "ff00", "ff480000000000000000", "81", "9f", "5f", "49")
    ]
    accepted = []
    for tail in tails:
        try:
            codec.decode(Quote, data + tail)
        except Malformed:
            continue
        accepted.append(tail)

    assert accepted == ([b"\t", b"\n", b"\r", b" "] if codec is JSON else [])


@every_named_codec
@pytest.mark.parametrize(
    "fields",
    [
        {name: value for name, value in FIELDS.items() if name != "ask"},
        FIELDS | {"seq": "42"},
        FIELDS | {"seq": True},
        FIELDS | {"seq": None},
        FIELDS | {"seq": 42.0},
        FIELDS | {"bid": "100.42"},
        FIELDS | {"symbol": 5},
        FIELDS | {"symbol": ["AAPL"]},
        {"Symbol" if name == "symbol" else name: value for name, value in FIELDS.items()},
        {},
        list(FIELDS.values()),
        "AAPL",
        None,
    ],
    ids=lambda fields: json.dumps(fields),
)
def test_missing_fields_and_wrong_types_are_malformed(codec: Codec, fields: Any) -> None:
    with pytest.raises(Malformed, match=f"^{codec.name}, Quote: "):
        codec.decode(Quote, with_fields(codec, fields))


@every_named_codec
def test_unknown_fields_are_skipped_and_a_whole_number_is_a_float(codec: Codec) -> None:
    data = with_fields(codec, {"venue": {"name": ["X", None]}} | FIELDS | {"bid": 100})

    assert repr(codec.decode(Quote, data)) == repr(Quote("AAPL", 42, 100.0, 100.44, MICROS))


@every_named_codec
def test_an_absent_field_with_a_default_has_it(codec: Codec) -> None:
    assert codec.decode(QuoteRequest, with_fields(codec, {"symbol": "A"})) == QuoteRequest("A", 42)
    assert codec.decode(QuoteRequest, codec.encode(QuoteRequest("A", 0))) == QuoteRequest("A", 0)
    assert codec.decode(Credit, with_fields(codec, {})) == Credit("", 0)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"produced":1,"produced":2}', Produced(2)),  # the last one wins
        (b' {\n"produced" :\t2 }\r\n', Produced(2)),
        (b'{"x":"\xff","produced":2}', Produced(2)),  # a skipped string is not looked into
        (b'{"produced":-0}', Produced(0)),
    ],
)
def test_what_json_accepts_by_its_own_rules(data: bytes, message: Produced) -> None:
    assert JSON.decode(Produced, data) == message


@pytest.mark.parametrize(
    "data",
    [
        b'{"produced":"1","produced":2}',
        b'{"produced":NaN}',
        b'{"produced":02}',
        b'{"produced":2e0}',
        b'{"produced":2,}',
        b'\xef\xbb\xbf{"produced":2}',
        b"{'produced':2}",
        b'{"produced":2,"x":' + b"[" * 100_000,
    ],
    ids=["first of two", "NaN", "leading zero", "exponent", "comma", "byte order mark", "quotes", "too deep"],
)
def test_bytes_that_are_no_json_are_malformed(data: bytes) -> None:
    with pytest.raises(Malformed):
        JSON.decode(Produced, data)


@pytest.mark.parametrize(
    "data", [b'{"run":"\xff"}', b'{"run":"\\ud800"}', b'{"run":"a\nb"}'], ids=["UTF-8", "surrogate", "control"]
)
def test_a_bad_string_in_json_is_malformed(data: bytes) -> None:
    with pytest.raises(Malformed):
        JSON.decode(RunInfo, data)


@pytest.mark.parametrize(
    ("hexadecimal", "message"),
    [
        ("82a870726f647563656401a870726f647563656402", Produced(2)),  # the last one wins
        ("df00000001d90870726f6475636564d30000000000000002", Produced(2)),  # longer forms than needed
    ],
)
def test_what_msgpack_accepts_by_its_own_rules(hexadecimal: str, message: Produced) -> None:
    assert MSGPACK.decode(Produced, bytes.fromhex(hexadecimal)) == message


@pytest.mark.parametrize(
    "hexadecimal",
    ["81a870726f6475636564c0", "81c40870726f647563656402", "dfffffffff", "81a3" + b"run".hex() + "a1ff", "c1"],
    ids=["nil", "binary key", "map of 4 billion", "other field", "unused byte"],
)
def test_bytes_that_are_no_msgpack_of_the_type_are_malformed(hexadecimal: str) -> None:
    with pytest.raises(Malformed):
        MSGPACK.decode(Produced, bytes.fromhex(hexadecimal))


@both_cbors
@pytest.mark.parametrize(
    ("value", "produced"),
    [("02", 2), ("1b0000000000000002", 2), ("c24102", 2), ("c249010000000000000000", 2**64), ("d9d9f702", 2)],
    ids=["short", "long form", "bignum", "bignum over 64 bits", "self-described"],
)
def test_what_cbor_accepts_by_its_own_rules(codec: Codec, value: str, produced: int) -> None:
    name = "68" + b"produced".hex()

    for data in (f"a1{name}{value}", f"bf{name}{value}ff", f"bf7f64{name[2:10]}64{name[10:]}ff{value}ff"):
        assert codec.decode(Produced, bytes.fromhex(data)) == Produced(produced)


@both_cbors
@pytest.mark.parametrize(
    "hexadecimal",
    [
        "a26870726f6475636564026870726f647563656402",
        "bf6870726f6475636564026870726f647563656403ff",
        "a26870726f6475636564026178a2616101616102",
        "a16870726f6475636564f6",
        "a14870726f647563656402",
        "a16870726f6475636564c11a00000002",
        "bbffffffffffffffff",
        "81" * 500,
        "a1c8",
        "1c",
        "",
    ],
    ids=[
        *("duplicate key", "duplicate key, indefinite", "duplicate key inside an unknown field", "null"),
        *("binary key", "a date", "map of 2**64", "too deep", "tag of nothing", "reserved byte", "nothing"),
    ],
)
def test_bytes_that_are_no_cbor_of_the_type_are_malformed(codec: Codec, hexadecimal: str) -> None:
    with pytest.raises(Malformed):
        codec.decode(Produced, bytes.fromhex(hexadecimal))


@both_cbors
def test_cbor_floats_are_written_in_8_bytes_and_read_in_any_width(codec: Codec) -> None:
    quote = Quote("A", 0, 8.5, 0.1, 0)
    wide, short = bytes.fromhex("fb4021000000000000"), bytes.fromhex("f94840")

    assert wide in codec.encode(quote)
    assert codec.decode(Quote, codec.encode(quote).replace(wide, short)) == quote


@every_codec
@settings(UNTIMED, max_examples=400)
@given(data=st.data())
def test_damaged_bytes_are_malformed_or_a_well_typed_message(codec: Codec, data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(KINDS))
    good = codec.encode(data.draw(any_of(data.draw(st.sampled_from([kind, kind, *KINDS])))))
    start = data.draw(st.integers(0, len(good)))
    end = data.draw(st.integers(start, min(len(good), start + 4)))
    tag = st.sampled_from([b"\xc0", b"\xc2", b"\xc4\x82", b"\xd8\x1c", b"\xd8\x1d\x00", b"\xd8\x24", b"\xff"])
    bad = good[:start] + data.draw(st.binary(max_size=4) | tag) + good[end:]

    try:
        message = codec.decode(kind, bad)
    except Malformed:
        return
    assert well_typed(message, kind)


@every_codec
@settings(UNTIMED, max_examples=60)
@given(noise=st.binary(max_size=40), kind=st.sampled_from(KINDS))
def test_noise_is_malformed_or_a_well_typed_message(codec: Codec, noise: bytes, kind: type) -> None:
    try:
        message: Any = codec.decode(kind, noise)
    except Malformed:
        return
    assert well_typed(message, kind)
