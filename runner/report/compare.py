"""Sentences about who is faster: computed from the runs, whatever they say.

Compared are rows that differ in one thing only: protocols with their default codecs, protocols with the same codec,
and within a protocol its variants and styles. Of many rows not every pair is said, but those that a published
source speaks of, and neighbours in rank.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runner.report.conditions import LABEL
from runner.report.figures import number, ratio
from runner.report.published import Published, Reading, Timing
from runner.report.rows import Row, Rows
from runner.report.stats import Comparison


@dataclass(frozen=True)
class Measure:
    """What is compared. `better`: what the better side is; `more_is_better`: which side that is.

    `values`: say the two values in place of their ratio, and only of pairs that a published source speaks of.
    """

    metric: str
    say: str
    better: str
    more_is_better: bool
    values: bool = False


@dataclass(frozen=True)
class Side:
    """A row and what it is called among the others."""

    row: Row
    name: str


def named(rows: Sequence[Row]) -> list[Side]:
    """Each row with the shortest name that tells it from the others: protocol, and what else differs in it."""

    def several(index: int, protocol: str) -> bool:
        return len({row.key[index] for row in rows if row.key[0] == protocol}) > 1

    sides = []
    for row in rows:
        protocol, engine, codec, variant, *styles = row.key
        words = [protocol]
        words += [engine] if several(1, protocol) else []
        words += [codec] if several(2, protocol) else []
        words += [f"({variant})"] if variant else []
        words += [style for i, style in enumerate(styles, 4) if several(i, protocol)]
        same = [other for other in rows if other.key == row.key]
        words += [row.first.scenario] if len({other.first.scenario for other in same}) > 1 else []
        sides.append(Side(row, " ".join(words)))
    return sides


UNCLAIMED = "no ratio is claimed where a side has only one good run (n=1)"
ONE_CALLER: Mapping[str, Sequence[Any]] = {"connections": [1], "size_bytes": [0], "arrival": ["closed"]}


def quotable(row: Row, under: Mapping[str, Sequence[Any]] | None = None) -> bool:
    """Whether published figures can apply to `row`. `under`: condition -> the values that they are of; without,
    one connection, quotes, and a closed loop.
    """
    return all(row.under.get(key, values[0]) in values for key, values in (under or ONE_CALLER).items())


def sentences(
    rows: Rows,
    measure: Measure,
    left_out: Iterable[str],
    published: Sequence[Published],
    operation: str,
    by_codec: bool = True,
) -> list[str]:
    """One line for each set of comparable rows, and under it one for each pair. `by_codec`: False where nothing is
    encoded, so that nothing is to be said of codecs.
    """
    said: dict[str, list[str]] = {}
    unclaimed = 0
    for group in rows.comparable():
        candidates = [row for row in group if row.first.protocol not in left_out and row.values(measure.metric)]
        told: set[frozenset[int]] = set()
        for heading, members, quoting in sets(candidates, rows.roles, by_codec):
            where = rows.differing(members[0])
            lines = []
            # Within one protocol a name says all that tells a row from the others here, not from its pair alone.
            sides = named(members) if _protocols(members) > 1 else _chosen(named(candidates), members)
            for line in _pairs(sides, measure, published if quoting else (), operation, told):
                if line is None:
                    unclaimed += 1
                else:
                    lines.append(f"  {line}")
            if lines:
                what = measure.say if measure.values else f"{measure.say} as a ratio"
                said.setdefault(f"{what}, {heading}{f', {where}' if where else ''}:", []).extend(lines)
    for one, other in between_labels(rows, measure, left_out):
        line = _line(one, other, measure)
        unclaimed += line is None
        what = measure.say if measure.values else f"{measure.say} as a ratio"
        said.setdefault(f"{what}, between labels:", []).extend([f"  {line}"] if line else [])
    said = {heading: lines for heading, lines in said.items() if lines}
    notes = [note for heading, lines in said.items() for note in (heading, *lines)]
    if unclaimed:
        notes.append(UNCLAIMED)
    return notes


def between_labels(rows: Rows, measure: Measure, left_out: Iterable[str]) -> Iterator[tuple[Side, Side]]:
    """Neighbours, in the order of their labels, among rows that nothing but a label tells apart."""
    alike: dict[tuple[str, ...], list[Row]] = {}
    for row in rows.good:
        if row.first.protocol not in left_out and row.values(measure.metric):
            place = tuple(f"{key}={value}" for key, value in row.under.items() if key != LABEL.key)
            alike.setdefault((*row.key, *place), []).append(row)
    for members in alike.values():
        ordered = sorted(members, key=lambda row: row.first.label)
        labelled = [Side(row, f"{row.first.protocol} {row.first.label or 'without a label'}") for row in ordered]
        yield from itertools.pairwise(labelled)


def sets(rows: Sequence[Row], roles: Sequence[str], by_codec: bool) -> Iterator[tuple[str, list[Row], bool]]:
    """(heading, rows to be compared, whether published readings speak of them)."""
    plain = _plain(rows)
    seen: list[list[Row]] = []
    for styles in dict.fromkeys(row.key[4:] for row in plain):
        alike = [row for row in plain if row.key[4:] == styles]
        said = ", ".join(f"{role} {style}" for role, style in zip(roles, styles, strict=False))
        tail = f", {said}" if len({row.key[4:] for row in plain}) > 1 else ""
        usual = [row for row in alike if row.first.codec == row.first.facts.get("default_codec")]
        if _protocols(usual) > 1:
            seen.append(usual)
            same = len({row.first.codec for row in usual}) == 1
            heading = f"codec {usual[0].first.codec}" if same else "each with its default codec"
            yield (heading if by_codec else "between protocols") + tail, usual, True
        if not by_codec:
            continue
        for codec in sorted({row.first.codec for row in alike}):
            coded = [row for row in alike if row.first.codec == codec]
            if _protocols(coded) > 1 and coded not in seen:
                seen.append(coded)
                yield f"codec {codec}{tail}", coded, False
    for group in _one_apart(rows):
        if not any(all(row in done for row in group) for done in seen):
            yield "within one protocol", group, False


def _plain(rows: Sequence[Row]) -> list[Row]:
    """The rows without a variant, and the variant of a protocol that was measured with no other knobs."""
    variants: dict[str, set[str]] = {}
    for row in rows:
        variants.setdefault(row.first.protocol, set()).add(row.first.variant)
    return [row for row in rows if not row.first.variant or len(variants[row.first.protocol]) == 1]


def _chosen(sides: Sequence[Side], rows: Sequence[Row]) -> list[Side]:
    return [side for side in sides if any(side.row is row for row in rows)]


def comparable_sides(group: Sequence[Row]) -> list[Side]:
    """Of rows that share every condition, those that a published pair of protocols can be about."""
    usual = [row for row in _plain(group) if row.first.codec == row.first.facts.get("default_codec")]
    return named(usual)


def _protocols(rows: Sequence[Row]) -> int:
    return len({row.first.protocol for row in rows})


def _one_apart(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Rows of one protocol whose keys differ in one place: engine, codec, variant, producer or consumer."""
    for index in range(1, max((len(row.key) for row in rows), default=0)):
        groups: dict[tuple[str, ...], list[Row]] = {}
        for row in rows:
            groups.setdefault((*row.key[:index], *row.key[index + 1 :]), []).append(row)
        yield from (group for group in groups.values() if len(group) > 1)
    # A knob may choose the engine: such rows differ in two words, and in one thing.
    chosen: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        chosen.setdefault((row.key[0], row.key[2], *row.key[4:]), []).append(row)
    for group in chosen.values():
        knobs = {row.first.variant for row in group}
        if len(knobs) == len({(row.first.engine, row.first.variant) for row in group}) == len(group) > 1 and (
            len({row.first.engine for row in group}) == len(group)
        ):
            yield group


