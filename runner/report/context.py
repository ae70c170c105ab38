"""What a table is made from: one sweep, the published figures, the choosing rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from runner.report import conditions as c
from runner.report.needs import Choosing
from runner.report.published import Published
from runner.report.read import Run, Sweep
from runner.report.rows import Rows, rows_of
from runner.report.stats import EQUIVALENT_PCT

# Runs of an operation that are rows of another table: the two kinds of loop are different experiments.
OPEN_LOOP = {"open_loop": "request_response"}

_BULK = (c.BATCH, c.CONNECTIONS, c.MULTIPLEX, c.warmup("records"), c.CEILING, c.PLACEMENT, *c.PROCESS)

# operation (or key of OPEN_LOOP) -> the conditions of its rows (in the order in which rows are sorted and
# conditions said), and what identifies a cell beside protocol, engine, codec and variant.
OPERATIONS: dict[str, tuple[Sequence[c.Condition], Sequence[str]]] = {
    "payload": ((c.LABEL, c.MESSAGE, *c.PROCESS), ()),
    "request_response": (
        (
            c.LABEL,
            c.BODY,
            c.ARRIVAL,
            c.CONNECTIONS,
            c.MULTIPLEX,
            *c.counted_after_warmup("calls"),
            c.PLACEMENT,
            *c.PROCESS,
        ),
        (),
    ),
    "open_loop": (
        (
            c.LABEL,
            c.BODY,
            c.OPEN_ARRIVAL,
            c.RATE,
            c.CONNECTIONS,
            c.MULTIPLEX,
            c.LASTS,
            c.counted_after_warmup("calls")[1],
            c.PLACEMENT,
            *c.PROCESS,
        ),
        (),
    ),
    "saturation": (
        (
            c.LABEL,
            c.BODY,
            c.OBJECTIVE,
            c.SEARCHED_ARRIVAL,
            c.CONNECTIONS,
            c.MULTIPLEX,
            c.STEP,
            c.counted_after_warmup("calls")[1],
            c.PLACEMENT,
            *c.PROCESS,
        ),
        (),
    ),
    "stream": (
        (c.LABEL, c.STREAMS, c.MULTIPLEX, *c.counted_after_warmup("messages"), c.PLACEMENT, *c.PROCESS),
        ("producer", "consumer"),
    ),
    "call_overhead": (
        (c.LABEL, c.ARRIVAL, *c.counted_after_warmup("calls"), c.PLACEMENT, *c.PROCESS),
        ("driven_by",),
    ),
    "stream_overhead": (
        (c.LABEL, *c.counted_after_warmup("messages"), c.PLACEMENT, *c.PROCESS),
        ("driven_by", "producer", "consumer"),
    ),
    "backpressure": (
        (c.LABEL, c.ASKED, c.SETTLE, c.CEILING, c.PLACEMENT, *c.PROCESS),
        ("producer", "consumer"),
    ),
    "hello": (
        (
            c.LABEL,
            c.SERVICE_TIME,
            c.SERVICE_WORK,
            c.ARRIVAL,
            c.CONNECTIONS,
            c.MULTIPLEX,
            *c.counted_after_warmup("requests", "requests"),
            c.PLACEMENT,
            *c.PROCESS,
        ),
        (),
    ),
    "upload": ((c.LABEL, c.RECORDS, c.SERVICE_TIME_EACH, *_BULK), ("shape", "sender")),
    "download": ((c.LABEL, c.RECORDS, *_BULK), ("shape", "producer")),
}


@dataclass(frozen=True)
class Context:
    """Everything that a table may look at. `equivalent_pct`: what differs by so much or less is not called
    different.
    """

    sweep: Sweep
    choosing: Choosing
    published: Sequence[Published] = ()
    equivalent_pct: float = EQUIVALENT_PCT

    def rows(self, operation: str) -> Rows:
        """The rows of one operation, read and grouped once."""
        if operation not in self._rows:
            found, more = OPERATIONS[operation]
            runs = self._runs(operation)
            conditions = [*found, c.other_settings(runs, found, more)]
            self._rows[operation] = rows_of(
                runs, conditions, self.choosing.floor, self.letters, more, equivalent_pct=self.equivalent_pct
            )
        return self._rows[operation]

    def _runs(self, operation: str) -> Sequence[Run]:
        runs = self.sweep.runs(OPEN_LOOP.get(operation, operation))
        if operation not in {*OPEN_LOOP, *OPEN_LOOP.values()}:
            return runs
        return [run for run in runs if (c.ARRIVAL.of(run) != "closed") == (operation in OPEN_LOOP)]

    @cached_property
    def _rows(self) -> dict[str, Rows]:
        return {}

    @cached_property
    def letters(self) -> dict[str, str]:
        """environment hash -> A, B, ...: the most used first, as the header lists them."""
        return {name: chr(ord("A") + i) if i < 26 else name for i, name in enumerate(self.sweep.environments)}
