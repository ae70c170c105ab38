"""message <-> bytes: one class per codec, the same types and the same field names for all of them.

What a codec writes (Quote("AAPL", 42, ...) in bytes):

    protobuf        35  proto/*.proto; a field at its default is not written
    json            83  compact UTF-8, fields in declared order, int64 as a number, shortest exact floats
    cbor            67  a map of indefinite length; integers as short as they go, floats always 8 bytes
    cbor_definite   66  the same with the length written
    msgpack         65  a map with field names (not the shorter array without them)

`Body` is opaque: all but protobuf carry its bytes as they are, uncopied, and accept any bytes as a `Body`.

Refused at decoding (Malformed): truncated input, anything after the message, a wrong type, a missing field
without a default, text that is not UTF-8; in CBOR a duplicate key as well. Each format also has freedoms of its
own, which are accepted here because its own readers accept them:

    json        unknown fields (whose strings may even be bad UTF-8), duplicate keys (the last one wins, each must
                have the right type), white space around tokens, 100 for a float. Not 42.0 for an integer.
    msgpack     unknown fields, duplicate keys (last wins), longer integer and length forms, an integer for a float
    cbor        unknown fields, definite and indefinite lengths alike, shorter floats, longer integer forms,
                bignums for integers, an integer or a decimal fraction for a float, the self-describing tag
    protobuf    unknown fields; a known field under another wire type counts as unknown; repeated single fields
                (last wins), so two concatenated messages are one; absent fields are their defaults, or for an
                `optional` one the default of our type. Any of this can also be damage: content must be checked.

Refused at encoding (NotRepresentable): NaN and infinities in json (where libraries write null), integers beyond 64
bits in msgpack and protobuf (signed there, so 2**63 too), lone surrogates everywhere. json and cbor carry integers
of any size, exactly; a reader that keeps numbers as doubles (JavaScript) loses digits above 2**53, ours does not.
Fields are taken to hold values of their declared types; only what the library itself notices is refused.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from functools import partial
from typing import Any

import cbor2
import msgspec

from adapters.api import Codec, Malformed, Message
from adapters.codecs_protobuf import PROTOBUF_TYPES, Protobuf
from adapters.codecs_table import Buffer, Decode, Encode, TableCodec, item_kind
from adapters.messages import Body

__all__ = ["CODECS", "PROTOBUF_TYPES", "Cbor", "Json", "Msgpack", "Protobuf"]


def _body_bytes(body: Body) -> bytes:
    if type(body.data) is not bytes:
        raise TypeError(f"Body.data is {type(body.data).__name__}, not bytes")
    return body.data


def _body_reader(kind: type[Body]) -> Decode:
    return lambda data: kind(bytes(data))  # bytes() of bytes is no copy


class Json(TableCodec):
    """Compact UTF-8 JSON by msgspec."""

    name = "json"
    mime = "application/json"
    text = True

    def _encoder(self, kind: type) -> Encode:
        if issubclass(kind, Body):
            return _body_bytes
        encode, small_n = msgspec.json.Encoder().encode, ord("n")

        def checked(message: Message) -> bytes:
            data = encode(message)
            # msgspec writes NaN and infinities as null without a word. Looking for one byte first is several
            # times faster than looking for four, and a quote has no "n".
            if small_n in data and data.find(b"null") >= 0 and not self._keeps(message, data):
                raise ValueError("it would be written as null (JSON has no NaN and no infinity)")
            return data

        return checked

    def _keeps(self, message: Message, data: bytes) -> bool:
        try:
            return bool(self.decode(type(message), data) == message)
        except Malformed:
            return False

    def _decoder(self, kind: type) -> Decode:
        return _body_reader(kind) if issubclass(kind, Body) else msgspec.json.Decoder(kind).decode


class Msgpack(TableCodec):
    """MessagePack with field names by msgspec."""

    name = "msgpack"
    mime = "application/vnd.msgpack"
    text = False

    def _encoder(self, kind: type) -> Encode:
        return _body_bytes if issubclass(kind, Body) else msgspec.msgpack.Encoder().encode

    def _decoder(self, kind: type) -> Decode:
        return _body_reader(kind) if issubclass(kind, Body) else msgspec.msgpack.Decoder(kind).decode


# cbor2.loads does not say where the data ended, and its CBORDecoder, which does, costs 0.4 µs more per message. So
# the data is read as the only item of an inner array of indefinite length, with a token after it that nobody can
# guess: [[*data], token]. A second item makes the inner array longer; a break that closes it early, or an item
# that swallows the closing break, leaves something else in the token's place, or nothing.
_TOKEN = os.urandom(8)
_OPEN, _CLOSE = b"\x82\x9f", b"\xff\x48" + _TOKEN

# Fields of these types alone need no help from msgspec to be told from their CBOR natives. It writes bytes as
# base64 text unless told not to, and telling costs 0.1 µs each way.
_PLAIN = frozenset({str, int, float, bool})
_NATIVE: dict[str, Any] = {"builtin_types": (bytes,)}


class Cbor(TableCodec):
    """CBOR by cbor2, as a map of indefinite length unless `definite`."""

    name: str  # one class, two names
    mime = "application/cbor"
    text = False

    def __init__(self, *, definite: bool = False) -> None:
        super().__init__()
        self.name = "cbor_definite" if definite else "cbor"
        # One encoder for all: cbor2.dumps makes one per message. It keeps nothing between two messages, also
        # after an error, and never lets another thread run in the middle of one.
        self._dumps = cbor2.CBOREncoder(io.BytesIO(), indefinite_containers=not definite).encode_to_bytes

    def _encoder(self, kind: type) -> Encode:
        if issubclass(kind, Body):
            return _body_bytes
        plain: Callable[[Message], Any] = msgspec.to_builtins
        if not _is_plain(kind):
            plain = partial(msgspec.to_builtins, **_NATIVE)
        dumps = self._dumps
        return lambda message: dumps(plain(message))

    def _decoder(self, kind: type) -> Decode:
        if issubclass(kind, Body):
            return _body_reader(kind)
        convert: Callable[[Any, type], Any] = msgspec.convert
        if not _is_plain(kind):
            convert = partial(msgspec.convert, **_NATIVE)
        loads = cbor2.loads

        def decode(data: Buffer) -> Any:
            items, token = loads(b"".join((_OPEN, data, _CLOSE)), allow_duplicate_keys=False)
            if token != _TOKEN or len(items) != 1:
                raise ValueError("not exactly one data item")
            return convert(items[0], kind)

        return decode


def _is_plain(kind: type) -> bool:
    return all(
        field.type in _PLAIN or any(map(_is_plain, item_kind(field.type))) for field in msgspec.structs.fields(kind)
    )


CODECS: dict[str, Callable[[], Codec]] = {
    "protobuf": Protobuf,
    "json": Json,
    "cbor": Cbor,
    "cbor_definite": partial(Cbor, definite=True),
    "msgpack": Msgpack,
}
