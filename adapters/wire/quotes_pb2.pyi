from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Quote(_message.Message):
    __slots__ = ("symbol", "seq", "bid", "ask", "epochMicros")
    SYMBOL_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    BID_FIELD_NUMBER: _ClassVar[int]
    ASK_FIELD_NUMBER: _ClassVar[int]
    EPOCHMICROS_FIELD_NUMBER: _ClassVar[int]
    symbol: str
    seq: int
    bid: float
    ask: float
    epochMicros: int
    def __init__(self, symbol: _Optional[str] = ..., seq: _Optional[int] = ..., bid: _Optional[float] = ..., ask: _Optional[float] = ..., epochMicros: _Optional[int] = ...) -> None: ...

class QuoteRequest(_message.Message):
    __slots__ = ("symbol", "seq")
    SYMBOL_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    symbol: str
    seq: int
    def __init__(self, symbol: _Optional[str] = ..., seq: _Optional[int] = ...) -> None: ...

class StreamRequest(_message.Message):
    __slots__ = ("symbol", "count", "delayMs")
    SYMBOL_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    DELAYMS_FIELD_NUMBER: _ClassVar[int]
    symbol: str
    count: int
    delayMs: int
    def __init__(self, symbol: _Optional[str] = ..., count: _Optional[int] = ..., delayMs: _Optional[int] = ...) -> None: ...

class SymbolRequest(_message.Message):
    __slots__ = ("symbol",)
    SYMBOL_FIELD_NUMBER: _ClassVar[int]
    symbol: str
    def __init__(self, symbol: _Optional[str] = ...) -> None: ...

class PageRequest(_message.Message):
    __slots__ = ("symbol", "after", "limit")
    SYMBOL_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    symbol: str
    after: int
    limit: int
    def __init__(self, symbol: _Optional[str] = ..., after: _Optional[int] = ..., limit: _Optional[int] = ...) -> None: ...

class QuotePage(_message.Message):
    __slots__ = ("items",)
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[Quote]
    def __init__(self, items: _Optional[_Iterable[_Union[Quote, _Mapping]]] = ...) -> None: ...

class Credit(_message.Message):
    __slots__ = ("symbol", "n")
    SYMBOL_FIELD_NUMBER: _ClassVar[int]
    N_FIELD_NUMBER: _ClassVar[int]
    symbol: str
    n: int
    def __init__(self, symbol: _Optional[str] = ..., n: _Optional[int] = ...) -> None: ...

class Empty(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ProducedReply(_message.Message):
    __slots__ = ("produced",)
    PRODUCED_FIELD_NUMBER: _ClassVar[int]
    produced: int
    def __init__(self, produced: _Optional[int] = ...) -> None: ...

class RunInfo(_message.Message):
    __slots__ = ("run",)
    RUN_FIELD_NUMBER: _ClassVar[int]
    run: str
    def __init__(self, run: _Optional[str] = ...) -> None: ...

class Body(_message.Message):
    __slots__ = ("data",)
    DATA_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    def __init__(self, data: _Optional[bytes] = ...) -> None: ...
