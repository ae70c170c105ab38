"""Names of sweeps and runs: 26 letters and digits that sort by the time they were made."""

from __future__ import annotations

import secrets
import threading
import time

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford's base 32: no I, L, O, U
_RANDOM_BITS = 80
_lock = threading.Lock()
_last = 0


def new_id() -> str:
    """A ULID: 48 bits of milliseconds, then 80 random bits.

    Ids of one process rise strictly, also within one millisecond and when the clock is set back. The step to
    the next id is random too, so that two processes that share a millisecond (or a parent) do not meet.
    """
    global _last
    fresh = time.time_ns() // 1_000_000 << _RANDOM_BITS | secrets.randbits(_RANDOM_BITS - 1)
    with _lock:
        _last = fresh if fresh > _last else _last + 1 + secrets.randbits(48)
        number = _last
    return "".join(_ALPHABET[number >> shift & 31] for shift in range(125, -1, -5))
