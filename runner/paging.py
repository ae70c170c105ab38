"""A stream as pages: what the server answers, and the client that asks for the next page when it needs an item."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from typing import Annotated

from msgspec import Meta

from adapters.api import CallFailed, Codec, Message, Peer
from adapters.messages import METHODS, PageRequest, Quote, QuotePage
from runner.quotes import quote

PAGE_MAX = 100_000  # items of one page; making them takes the server's loop for some 0.1 s
PageSize = Annotated[int, Meta(ge=1, le=PAGE_MAX)]


def quote_page(request: PageRequest) -> QuotePage:
    """The quotes asked for. Raises CallFailed("invalid_argument")."""
    if request.after < -1:
        raise CallFailed("invalid_argument", "after must be -1 (from the first on) or the seq of a quote")
    if not 1 <= request.limit <= PAGE_MAX:
        raise CallFailed("invalid_argument", f"limit must be from 1 to {PAGE_MAX:,}")
    first = request.after + 1
    return QuotePage([quote(request.symbol, seq) for seq in range(first, first + request.limit)])


def made_so_far(request: PageRequest, page: QuotePage, produced: int) -> int:
    """Quotes made with this page: the first one starts the count, every other one goes on with it."""
    return len(page.items) + (produced if request.after >= 0 else 0)


async def paged(
    peer: Peer, symbol: str, page: int, waiting: deque[Message], count: int | None = None
) -> AsyncGenerator[Quote, None]:
    """The quotes from the first on, `count` of them (None: for ever). A page of `page` quotes is asked for when the
    next one is needed and none is `waiting`; the last page is as small as what is still missing.
    """
    method, after, left = METHODS["quotes.page"], -1, count
    while left is None or left > 0:
        limit = page if left is None else min(page, left)
        items = (await peer.unary(method, PageRequest(symbol, after, limit))).items
        waiting.extend(items)
        while waiting:
            yield waiting.popleft()
        if len(items) < limit:
            return  # a short page is the last one
        after = items[-1].seq
        await asyncio.sleep(0)  # a peer that answers without waiting would keep the loop to itself
        if left is not None:
            left -= len(items)


def page_bytes(codec: Codec, symbol: str, page: int, count: int) -> int:
    """The encoded pages of `page` quotes in which `count` quotes travel, added up."""
    starts = range(0, count, page)
    return sum(
        len(codec.encode(QuotePage([quote(symbol, seq) for seq in range(start, min(start + page, count))])))
        for start in starts
    )
