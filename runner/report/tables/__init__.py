"""The tables of the report, in the order in which they are printed. A new one is a module and a line here."""

from collections.abc import Callable

from runner.report.context import Context
from runner.report.table import Table
from runner.report.tables import (
    backpressure,
    bulk,
    checks,
    choosing,
    codecs,
    comparisons,
    hello,
    open_loop,
    overhead,
    payload,
    protocols,
    request_response,
    saturation,
    stream,
)

# name -> what makes it; None where the sweep has no runs for it.
TABLES: dict[str, Callable[[Context], Table | None]] = {
    "protocols": protocols.build,
    "codecs": codecs.build,
    "payload": payload.build,
    "request_response": request_response.build,
    "open_loop": open_loop.build,
    "saturation": saturation.build,
    "saturation_curve": saturation.curve,
    "stream": stream.build,
    "backpressure": backpressure.build,
    "hello": hello.build,
    "upload": bulk.upload,
    "download": bulk.download,
    "overhead": overhead.build,
    "choosing": choosing.build,
    "comparisons": comparisons.build,
    "checks": checks.build,
}

__all__ = ["TABLES"]
