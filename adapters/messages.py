"""What can be said, whatever the protocol: the message types and the one table of methods."""

from __future__ import annotations

import msgspec

from adapters.api import Method, Shape


class Quote(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The published message: five fields. `seq` and `epoch_micros` (on the wire: epochMicros) are int64."""

    symbol: str
    seq: int
    bid: float
    ask: float
    epoch_micros: int


class QuoteRequest(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Ask for one quote."""

    symbol: str
    seq: int = 42


class StreamRequest(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Ask for `count` quotes, seq 0 first, `delay_ms` apart."""

    symbol: str
    count: int
    delay_ms: int = 0


class SymbolRequest(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Ask for an endless stream of quotes, seq 0 first."""

    symbol: str


class PageRequest(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Ask for the next `limit` quotes behind the one whose seq is `after` (-1: from the first on)."""

    symbol: str
    after: int = -1
    limit: int = 100


class QuotePage(msgspec.Struct, frozen=True, gc=False):
    """Quotes in one message, in order. Fewer than were asked for: there are no more."""

    items: list[Quote]


class Credit(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """`n` more quotes may be made. The symbol of the first credit of a stream counts; later ones may leave it."""

    symbol: str = ""
    n: int = 0


class Empty(msgspec.Struct, frozen=True, gc=False):
    """Nothing to say."""


class Produced(msgspec.Struct, frozen=True, gc=False):
    """How many quotes the server has made for the stream under test."""

    produced: int


class RunInfo(msgspec.Struct, frozen=True, gc=False):
    """Which run a server belongs to."""

    run: str


class Body(msgspec.Struct, frozen=True, gc=False):
    """Opaque bytes of any length. json, cbor and msgpack carry `data` as it is, without an envelope."""

    data: bytes


class SensorReading(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The published record that is uploaded: eight fields. `timestamp` in milliseconds since 1970."""

    device_id: str
    value: float
    timestamp: int
    unit: str
    location: str
    battery_level: int
    status: str
    firmware_version: str


class Readings(msgspec.Struct, frozen=True, gc=False):
    """Many readings in one message."""

    items: list[SensorReading]


class Receipt(msgspec.Struct, frozen=True, gc=False):
    """What a receiver of records got: how many, in how many messages, and the checksum of content and order."""

    records: int
    messages: int
    checksum: str


class OrdersRequest(msgspec.Struct, frozen=True, gc=False):
    """Ask for `count` orders, number 0 first; `batch` of them to a message where they come in batches."""

    count: int
    batch: int


class OrderResponse(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The published record that is downloaded: eight fields. `created_at` in milliseconds since 1970."""

    order_id: str
    amount: float
    currency: str
    status: str
    created_at: int
    customer_id: str
    item_count: int
    shipping_address: str


class Orders(msgspec.Struct, frozen=True, gc=False):
    """Many orders in one message."""

    items: list[OrderResponse]


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method("quote", Shape.UNARY, QuoteRequest, Quote),
        Method("quotes", Shape.SERVER_STREAM, StreamRequest, Quote),
        Method("quotes.page", Shape.UNARY, PageRequest, QuotePage),
        Method("quotes.unbounded", Shape.SERVER_STREAM, SymbolRequest, Quote),
        Method("quotes.unbounded.ready", Shape.SERVER_STREAM, SymbolRequest, Quote),
        Method("quotes.credited", Shape.BIDI_STREAM, Credit, Quote),
        Method("produced", Shape.UNARY, Empty, Produced),
        Method("echo", Shape.UNARY, Body, Body),
        Method("hello", Shape.UNARY, Empty, Body),
        Method("run", Shape.UNARY, Empty, RunInfo),
        Method("readings", Shape.UNARY, Readings, Receipt),
        Method("readings.batched", Shape.CLIENT_STREAM, Readings, Receipt),
        Method("readings.each", Shape.CLIENT_STREAM, SensorReading, Receipt),
        Method("orders", Shape.UNARY, OrdersRequest, Orders),
        Method("orders.batched", Shape.SERVER_STREAM, OrdersRequest, Orders),
        Method("orders.each", Shape.SERVER_STREAM, OrdersRequest, OrderResponse),
    )
}
