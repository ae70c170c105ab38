"""BACK-PRESSURE: what a server makes for a reader that has gone quiet, what bounds it, and where the surplus is."""

from __future__ import annotations

from collections.abc import Sequence

from runner.report import resources
from runner.report.compare import named
from runner.report.context import Context
from runner.report.figures import counted, number, plain, size
from runner.report.published import Made, Published
from runner.report.read import made_once_flat
from runner.report.rows import NO_ERRORS, Row, Rows
from runner.report.stats import Estimate, estimate
from runner.report.table import NOTHING, Cell, Column, Table, figure, middle, words

OPERATION = "backpressure"
PLACES = ("server", "client", "kernel", "unaccounted")
UNMEASURED = Cell("not measured", None)
SHAPES = {"demand": "exactly what was asked for", "rising": "still rising", "flat": "flat"}
PRODUCERS = {
    "awaited": "the next message is made when the transport takes the last one",
    "push": "made as fast as it goes, into an outbound buffer of the service",
    "gated": "as push, but it stops while that buffer is above a mark",
    "paged": "no stream: a page is made when the application asks for one, and the rest of it waits there",
    "credited": 'made only against "n more" messages of the application',
}
CONSUMERS = {
    "pull": "quiet by not asking for the next message",
    "eager": "quiet while a reader in the background drains the connection into memory",
}


def build(context: Context) -> Table | None:
    """None without runs."""
    rows = context.rows(OPERATION)
    if not rows.all:
        return None
    periods = sorted({quiet for row in rows.all for run in row.runs for quiet in run.quiet})
    columns = [
        *rows.key_columns(Column("producer", "producer", "key"), Column("consumer", "consumer", "key")),
        *(Column(f"produced_at_{plain(quiet)}_s_messages", f"{plain(quiet)} s", spread=True) for quiet in periods),
        Column("final_messages", "in the\nend", spread=True),
        Column("bounded_by", "bounded by", "text"),
        Column("bound_reason", "reason", "text", shown=False),
        Column("plateau_messages", "plateau messages", shown=False),
        Column("plateau_bytes", "plateau bytes", shown=False),
        Column("plateau_after_s", "flat\nafter s"),
        Column("surplus", "where the surplus is\nat the end", "text"),
        *(Column(f"surplus_{place}_messages", f"surplus {place}", shown=False) for place in PLACES),
        Column("server_rss_growth_bytes", "server\nRSS\ngrowth"),
        Column("driver_rss_growth_bytes", "driver\nRSS\ngrowth"),
        *resources.peaks(),
        Column("errors", "errors", "text", shown=not rows.faultless),
        Column("error_kinds", "errors by kind", "text", shown=False),
    ]

    def cells(row: Row) -> dict[str, Cell]:
        counts = {f"produced_at_{plain(quiet)}_s_messages": _count(produced_at(row, quiet)) for quiet in periods}
        return {
            **rows.key_cells(row),
            "producer": words(row.key[4]),
            "consumer": words(row.key[5]),
            **counts,
            "final_messages": _count(final(row)),
            "bounded_by": _bounded_by(row),
            "bound_reason": words(row.finding("bound_reason")),
            **{name: _plain(row, name) for name in ("plateau_messages", "plateau_bytes")},
            "plateau_after_s": middle(row.estimate("plateau_after_s"), 1),
            "surplus": _surplus(row),
            **{f"surplus_{place}_messages": _plain(row, f"surplus_{place}") for place in PLACES},
            **{
                f"{side}_rss_growth_bytes": _growth(row, f"{side}_rss_growth_bytes")
                for side in ("server", "driver")
            },
            **resources.peak_cells(row),
            "errors": row.errors,
            "error_kinds": row.error_kinds,
        }

    return Table(
        OPERATION,
        "BACK-PRESSURE",
        "messages that the server made for a reader that went quiet",
        rows.conditions(),
        columns,
        [cells(row) for row in rows.all],
        [
            *_unbounded(rows),
            *(line for source in context.published for line in _published(source, rows)),
            *_legend(rows),
            *([NO_ERRORS] if rows.faultless else []),
        ],
        sources=[source.name for source in context.published if source.backpressure],
    )


def produced_at(row: Row, quiet_s: float) -> Estimate | None:
    """Messages made by then, over the runs that got so far; None if none did."""
    return estimate([value for run in row.runs if (value := run.quiet.get(quiet_s)) is not None])


def final(row: Row) -> Estimate | None:
    """Messages made once the count stood still, over the runs in which it did; None if it never did."""
    return estimate([made for run in row.runs if (made := made_once_flat(run)) is not None])


def bound_words(row: Row) -> str:
    """What bounds the row: demand, buffers (how much they took), nothing; with how many runs say so."""
    seen = row.findings("bounded_by")
    parts = []
    for word, n in sorted(seen.items(), key=lambda item: (-item[1], item[0])):
        plateau = row.estimate("plateau_bytes")
        detail = f" ({size(plateau.median)})" if plateau else ""
        share = f" {n}/{sum(seen.values())}" if len(seen) > 1 else ""
        parts.append(f"{word}{detail if word == 'buffers' else ''}{share}")
    return ", ".join(parts)


def _bounded_by(row: Row) -> Cell:
    said = bound_words(row)
    return Cell(said, row.finding("bounded_by")) if said else NOTHING


def _count(found: Estimate | None) -> Cell:
    """A number of messages; the bracket only where the runs differ."""
    if found is None:
        return NOTHING
    bracket = (number(found.low), number(found.high)) if found.low < found.high else None
    return Cell(number(found.median), found.median, found.low, found.high, bracket)


def _plain(row: Row, metric: str) -> Cell:
    found = row.estimate(metric)
    return figure(found.median if found else None)


