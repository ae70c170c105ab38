"""Two sweeps cell by cell: which cells are the same question, what else differs, and what nothing stands against.

A cell is told from the others of its sweep by what was swept: whatever has several values among the runs of one
scenario and protocol, in either sweep. What has one value in each sweep, but not the same, does not keep two cells
apart: that is a difference of the pair, and it is said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from sqlalchemy import Connection, select

from runner.report.changed import Change, changes, conditions, machine, settings
from runner.report.read import ReportError, Sweep
from runner.report.stored import Clause, Stored, said, selected, stored_runs
from runner.store import schema

GOOD = "ok"
# Told by the columns engine, codec and variant.
_KNOBS = ("protocol.", "codec.")


@dataclass(frozen=True)
class Measured:
    """The runs of one sweep, or `only` some of them. `metrics`: run_id -> metric -> value."""

    sweep: Sweep
    database: str
    runs: Sequence[Stored]
    metrics: Mapping[str, Mapping[str, float]]
    only: Sequence[Clause] = ()

    @property
    def title(self) -> str:
        """For the head of a comparison."""
        started = self.sweep.started_at[:16].replace("T", " ")
        which = f"runs with {' and '.join(map(str, self.only))} of " if self.only else ""
        sweep = f"{which}sweep {self.sweep.sweep_id}"
        return f"{self.database} · {sweep} · {self.sweep.command} · started {started} UTC"

    def narrowed(self, only: Sequence[Clause]) -> Measured:
        """The runs for which all of `only` hold. Raises ReportError where there are none."""
        runs = selected(self.runs, only)
        if not runs:
            said = " and ".join(map(str, only))
            raise ReportError(f"no run of sweep {self.sweep.sweep_id} has {said} (bakeoff runs lists them)")
        return replace(self, runs=runs, only=only)


@dataclass(frozen=True)
class CellRuns:
    """The runs of one cell. `told`: what tells it from the others of its scenario and protocol."""

    side: Measured
    runs: Sequence[Stored]
    told: Mapping[str, str]

    def column(self, name: str) -> str:
        """A column of the table of runs; all runs of the cell have it alike, or the first stands for them."""
        return said(self.runs[0].row[name])

    @property
    def operation(self) -> str:
        """What was measured."""
        return self.column("operation")

    @cached_property
    def good(self) -> list[Stored]:
        """The runs whose numbers count."""
        return [run for run in self.runs if run.row["verdict"] == GOOD]

    @property
    def others(self) -> str:
        """`1 void, 1 failed`; "" where all are good."""
        seen = Counter(run.row["verdict"] for run in self.runs if run.row["verdict"] != GOOD)
        return ", ".join(f"{n} {verdict}" for verdict, n in sorted(seen.items()))

    @property
    def name(self) -> str:
        """`request_response grpc protobuf connections=16`: as short as it can be."""
        words = [self.column("scenario"), self.column("protocol")]
        words += [self.told[key] for key in ("engine", "codec") if self.told.get(key)]
        words += [f"({self.told['variant']})"] if self.told.get("variant") else []
        return " ".join([*words, self.swept]).strip()

    @property
    def swept(self) -> str:
        """What tells it apart beside engine, codec and variant."""
        return " ".join(
            f"{key.removeprefix('operation.')}={value}"
            for key, value in self.told.items()
            if key not in ("engine", "codec", "variant")
        )

    def values(self, metric: str) -> list[float]:
        """That of each good run that has it, in the order of the plan."""
        found = (self.side.metrics.get(run.row["run_id"], {}) for run in self.good)
        return [values[metric] for values in found if metric in values]

    def words(self, finding: str) -> list[str]:
        """That of each good run that has it."""
        return [said(run.row["findings"][finding]) for run in self.good if finding in run.row["findings"]]


@dataclass(frozen=True)
class Pair:
    """The same cell in two sweeps."""

    base: CellRuns
    new: CellRuns

    @cached_property
    def differences(self) -> list[Change]:
        """Settings and conditions that are not the same; the machine and its versions are another matter."""
        found = [
            change
            for facts in (settings, conditions)
            for change in changes(map(facts, self.base.good), map(facts, self.new.good))
            if change.key != "label"
        ]
        return list({change.key.removeprefix("operation."): change for change in found}.values())


@dataclass(frozen=True)
class Pairs:
    """`pairs`: cells that are in both, the others by side. `machine`: what differs in it and in its versions."""

    pairs: Sequence[Pair]
    only_base: Sequence[CellRuns]
    only_new: Sequence[CellRuns]
    machine: Sequence[Change]


def measured(connection: Connection, sweep: Sweep, database: str) -> Measured:
    """All runs of the sweep with their measurements."""
    table, run = schema.measurement, schema.run
    query = (
        select(table.c.run_id, table.c.metric, table.c.value)
        .join(run, run.c.run_id == table.c.run_id)
        .where(run.c.sweep_id == sweep.sweep_id)
    )
    metrics: dict[str, dict[str, float]] = {}
    for run_id, metric, value in connection.execute(query):
        metrics.setdefault(run_id, {})[metric] = value
    return Measured(sweep, database, stored_runs(connection, sweep_id=sweep.sweep_id), metrics)


def cells(side: Measured) -> list[CellRuns]:
    """The cells of one sweep."""
    return [cell for group in _grouped(side.runs).values() for cell in _cells(side, group, _swept(group))]


def paired(base: Measured, new: Measured) -> Pairs:
    """Every cell of both sweeps, in a pair or alone, in the order of BASE and then of NEW."""
    olds, news = _grouped(base.runs), _grouped(new.runs)
    pairs: list[Pair] = []
    only_base: list[CellRuns] = []
    only_new: list[CellRuns] = []
    for group in dict.fromkeys([*olds, *news]):
        old, late = olds.get(group, []), news.get(group, [])
        swept = list(dict.fromkeys([*_swept(old), *_swept(late)]))
        one = {tuple(cell.told.values()): cell for cell in _cells(base, old, swept)}
        other = {tuple(cell.told.values()): cell for cell in _cells(new, late, swept)}
        pairs += [Pair(cell, other[key]) for key, cell in one.items() if key in other]
        only_base += [cell for key, cell in one.items() if key not in other]
        only_new += [cell for key, cell in other.items() if key not in one]
    before = _machines(run for pair in pairs for run in pair.base.good)
    after = _machines(run for pair in pairs for run in pair.new.good)
    return Pairs(pairs, only_base, only_new, changes(before, after))


def _machines(runs: Iterable[Stored]) -> list[dict[str, str]]:
    """Each once: thousands of runs share one."""
    return [machine(run) for run in {run.row["environment_hash"]: run for run in runs}.values()]


def _grouped(runs: Iterable[Stored]) -> dict[tuple[str, ...], list[Stored]]:
    found: dict[tuple[str, ...], list[Stored]] = {}
    for run in runs:
        key = (run.row["scenario"], run.row["operation"], run.row["protocol"])
        found.setdefault(key, []).append(run)
    return found


def _swept(runs: Sequence[Stored]) -> list[str]:
    """The keys that have several values among `runs`. One that only some have, has several."""
    identities = [run.settings for run in runs]
    keys = dict.fromkeys(key for found in identities for key in found)
    return [key for key in keys if not key.startswith(_KNOBS) and len({found.get(key) for found in identities}) > 1]


def _cells(side: Measured, runs: Sequence[Stored], swept: Sequence[str]) -> list[CellRuns]:
    found: dict[tuple[str, ...], list[Stored]] = {}
    for run in runs:
        identity = run.settings
        found.setdefault(tuple(identity.get(key, "") for key in swept), []).append(run)
    return [CellRuns(side, list(group), dict(zip(swept, key, strict=True))) for key, group in found.items()]