def _pairs(
    sides: Sequence[Side],
    measure: Measure,
    published: Sequence[Published],
    operation: str,
    told: set[frozenset[int]],
) -> Iterator[str | None]:
    """The lines of one set; None for a pair of which nothing can be claimed. `told`: the pairs of rows that were
    spoken of already, which are not said again.
    """
    for source in published:
        timing: Timing | None = getattr(source, operation)
        if timing is None or not all(quotable(side.row, timing.under) for side in sides):
            continue
        for reading in timing.readings:
            if reading.metric != measure.metric or not quotable(sides[0].row, reading.under or timing.under):
                continue
            for one, other in itertools.product(*(_of(sides, name) for name in reading.pair)):
                told.add(frozenset((id(one.row), id(other.row))))
                yield _line(one, other, measure, timing, reading)
    if measure.values:
        return
    ranked = sorted(sides, key=lambda side: rank(side.row, measure))
    for one, other in itertools.pairwise(ranked):
        pair = frozenset((id(one.row), id(other.row)))
        if pair not in told:
            told.add(pair)
            yield _line(one, other, measure)


def _of(sides: Sequence[Side], protocol: str) -> list[Side]:
    return [side for side in sides if side.row.first.protocol == protocol]


def _middle(row: Row, metric: str) -> float:
    found = row.estimate(metric)
    return found.median if found else 0.0


