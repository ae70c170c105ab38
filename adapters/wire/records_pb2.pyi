from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SensorReading(_message.Message):
    __slots__ = ("deviceId", "value", "timestamp", "unit", "location", "batteryLevel", "status", "firmwareVersion")
    DEVICEID_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    LOCATION_FIELD_NUMBER: _ClassVar[int]
    BATTERYLEVEL_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    FIRMWAREVERSION_FIELD_NUMBER: _ClassVar[int]
    deviceId: str
    value: float
    timestamp: int
    unit: str
    location: str
    batteryLevel: int
    status: str
    firmwareVersion: str
    def __init__(self, deviceId: _Optional[str] = ..., value: _Optional[float] = ..., timestamp: _Optional[int] = ..., unit: _Optional[str] = ..., location: _Optional[str] = ..., batteryLevel: _Optional[int] = ..., status: _Optional[str] = ..., firmwareVersion: _Optional[str] = ...) -> None: ...

class Readings(_message.Message):
    __slots__ = ("items",)
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[SensorReading]
    def __init__(self, items: _Optional[_Iterable[_Union[SensorReading, _Mapping]]] = ...) -> None: ...

class Receipt(_message.Message):
    __slots__ = ("records", "messages", "checksum")
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    CHECKSUM_FIELD_NUMBER: _ClassVar[int]
    records: int
    messages: int
    checksum: str
    def __init__(self, records: _Optional[int] = ..., messages: _Optional[int] = ..., checksum: _Optional[str] = ...) -> None: ...

class OrdersRequest(_message.Message):
    __slots__ = ("count", "batch")
    COUNT_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    count: int
    batch: int
    def __init__(self, count: _Optional[int] = ..., batch: _Optional[int] = ...) -> None: ...

class OrderResponse(_message.Message):
    __slots__ = ("orderId", "amount", "currency", "status", "createdAt", "customerId", "itemCount", "shippingAddress")
    ORDERID_FIELD_NUMBER: _ClassVar[int]
    AMOUNT_FIELD_NUMBER: _ClassVar[int]
    CURRENCY_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    CREATEDAT_FIELD_NUMBER: _ClassVar[int]
    CUSTOMERID_FIELD_NUMBER: _ClassVar[int]
    ITEMCOUNT_FIELD_NUMBER: _ClassVar[int]
    SHIPPINGADDRESS_FIELD_NUMBER: _ClassVar[int]
    orderId: str
    amount: float
    currency: str
    status: str
    createdAt: int
    customerId: str
    itemCount: int
    shippingAddress: str
    def __init__(self, orderId: _Optional[str] = ..., amount: _Optional[float] = ..., currency: _Optional[str] = ..., status: _Optional[str] = ..., createdAt: _Optional[int] = ..., customerId: _Optional[str] = ..., itemCount: _Optional[int] = ..., shippingAddress: _Optional[str] = ...) -> None: ...

class Orders(_message.Message):
    __slots__ = ("items",)
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[OrderResponse]
    def __init__(self, items: _Optional[_Iterable[_Union[OrderResponse, _Mapping]]] = ...) -> None: ...
