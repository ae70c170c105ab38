"""Samples as an HdrHistogram: 3 significant digits, nanoseconds, any number of values in a few kilobytes."""

from __future__ import annotations

import base64
import struct
from collections import Counter
from collections.abc import Mapping, Sequence

from hdrh.histogram import HdrHistogram

ENCODING = "hdrhistogram-v2-deflate"  # V2, compressed, as Python's library writes it: `log_payload` adds the header
DIGITS = 3
_COMPRESSED_COOKIE = 0x1C849304 | 0x10  # V2, of 64-bit words
_KEPT_BITS = 11  # 3 digits need 2 * 10**3 steps in each doubling: 2,048
_HIGHEST_NS = 3_600_000_000_000  # one hour; the range is fixed so that histograms of different runs can be added


def encode(values_ns: Sequence[int]) -> bytes:
    """All of `values_ns` (>= 0), as the bytes that `decode` reads."""
    # Cutting the bits that the histogram does not keep leaves few distinct values: half the time, equal bytes.
    cut = [value >> (spare := max(0, value.bit_length() - _KEPT_BITS)) << spare for value in values_ns]
    return encode_counts(Counter(cut), max(values_ns, default=0))


def encode_counts(counts: Mapping[int, int], most_ns: int) -> bytes:
    """The same of values that were counted: value in ns -> how many; `most_ns`: the highest."""
    histogram = HdrHistogram(1, max(_HIGHEST_NS, most_ns), DIGITS, b64_wrap=False)
    for value, times in counts.items():
        histogram.record_value(value, times)
    return bytes(histogram.encode())


def decode(data: bytes) -> HdrHistogram:
    """The histogram: `get_value_at_percentile(99)`, `total_count`, `add(other)` and so on."""
    return HdrHistogram.decode(data, b64_wrap=False)


def log_payload(data: bytes) -> str:
    """What `encode` made, as a line of an HdrHistogram log has it: with the header that the Python library leaves
    out where it does not wrap in base64 (cookie and length, big-endian), in base64.
    """
    return base64.b64encode(struct.pack(">II", _COMPRESSED_COOKIE, len(data)) + data).decode("ascii")
