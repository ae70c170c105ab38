"""What a source read off its charts, one line per reading, and whether ours say the same under each condition."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace

from runner.report.compare import Measure, Side, comparable_sides, published_words, quotable, spread, stance
from runner.report.figures import listed
from runner.report.published import Published, Reading, Timing
from runner.report.rows import Rows


def readings(
    rows: Rows, published: Sequence[Published], operation: str, measures: Mapping[str, Measure]
) -> list[str]:
    """A heading for each source that speaks of a pair of protocols in `rows`, and a line for each of its readings.

    `measures`: how each metric is called and which side of it is better.
    """
    lines: list[str] = []
    for source in published:
        timing: Timing | None = getattr(source, operation)
        if timing is None:
            continue
        told = replace(rows, all=[row for row in rows.good if quotable(row, timing.under)])
        groups = [(told.differing(group[0]), comparable_sides(group)) for group in told.comparable()]
        there = {side.row.first.protocol for _, sides in groups for side in sides}
        said = [
            _line(reading, timing, measures[reading.metric], groups, rows)
            for reading in timing.readings
            if there.issuperset(reading.pair)
        ]
        lines += [f"published ({source.name}), {timing.conditions}:", *said] if said else []
    return lines


def _line(
    reading: Reading, timing: Timing, measure: Measure, groups: Sequence[tuple[str, Sequence[Side]]], rows: Rows
) -> str:
    here = []
    for where, sides in groups:
        if not sides or not quotable(sides[0].row, reading.under or timing.under):
            continue
        pairs = itertools.product(*([s for s in sides if s.row.first.protocol == name] for name in reading.pair))
        for one, other in pairs:
            found = one.row.against(other.row, measure.metric)
            if found is None or found.claimed is None:
                continue
            names = "" if (one.name, other.name) == tuple(reading.pair) else f"{one.name} against {other.name} "
            at = f" at {where}" if where else ""
            here.append(f"{names}{spread(found)}{at}: {stance(reading, timing, found)}")
    under = [
        listed((c.say(value) for value in reading.under[c.key]), "or") for c in rows.known if c.key in reading.under
    ]
    at = f" at {', '.join(under)}" if under else ""
    told = f"  {measure.say}{at}: {published_words(reading, timing, measure)}"
    if not here:
        return f"{told}; here nothing can be claimed"
    return f"{told}; here {reading.pair[0]} against {reading.pair[1]} {'; '.join(here)}"