def _surplus(row: Row) -> Cell:
    """Per cent of the surplus by place, the largest first; a share that rounds to nothing is left out."""
    found = {place: e.median for place in PLACES if (e := row.estimate(f"surplus_{place}"))}
    if not found:
        return UNMEASURED if row.good else NOTHING
    total = sum(found.values())
    if total <= 0:
        return Cell("none" if total == 0 else "does not add up", None)
    shares = sorted(((100 * n / total, place) for place, n in found.items()), key=lambda item: -item[0])
    said = ", ".join(f"{number(share)} % {place}" for share, place in shares if abs(share) >= 0.5)
    return Cell(said, said)


def _growth(row: Row, metric: str) -> Cell:
    found = row.estimate(metric)
    if found is None:
        return UNMEASURED if row.good else NOTHING
    return Cell(size(found.median), found.median)


def _unbounded(rows: Rows) -> list[str]:
    """Why it is said of a row that nothing bounds it."""
    reasons: dict[str, list[str]] = {}
    for side in named(rows.good):
        name = f"{side.name} {rows.differing(side.row)}".strip()
        for reason in sorted({r.findings.get("bound_reason", "") for r in side.row.runs if _unbound(r.findings)}):
            reasons.setdefault(reason or "no reason was recorded", []).append(name)
    return [f"nothing: {reason} ({', '.join(who)})" for reason, who in sorted(reasons.items())]


def _unbound(findings: object) -> bool:
    return isinstance(findings, dict) and findings.get("bounded_by") == "nothing"


def _legend(rows: Rows) -> list[str]:
    used = {style for row in rows.all for style in row.key[4:6]}
    said = [
        f"{role}: {'; '.join(f'{style}, {styles[style]}' for style in styles if style in used)}"
        for role, styles in (("producer", PRODUCERS), ("consumer", CONSUMERS))
        if used & set(styles)
    ]
    return [
        *said,
        "in the end: messages made once the count stood still, those asked for included; a dash where it never did",
        "surplus: made and not consumed; server, in outbound buffers of service and library; client, in its inbox "
        "and library; kernel, in socket buffers (bytes / mean size)",
    ]


def _published(source: Published, rows: Rows) -> list[str]:
    """The printed counts of each protocol and producer, and whether ours have the same shape."""
    quiet = source.backpressure
    if quiet is None:
        return []
    lines = [f"published ({source.name}), {number(quiet.asked)} asked for:"]
    groups: dict[tuple[str, str], list[Made]] = {}
    for made in quiet.figures:
        groups.setdefault((made.protocol, made.producer), []).append(made)
    mine = [row for row in rows.good if not row.first.variant and row.key[5] in ("pull", "")]
    others = [row for row in mine if (row.first.protocol, row.key[4]) not in groups and bound_words(row)]
    for (protocol, producer), printed in groups.items():
        here = [row for row in mine if row.first.protocol == protocol and row.key[4] == producer]
        lines += [f"  {line}" for line in _compared(printed, here, quiet.asked, rows)]
    if others:
        said = ", ".join(f"{row.first.protocol} {row.key[4]} by {bound_words(row)}" for row in others)
        lines.append(f"  with another producer, bounded here: {said}")
    if quiet.open:
        lines.append(f"  left open there: {quiet.open}; the columns of the surplus answer it here")
    return lines


def _compared(printed: Sequence[Made], here: Sequence[Row], asked: int, rows: Rows) -> list[str]:
    """One sentence for each row of ours with the protocol and producer of `printed`, or one that there is none."""
    first, *again = printed
    shape = first.shape(asked)
    said = f"{first.protocol} {first.producer}: {_counts(first)}"
    said += f" (again: {'; '.join(map(_counts, again))})" if again else ""
    said += f", {SHAPES[shape]}" if shape else ""
    lines = []
    for row in here:
        ours = _shape(row, sorted(first.produced))
        if ours and shape:
            where = rows.differing(row)
            where = f"{where}: " if where else ""
            lines.append(f"{said}; {where}{_verdict(row, ours, shape, max(first.produced))}")
    return lines or [f"{said}; not measured here"]


def _verdict(row: Row, ours: str, shape: str, last_s: float) -> str:
    """Whether ours, until the last published quiet period and after it, went as published."""
    if ours != shape:
        return f"here {SHAPES[ours]} by then, in the end bounded by {bound_words(row)}: differs"
    stopped = final(row)
    if shape == "rising" and stopped:
        after = row.estimate("plateau_after_s")
        when = f" after {number(after.median, 1)} s" if after else ""
        some = f" in {stopped.n}/{counted(len(row.runs), 'run')}" if stopped.n < len(row.runs) else ""
        here = f"here it stopped at {number(stopped.median)} messages{when}{some}"
        return f"differs: as published up to {plain(last_s)} s, but {here}"
    return f"here {SHAPES[ours]} by then, in the end bounded by {bound_words(row)}: agrees"


def _counts(made: Made) -> str:
    periods = sorted(made.produced)
    counts = " / ".join(number(made.produced[quiet]) for quiet in periods)
    return f"{counts} at {' / '.join(map(plain, periods))} s"


def _shape(row: Row, periods: Sequence[float]) -> str:
    """The same words as for published counts, at the same quiet periods; a period not reached counts as rising."""
    counts = [produced_at(row, quiet) for quiet in periods if any(quiet in run.quiet for run in row.runs)]
    reached = [found.median for found in counts if found is not None]
    if len(counts) < 2 or not reached:
        return ""
    if len(reached) < len(counts):
        return "rising"
    if set(reached) == {row.under["asked"]}:
        return "demand"
    return "rising" if reached[-1] > reached[-2] else "flat"
