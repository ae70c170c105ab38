"""The pictures of the HTML report, in the order in which they are shown. A new one is a module and a line here."""

from collections.abc import Callable

from runner.report.context import Context
from runner.report.pictures import bulk, hello, latency, production, saturation
from runner.report.pictures.chart import Picture

# table -> what makes the picture of it; None where the sweep has no data for it.
PICTURES: dict[str, Callable[[Context], Picture | None]] = {
    "request_response": latency.request_response,
    "open_loop": latency.open_loop,
    "saturation_curve": saturation.saturation,
    "backpressure": production.production,
    "hello": hello.hello,
    "upload": bulk.upload,
    "download": bulk.download,
}

__all__ = ["PICTURES", "Picture"]
