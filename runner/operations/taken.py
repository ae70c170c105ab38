"""What a reader has taken of a stream, and what waited for it meanwhile."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from adapters.api import Message
from runner.drive import Drive
from runner.operations.api import Raw
from runner.quotes import quote
from runner.samples import filled, nearest_rank, slots

SYMBOL = "AAPL"


class Taken:
    """What arrived of one stream: `stamps[i]` of item i, allocated before the window; `items`, checked after it."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.stamps = slots(count)
        self.items: list[Message] = []
        self.asked_ns = 0


def shares(count: int, streams: int) -> list[int]:
    """`count` items over `streams`: one more for the first few where it does not come out even."""
    each, over = divmod(count, streams)
    return [each + (i < over) for i in range(streams)]


class Held:
    """The most that the client was seen to hold, over all streams: in inboxes, and in visible queues."""

    def __init__(self) -> None:
        self.most: int | None = None
        self._now: dict[int, int] = {}
        self._sum = 0

    def saw(self, *places: tuple[int, int]) -> None:
        """`places`: (what is looked at, as an id; the items that wait there)."""
        for place, items in places:
            self._sum += items - self._now.get(place, 0)
            self._now[place] = items
        if self.most is None or self._sum > self.most:
            self.most = self._sum


def sort_out(drive: Drive, taken: Sequence[Taken]) -> None:
    """After the window: what arrived, when, and whether it was what had been asked for."""
    raw, stamps = drive.raw, [filled(each.stamps) for each in taken]
    for each in taken:
        _verify(raw, each.items, each.count)
    raw.counts |= {"messages": sum(each.count for each in taken), "arrived": sum(map(len, stamps))}
    some = [(each.asked_ns, found) for each, found in zip(taken, stamps, strict=True) if found]
    if not some:
        return
    raw.window_ns = max(found[-1] for _, found in some) - min(asked for asked, _ in some)
    firsts = sorted(found[0] - asked for asked, found in some)
    raw.counts["first_ns"] = nearest_rank(firsts, 50.0) or firsts[0]
    if len(taken) > 1:
        lasted = [found[-1] - asked for asked, found in some]
        raw.counts |= {"first_max_ns": firsts[-1], "fastest_ns": min(lasted), "slowest_ns": max(lasted)}
    raw.samples["gap"] = list(itertools.chain.from_iterable(_gaps(found) for _, found in some))


def _gaps(stamps: Sequence[int]) -> Iterator[int]:
    return (b - a for a, b in itertools.pairwise(stamps))


def _verify(raw: Raw, items: list[Message], count: int) -> None:
    """Number, order and content of what arrived; whatever is not as asked for is an error."""
    wrong = sum(item != quote(SYMBOL, seq) for seq, item in enumerate(items[:count]))
    for kind, n in {
        "wrong_message": wrong,
        "missing_message": max(count - len(items), 0),
        "surplus_message": max(len(items) - count, 0),
    }.items():
        if n:
            raw.errors[kind] = raw.errors.get(kind, 0) + n
