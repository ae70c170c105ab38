"""Printed bulk transfers beside ours: which way a ratio goes, how large it is, and whether ours agrees.

Ours is of the number of records that was printed where that was measured, else of the most that both sides were
measured with, and the sentence says which.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from runner.report.compare import spread
from runner.report.conditions import SERVICE_TIME_EACH
from runner.report.figures import counted, number, ratio, size
from runner.report.published import Moved, Published, Share, Transfer
from runner.report.rows import Row, Rows
from runner.report.stats import Comparison

MEMORY = "memory"  # what the reason of a run begins with that was ended at the memory ceiling


def speaks(rows: Rows, transfer: Transfer) -> bool:
    """Whether any of `rows` is of a way to send that was printed."""
    return any(_is(row, moved) for row in rows.all for moved in transfer.figures)


def transfers(rows: Rows, published: Sequence[Published], operation: str) -> list[str]:
    """A heading for each source, and a line for each thing that it printed."""
    lines: list[str] = []
    for source in published:
        transfer: Transfer | None = getattr(source, operation)
        if transfer is not None and speaks(rows, transfer):
            lines.append(f"published ({source.name}), {transfer.conditions}; agrees: the same side takes more:")
            lines += [f"  {line}" for line in _said(rows, transfer)]
    return lines


def _said(rows: Rows, transfer: Transfer) -> Iterator[str]:
    for base, other in _pairs(transfer.figures):
        if base.seconds and other.seconds:
            yield _ratio(rows, base, other, "seconds")
        if base.payload_bytes and other.payload_bytes:
            yield _ratio(rows, base, other, "payload_bytes")
    if transfer.share:
        yield _share(rows, transfer.share)
    yield from (_ended(rows, moved) for moved in transfer.figures if moved.out_of)


def _pairs(figures: Sequence[Moved]) -> Iterator[tuple[Moved, Moved]]:
    for i, other in enumerate(figures):
        before = [moved for moved in figures[:i] if moved.records == other.records and not moved.out_of]
        if before and not other.out_of:
            yield before[-1], other


def _ratio(rows: Rows, base: Moved, other: Moved, metric: str) -> str:
    theirs = getattr(other, metric) / getattr(base, metric)
    over = "over " if other.over and metric == "seconds" else ""
    said = (
        f"{_name(other)} {over}{_amount(getattr(other, metric), metric)} against {_name(base)} "
        f"{_amount(getattr(base, metric), metric)} at {counted(base.records, 'record')}, {over}{ratio(theirs)}"
    )
    ours = _ours(rows, base, other, metric)
    if ours is None:
        return f"{said}; not measured here"
    found, records = ours
    if found.claimed is None and metric == "seconds":
        return f"{said}; here one run each at {counted(records, 'record')}, nothing is claimed"
    exact = metric != "seconds"  # bytes are the same in every run
    claimed = exact or found.claimed
    way = (found.ratio > 1) == (theirs > 1)
    word = ("agrees" if way else "differs") if claimed else "undecided here"
    shown = ratio(found.ratio) if exact else spread(found)
    return f"{said}; here {shown} at {counted(records, 'record')}: {word}"


def _ours(rows: Rows, base: Moved, other: Moved, metric: str) -> tuple[Comparison, float] | None:
    """(other against base, of how many records), at those printed or else at the most that both have."""
    found: dict[float, Comparison] = {}
    for group in rows.comparable():
        ones, others = ([row for row in group if _is(row, moved)] for moved in (other, base))
        if ones and others and (compared := ones[0].against(others[0], metric)):
            found.setdefault(group[0].under["records"], compared)
    if not found:
        return None
    records = base.records if base.records in found else max(found)
    return found[records], records


def _share(rows: Rows, share: Share) -> str:
    low, high = (100 * part for part in share.across)
    said = f"{share.pair[0]} is {number(low)} to {number(high)} % of {share.pair[1]} in bytes"
    found = [_bytes(rows, codec) for codec in share.pair]
    if found[0] is None or found[1] is None:
        return f"{said}; not measured here"
    ours = 100 * found[0] / found[1]
    return f"{said}; here {number(ours, 1)} %: {'agrees' if low <= ours <= high else 'differs'}"


def _bytes(rows: Rows, codec: str) -> float | None:
    """Bytes per record of the plain rows with `codec`, at the most records."""
    coded = [row for row in rows.good if row.first.codec == codec and not row.first.variant]
    coded = [row for row in coded if row.estimate("bytes_per_record")]
    if not coded:
        return None
    last = max(coded, key=lambda row: (row.under["records"], row.key))
    found = last.estimate("bytes_per_record")
    return found.median if found else None


def _ended(rows: Rows, moved: Moved) -> str:
    """What became of the transfer that ran out of something there."""
    said = f"{_name(moved)} ran out of {moved.out_of} at {counted(moved.records, 'record')}"
    mine = [row for row in rows.all if _is(row, moved)]
    stopped = [row for row in mine if any(run.reason.startswith(MEMORY) for run in row.runs)]
    if stopped:
        records = min(row.under["records"] for row in stopped)
        ceiling = number(stopped[0].under.get("max_rss_mb"))
        return f"{said}; here ended at the memory ceiling of {ceiling} MB at {counted(records, 'record')}: agrees"
    done = [row for row in mine if row.good and row.under["records"] >= moved.records]
    if done:
        grown = done[-1].estimate("driver_rss_growth_bytes")
        how = f", and the sender grew by {size(grown.median)}" if grown else ""
        return f"{said}; here {counted(done[-1].under['records'], 'record')} went through{how}: differs"
    return f"{said}; not measured here with as many"


def _is(row: Row, moved: Moved) -> bool:
    """Whether `row` is sent as `moved` was; a single body is written whole, so that a sender is nothing to it."""
    protocol, _, codec, variant, shape, sender = row.key
    alike = sender in (moved.sender, "") or moved.shape == "single"
    alike = alike and not row.under.get(SERVICE_TIME_EACH.key)
    return (protocol, codec, variant, shape) == (moved.protocol, moved.codec, "", moved.shape) and alike


def _name(moved: Moved) -> str:
    return " ".join([moved.protocol, moved.shape, *([moved.sender] if moved.sender != "awaited" else [])])


def _amount(value: float, metric: str) -> str:
    return f"{number(value, 3)} s" if metric == "seconds" else size(value)
