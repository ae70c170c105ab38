"""CHOOSING: what to take for which need, by rules over what was measured."""

from __future__ import annotations

from runner.report.choosing import ADVICE, choose
from runner.report.context import Context
from runner.report.table import Column, Table, words


def build(context: Context) -> Table | None:
    """None where the sweep has no runs."""
    if not context.sweep.operations:
        return None
    made = choose(context)
    columns = [
        Column("need", "if you need", "prose"),
        Column("pick", "pick", "prose"),
        Column("because", "because", "prose"),
        Column("cost", "cost", "prose"),
        Column("published_pick", "published pick", "prose", shown=any(choice.published for choice in made)),
        Column("confidence", "confidence", "text"),
    ]
    rows = [
        {
            "need": words(choice.need),
            "pick": words(choice.pick),
            "because": words(choice.because),
            "cost": words(choice.cost),
            "published_pick": words(choice.published),
            "confidence": words(choice.support),
        }
        for choice in made
    ]
    quoted = any(choice.published for choice in made)
    notes = ["confidence: good runs that bear the pick out, of all runs of the pick; a dash for a tie"]
    if any(choice.support == ADVICE for choice in made):
        notes.append(f"{ADVICE}: not measured here; by design and ecosystem, not by numbers of ours")
    return Table(
        "choosing",
        "CHOOSING",
        "rules over the runs above",
        ["errors decide before speed, void runs count for nothing", "the floor is never picked"],
        columns,
        rows,
        notes,
        narrow="records",
        by_itself=any(choice.picks and choice.support != ADVICE for choice in made),
        sources=sorted(
            {need.published.source for need in context.choosing.needs if need.published} if quoted else ()
        ),
    )
