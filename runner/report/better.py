"""Which metrics stand for an operation, and which way is better."""

from __future__ import annotations

# What is compared unless a metric is named: those of these that were measured, numbers before words.
DEFAULTS = {
    "payload": ("size_bytes", "encode_ns", "decode_ns"),
    "request_response": ("p50_us", "p99_us", "response_p50_us", "response_p99_us"),
    "hello": ("requests_per_s", "p50_us", "p99_us"),
    "stream": ("messages_per_s",),
    "backpressure": ("plateau_messages", "plateau_bytes", "bounded_by"),
    "upload": ("seconds", "records_per_s"),
    "download": ("seconds", "records_per_s"),
}
OTHERWISE = ("p50_us", "p99_us", "seconds", "messages_per_s", "requests_per_s", "calls_per_s")

# Rates that are asked for, and shares that are good or bad only together with something else.
_NEITHER = {"requested_per_s", "sent_per_s", "busy_pct", "driver_cpu_pct", "server_cpu_pct", "duration_s"}
_LESS = {"seconds", "errors", "dropped", "plateau_messages", "us_per_message"}
_LESS_ENDINGS = ("_us", "_ms", "_ns", "_s", "_bytes", "_switches")


def more_is_better(metric: str) -> bool | None:
    """None: neither way is better."""
    if metric in _NEITHER:
        return None
    if metric.endswith("_per_s") or "_per_server_cpu_" in metric:
        return True
    if metric in _LESS or metric.startswith("surplus_") or metric.endswith(_LESS_ENDINGS):
        return False
    return None