def rank(row: Row, measure: Measure) -> float:
    middle = _middle(row, measure.metric)
    return -middle if measure.more_is_better else middle


def _line(
    one: Side, other: Side, measure: Measure, timing: Timing | None = None, reading: Reading | None = None
) -> str | None:
    found = one.row.against(other.row, measure.metric)
    if found is None or found.claimed is None:
        return None
    quoted = f" ({agreement(reading, timing, found, measure)})" if timing and reading else ""
    if measure.values:
        first, second = (number(_middle(side.row, measure.metric), 1) for side in (one, other))
        said = f"{one.name} {first} against {other.name} {second}, {spread(found)}"
    else:
        said = f"{one.name} against {other.name}: {spread(found)}"
    return f"{said}: {verdict(found, one, other, measure)}{quoted}"


def spread(found: Comparison) -> str:
    """1.04x [0.97, 1.11]."""
    return f"{ratio(found.ratio)} [{number(found.low, 2)}, {number(found.high, 2)}]"


def verdict(found: Comparison, one: Side, other: Side, measure: Measure) -> str:
    """Who is better, or that it cannot be told."""
    if found.higher is None:
        return f"no clear difference{', equivalent' if found.equivalent else ''}"
    first_is_better = (found.higher == 0) == measure.more_is_better
    return f"{(one if first_is_better else other).name} is {measure.better}"


def agreement(reading: Reading, timing: Timing, ours: Comparison, measure: Measure) -> str:
    """What was published of the pair, and whether ours says the same. `ours`: the same pair, the same way round.

    agrees: the same is claimed; undecided here: nothing is claimed here but there, or what was published lies
    within our bracket; differs: something else is claimed.
    """
    return f"published {published_words(reading, timing, measure)}: {stance(reading, timing, ours)}"


def published_words(reading: Reading, timing: Timing, measure: Measure) -> str:
    """What was published of the pair."""
    first, second = (timing.value(name, reading.metric) for name in reading.pair)
    said = []
    if first and second:
        said = [f"{number(first, 1)} against {number(second, 1)}" if measure.values else ratio(first / second)]
    if reading.about:
        said.append(f"about {number(reading.about, 1)}x")
    if reading.across:
        said.append(f"{number(reading.across[0], 1)}x to {number(reading.across[1], 1)}x over its runs")
    if reading.higher is None:
        said.append("no clear difference")
    else:
        better = (reading.pair[0] == reading.higher) == measure.more_is_better
        said.append(f"{reading.pair[0 if better else 1]} {measure.better}")
    said += [reading.note] if reading.note else []
    return ", ".join(said)


def stance(reading: Reading, timing: Timing, ours: Comparison) -> str:
    """Whether ours, the same pair the same way round, says what was published; see `agreement`."""
    first, second = (timing.value(name, reading.metric) for name in reading.pair)
    higher = None if ours.higher is None else reading.pair[ours.higher]
    within = bool(first and second and ours.low <= first / second <= ours.high)
    other = "undecided here" if higher is None or within else "differs"
    return "agrees" if higher == reading.higher else other


def quoting(rows: Rows, published: Sequence[Published], operation: str) -> list[str]:
    """The names of the sources that have something to say of `rows`."""
    found: list[tuple[str, Timing | None]] = [(source.name, getattr(source, operation)) for source in published]
    return [name for name, timing in found if timing and any(quotable(row, timing.under) for row in rows.all)]


def quoted_figures(
    rows: Rows, published: Sequence[Published], operation: str, metrics: Sequence[tuple[str, str, str, int]]
) -> list[str]:
    """What was printed elsewhere, one line per source; none where it applies to no row.

    `metrics`: (metric, how it is called, its unit, decimals).
    """
    lines = []
    for source in published:
        timing: Timing | None = getattr(source, operation)
        if timing is None or not any(quotable(row, timing.under) for row in rows.all):
            continue
        seen: Counter[str] = Counter()
        parts = []
        for figure in timing.figures:
            seen[figure.protocol] += 1
            values = [
                f"{say} {number(value, digits)} {unit}".strip()
                for metric, say, unit, digits in metrics
                if (value := figure.value(metric)) is not None
            ]
            again = " (second run)" if seen[figure.protocol] > 1 else ""
            parts.append(f"{figure.protocol}{again} {', '.join(values)}")
        lines.append(f"published ({source.name}): {'; '.join(parts)}")
    return lines
