"""How methods are spelled in proto/*.proto, and addresses as grpc takes them."""

from __future__ import annotations

import errno
import socket

from adapters.api import Address, AddressInUse, Method

SERVICE = "QuoteService"
_SERVICES = {"readings": "RecordService", "orders": "RecordService"}  # by the first word of the method's name

_RPCS = {
    "quote": "GetQuote",
    "quotes": "StreamQuotes",
    "quotes.unbounded": "StreamUnbounded",
    "quotes.unbounded.ready": "StreamUnboundedReady",
    "quotes.credited": "StreamCredited",
}


def rpc_name(method: Method) -> str:
    """The method's name in proto/*.proto."""
    return _RPCS.get(method.name) or "".join(part.capitalize() for part in method.name.split("."))


def service_name(method: Method) -> str:
    """The service that has the method: QuoteService, or RecordService of proto/records.proto."""
    return _SERVICES.get(method.name.partition(".")[0], SERVICE)


def target(address: Address) -> str:
    """host:port, an IPv6 host in brackets."""
    return f"[{address.host}]:{address.port}" if ":" in address.host else f"{address.host}:{address.port}"


def check_free(address: Address) -> None:
    """Raises AddressInUse. grpc tells the reason for a failed bind only to its log on stderr."""
    with socket.socket(socket.AF_INET6 if ":" in address.host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address)
        except OSError as exc:
            if exc.errno == errno.EADDRINUSE:
                raise AddressInUse(address) from exc
            raise
