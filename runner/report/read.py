"""What the report asks of the database. A sweep is read piece by piece: only what a shown table needs.

Plain SELECTs over tables of the store; JSON columns are parsed here.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from runner.store import read_store

AT_QUIET = "produced_at_quiet"  # the series with one point per quiet period
STEP = "step_"  # what the series with one point per step of a search begin with
NS_PER_S = 1e9


class ReportError(Exception):
    """Why there is no report, and the way out: one line, ready to be shown."""


@dataclass(frozen=True)
class Run:
    """One run with all that tables want to know of it. `metrics`: named as the columns of the views.

    `environment`: the hash that names the facts in `machine`, of the machine and the versions.
    `quiet`: quiet period in s -> messages produced by then, None where the run ended before.
    `steps`: of a search, in order: what was tried and what came of it, by the name of the series without STEP.
    """

    run_id: str
    scenario: str
    label: str
    operation: str
    protocol: str
    engine: str
    codec: str
    variant: str
    placement: str
    connections: int
    repeat: int
    verdict: str
    reason: str
    environment: str
    machine: Mapping[str, Any]
    config: Mapping[str, Any]
    conditions: Mapping[str, Any]
    facts: Mapping[str, Any]
    findings: Mapping[str, str]
    errors: Mapping[str, int]
    metrics: Mapping[str, float]
    quiet: Mapping[float, float | None]
    steps: Sequence[Mapping[str, float | None]] = ()

    @property
    def error_count(self) -> int:
        """Calls or messages that went wrong."""
        return int(self.metrics.get("errors", sum(self.errors.values())))

    def metric(self, name: str) -> float | None:
        """A measurement, or `tail_ratio` (p99 / p50); None where the run lacks it."""
        if name == "tail_ratio":
            p50, p99 = self.metrics.get("p50_us"), self.metrics.get("p99_us")
            return p99 / p50 if p50 and p99 is not None else None
        return self.metrics.get(name)

    def condition(self, name: str) -> Any:
        """What was recorded of the run or else of its machine, None where it was not."""
        found = self.conditions.get(name)
        return self.machine.get(name) if found is None else found

    def setting(self, section: str, key: str) -> Any:
        """A key of the configuration, None where it was not recorded."""
        part = self.config.get(section)
        return part.get(key) if isinstance(part, Mapping) else None


def made_once_flat(run: Run) -> float | None:
    """Messages that were made until the count stood still, with those asked for; None if it never did."""
    asked = run.metrics.get("asked", run.setting("operation", "asked"))
    beyond = run.metrics.get("plateau_messages")
    return None if asked is None or beyond is None else float(asked + beyond)


@dataclass(frozen=True)
class Problem:
    """A run that is not ok."""

    operation: str
    scenario: str
    label: str
    protocol: str
    engine: str
    codec: str
    variant: str
    repeat: int
    verdict: str
    reason: str


@dataclass(frozen=True)
class Sweep:
    """One sweep of an open database."""

    connection: Connection = field(repr=False, compare=False)
    sweep_id: str
    suite: str | None
    command: str
    seed: int
    planned: int
    started_at: str
    ended_at: str | None

    @cached_property
    def verdicts(self) -> Mapping[str, int]:
        """verdict -> how many runs have it."""
        rows = self._rows("SELECT verdict, count(*) AS n FROM run WHERE sweep_id = :sweep GROUP BY verdict")
        return {row["verdict"]: row["n"] for row in rows}

    @cached_property
    def operations(self) -> Mapping[str, int]:
        """operation -> how many runs measured it."""
        rows = self._rows("SELECT operation, count(*) AS n FROM run WHERE sweep_id = :sweep GROUP BY operation")
        return {row["operation"]: row["n"] for row in rows}

    @cached_property
    def problems(self) -> Sequence[Problem]:
        """The runs that are not ok, in the order of the plan."""
        columns = ", ".join(field.name for field in fields(Problem))
        query = f"SELECT {columns} FROM run WHERE sweep_id = :sweep AND verdict <> 'ok' ORDER BY position, run_id"
        return [Problem(**row) for row in self._rows(query)]

    @cached_property
    def environments(self) -> Mapping[str, Mapping[str, Any]]:
        """hash -> facts of the machine and versions, the most used first."""
        rows = self._rows(
            "SELECT e.environment_hash AS hash, e.facts, count(*) AS n FROM run AS r "
            "JOIN environment AS e ON e.environment_hash = r.environment_hash "
            "WHERE r.sweep_id = :sweep GROUP BY e.environment_hash, e.facts"
        )
        ordered = sorted(rows, key=lambda row: (-row["n"], row["hash"]))
        return {row["hash"]: _document(row["facts"]) for row in ordered}

    @cached_property
    def loops(self) -> Sequence[str]:
        """The event loops that were used, the most used first."""
        rows = self._rows("SELECT conditions FROM run WHERE sweep_id = :sweep")
        seen = Counter(str(loop) for row in rows if (loop := _document(row["conditions"]).get("loop")))
        return [loop for loop, _ in sorted(seen.items(), key=lambda item: (-item[1], item[0]))]

    @cached_property
    def engines(self) -> Sequence[tuple[str, str]]:
        """Every (protocol, engine) that was run."""
        rows = self._rows("SELECT DISTINCT protocol, engine FROM run WHERE sweep_id = :sweep")
        return sorted((row["protocol"], row["engine"]) for row in rows)

    @cached_property
    def declared(self) -> Mapping[tuple[str, str], Mapping[str, Any]]:
        """(protocol, engine) -> the facts that its adapter declares, for all that calls or streams went over."""
        query = (
            "SELECT protocol, engine, facts FROM run WHERE sweep_id = :sweep AND operation <> 'payload' "
            "ORDER BY position, run_id"
        )
        found: dict[tuple[str, str], Mapping[str, Any]] = {}
        for row in self._rows(query):
            name = (row["protocol"], row["engine"])
            if not found.get(name):
                found[name] = _document(row["facts"])
        return {name: facts for name, facts in found.items() if facts}

    def checks(self) -> list[dict[str, Any]]:
        """What the verdict of every run rests on, in the order of the plan."""
        return self._rows(
            "SELECT r.operation, r.protocol, r.engine, r.codec, r.variant, r.label, r.connections, r.repeat, "
            "r.verdict, c.name, c.value, c.unit, c.least, c.most, c.passed, c.weight, c.reason FROM run AS r "
            "JOIN verdict_check AS c ON c.run_id = r.run_id WHERE r.sweep_id = :sweep "
            "ORDER BY r.position, r.run_id, c.name"
        )

    def runs(self, operation: str) -> Sequence[Run]:
        """All runs of the operation, by position in the plan. Read once."""
        if operation not in self._read:
            self._read[operation] = self._load(operation)
        return self._read[operation]

    @cached_property
    def _read(self) -> dict[str, Sequence[Run]]:
        return {}

    def _load(self, operation: str) -> Sequence[Run]:
        metrics: dict[str, dict[str, float]] = {}
        query = (
            "SELECT m.run_id, m.metric, m.value FROM measurement AS m JOIN run AS r ON r.run_id = m.run_id "
            "WHERE r.sweep_id = :sweep AND r.operation = :operation"
        )
        for row in self._rows(query, operation=operation):
            metrics.setdefault(row["run_id"], {})[row["metric"]] = row["value"]
        quiet: dict[str, dict[float, float | None]] = {}
        query = (
            "SELECT s.run_id, s.t_ns, s.value FROM series AS s JOIN run AS r ON r.run_id = s.run_id "
            "WHERE r.sweep_id = :sweep AND r.operation = :operation AND s.name = :name ORDER BY s.t_ns"
        )
        for row in self._rows(query, operation=operation, name=AT_QUIET):
            quiet.setdefault(row["run_id"], {})[row["t_ns"] / NS_PER_S] = row["value"]
        steps: dict[str, dict[int, dict[str, float | None]]] = {}
        query = (
            "SELECT s.run_id, s.name, s.t_ns, s.value FROM series AS s JOIN run AS r ON r.run_id = s.run_id "
            "WHERE r.sweep_id = :sweep AND r.operation = :operation AND s.name LIKE :names ORDER BY s.t_ns"
        )
        for row in self._rows(query, operation=operation, names=f"{STEP}%"):
            step = steps.setdefault(row["run_id"], {}).setdefault(row["t_ns"], {})
            step[row["name"].removeprefix(STEP)] = row["value"]
        rows = self._rows(_runs_query("operation = :operation"), operation=operation)
        return [
            Run(
                **{**row, **{name: _document(row[name]) for name in _DOCUMENTS}},
                machine=self.environments[row["environment"]],
                metrics=metrics.get(row["run_id"], {}),
                quiet=quiet.get(row["run_id"], {}),
                steps=list(steps.get(row["run_id"], {}).values()),
            )
            for row in rows
        ]

    def _rows(self, query: str, **given: Any) -> list[dict[str, Any]]:
        found = self.connection.execute(text(query), {"sweep": self.sweep_id, **given})
        return [dict(row) for row in found.mappings()]


_DOCUMENTS = ("config", "conditions", "facts", "findings", "errors")


def _runs_query(where: str) -> str:
    computed = ("environment", "machine", "metrics", "quiet", "steps")
    columns = ", ".join(field.name for field in fields(Run) if field.name not in computed)
    return (
        f"SELECT {columns}, environment_hash AS environment FROM run WHERE sweep_id = :sweep AND {where} "
        "ORDER BY position, run_id"
    )


def _document(value: Any) -> Mapping[str, Any]:
    found = json.loads(value) if isinstance(value, str | bytes) else value
    return found if isinstance(found, Mapping) else {}


@contextmanager
def open_report(url: str) -> Iterator[Connection]:
    """A connection for reading the database at `url`.

    Raises runner.store.StoreError where that is no database of ours, ReportError where it cannot be read.
    """
    with read_store(url) as store, store.engine.connect() as connection:
        try:
            yield connection
        except SQLAlchemyError as error:
            raise ReportError(f"{store.shown}: cannot be read ({str(error).splitlines()[0]})") from error


def sweeps(connection: Connection) -> list[Sweep]:
    """Every sweep of the database, the oldest first."""
    columns = "sweep_id, suite, command, seed, planned, started_at, ended_at"
    found = connection.execute(text(f"SELECT {columns} FROM sweep ORDER BY started_at, sweep_id"))
    return [Sweep(connection, **dict(row)) for row in found.mappings()]


def sweep_named(connection: Connection, name: str) -> Sweep:
    """The sweep whose id is, or alone begins with, `name` (upper or lower case). Raises ReportError."""
    known = sweeps(connection)
    found = [s for s in known if s.sweep_id.upper().startswith(name.upper())] if name else []
    exact = [s for s in found if s.sweep_id.upper() == name.upper()]
    if len(exact or found) == 1:
        return (exact or found)[0]
    if found:
        raise ReportError(f"sweep {name}: {len(found)} sweeps begin like this; give more of the id")
    last = ", ".join(s.sweep_id for s in known[-3:]) or "none"
    raise ReportError(f"sweep {name}: there is no such sweep; the last ones are: {last}")
