"""The data every server serves: deterministic in (symbol, seq), so that both ends know what must arrive."""

from __future__ import annotations

from adapters.messages import Quote

EPOCH_MICROS = 1_772_000_000_000_000
_BIDS = tuple(round(100 + cents / 100, 2) for cents in range(1000))
_ASKS = tuple(round(bid + 0.02, 2) for bid in _BIDS)


def quote(symbol: str, seq: int) -> Quote:
    """The quote of `symbol` at `seq`: bid = 100 + seq % 1000 / 100, ask = bid + 0.02, both in whole cents."""
    cents = seq % 1000
    return Quote(symbol, seq, _BIDS[cents], _ASKS[cents], EPOCH_MICROS)
