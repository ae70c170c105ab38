"""Which runs and sweeps of the database are meant: the beginnings of ids, `last~1`, and `key=value`."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from sqlalchemy import Connection, func, select

from runner.report.read import ReportError, Sweep, sweep_named, sweeps
from runner.store import schema
from runner.store.located import without_password

LAST = re.compile(r"last(?:~(\d+))?", re.IGNORECASE)
COLUMNS = [
    "run_id",
    "sweep_id",
    "suite",
    "position",
    "scenario",
    "label",
    "operation",
    "protocol",
    "engine",
    "codec",
    "variant",
    "placement",
    "connections",
    "repeat",
    "verdict",
    "reason",
    "started_at",
    "duration_s",
]

# Keys of the configuration that do not change what one run measures. Protocol and codec are told by their columns,
# their knobs and the variant; a drawn seed is a new one each time.
_NOT_A_SETTING = re.compile(
    r"plan\..*|.*\b_target_|.*\bseed|(storage|record|report|repeats|fail_fast|suite|label|port)\b.*"
)
TOLD_BY_COLUMNS = ("scenario", "label", "operation", "protocol", "engine", "codec", "variant", "connections")
_TOLD_ALREADY = ("scenario", "protocol.name", "codec.name", "load.connections", "operation.streams")
# What identifies a cell and is a finding where the configuration was not recorded.
_FOUND = ("producer", "consumer", "message", "shape", "sender")


@dataclass(frozen=True)
class Stored:
    """One run as it is in the database. `row`: its columns, those of its sweep's `suite` and the machine's `facts`
    as `machine` included.
    """

    row: Mapping[str, Any]

    @cached_property
    def known(self) -> dict[str, Any]:
        """Everything that can be selected by, the later of two names winning: facts of the machine, conditions,
        dotted keys of the configuration, findings, columns.
        """
        found = {**self.row["machine"], **self.row["conditions"]}
        flatten("", self.row["config"], found)
        return {**found, **self.row["findings"], **{name: self.row[name] for name in COLUMNS}}

    @cached_property
    def settings(self) -> Mapping[str, str]:
        """What was asked for: columns that name the cell, and every dotted key of its configuration that may matter
        to what was measured.
        """
        flat: dict[str, Any] = {}
        flatten("", self.row["config"], flat)
        found = {name: said(self.row[name]) for name in TOLD_BY_COLUMNS}
        found |= {key: said(value) for key, value in flat.items() if _is_setting(key)}
        for name in _FOUND:
            if name in self.row["findings"]:
                found.setdefault(f"operation.{name}", said(self.row["findings"][name]))
        return found


@cache
def _is_setting(key: str) -> bool:
    return key not in _TOLD_ALREADY and not _NOT_A_SETTING.fullmatch(key)


@dataclass(frozen=True)
class Clause:
    """`key` is one of `values`; with `negated`, none of them."""

    key: str
    values: tuple[str, ...]
    negated: bool = False

    def __str__(self) -> str:
        return f"{self.key}{'!=' if self.negated else '='}{','.join(self.values)}"

    def holds(self, known: Mapping[str, Any]) -> bool:
        """Whether a run of which this is `known` is meant. What a run does not have is like ''."""
        return any(same(known.get(self.key), value) for value in self.values) != self.negated


def clause(text: str) -> Clause:
    """`protocol=grpc`, `protocol=grpc,rsocket` (either), `verdict!=ok`. Raises ReportError."""
    key, equals, values = text.partition("=")
    if not equals or not key.rstrip("!"):
        raise ReportError(f"{text}: expected key=value, as in protocol=grpc or verdict!=ok")
    return Clause(key.rstrip("!").strip(), tuple(values.split(",")), key.endswith("!"))


def said(value: Any) -> str:
    """A value as the configuration spells it; nothing for what is not there."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    if isinstance(value, list | tuple):
        return f"[{','.join(map(said, value))}]"
    return str(value)


def same(value: Any, text: str) -> bool:
    """Whether `text` means `value`: 1e3 is 1000."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return float(text) == value
        except ValueError:
            return False
    return said(value) == text


def flatten(prefix: str, value: Any, found: dict[str, Any]) -> None:
    """Puts what a mapping holds into `found` by dotted keys."""
    for name, inner in value.items():
        if isinstance(inner, Mapping):
            flatten(f"{prefix}{name}.", inner, found)
        else:
            found[f"{prefix}{name}"] = inner


def shown(database: str) -> str:
    """A path or URL as it may be printed."""
    return without_password(database.removeprefix("sqlite:///"))


def chosen_sweep(connection: Connection, name: str, database: str) -> Sweep:
    """The sweep called `last`, `last~1` (the one before), or by an id or its beginning. Raises ReportError."""
    if (last := LAST.fullmatch(name)) is None:
        return sweep_named(connection, name)
    back = int(last[1] or 0)
    known = sweeps(connection)
    if not known:
        raise ReportError(f"{database} holds no sweep yet; run bakeoff first")
    if back >= len(known):
        oldest = f"last~{len(known) - 1}" if len(known) > 1 else "last"
        raise ReportError(f"{name}: {database} holds {len(known)} sweeps; the oldest is {oldest}")
    return known[-1 - back]


def chosen_run(connection: Connection, name: str) -> Stored:
    """The run whose id is, or alone begins with, `name` (upper or lower case). Raises ReportError."""
    ids = schema.run.c.run_id
    like = select(ids).where(func.upper(ids).startswith(name.upper(), autoescape=True)).order_by(ids).limit(100)
    found = list(connection.execute(like).scalars()) if name else []
    exact = [run_id for run_id in found if run_id.upper() == name.upper()]
    if len(exact or found) != 1:
        if found:
            many = "100 or more" if len(found) == 100 else str(len(found))
            raise ReportError(f"run {name}: {many} runs begin like this; give more of the id")
        last = list(connection.execute(select(ids).order_by(ids.desc()).limit(1)).scalars())
        hint = f"the last one is {last[0]} (bakeoff runs lists them)" if last else "there are none yet"
        raise ReportError(f"run {name}: there is no such run; {hint}")
    [run] = stored_runs(connection, run_id=(exact or found)[0])
    return run


def stored_runs(
    connection: Connection, *, sweep_id: str | None = None, run_id: str | None = None
) -> Sequence[Stored]:
    """The runs of one sweep or of all, by sweep and position; or the one run."""
    run, sweep, machine = schema.run, schema.sweep, schema.environment
    machines = {
        row.environment_hash: row.facts
        for row in connection.execute(select(machine.c.environment_hash, machine.c.facts))
    }
    query = (
        select(run, sweep.c.suite)
        .join(sweep, sweep.c.sweep_id == run.c.sweep_id)
        .order_by(sweep.c.started_at, sweep.c.sweep_id, run.c.position, run.c.run_id)
    )
    if sweep_id is not None:
        query = query.where(run.c.sweep_id == sweep_id)
    if run_id is not None:
        query = query.where(run.c.run_id == run_id)
    return [
        Stored({**row, "machine": machines[row["environment_hash"]]})
        for row in connection.execute(query).mappings()
    ]


def selected(runs: Sequence[Stored], clauses: Sequence[Clause]) -> list[Stored]:
    """Those for which all of `clauses` hold. Raises ReportError for a key that none of `runs` has."""
    for one in clauses:
        if runs and one.key not in COLUMNS and not any(one.key in run.known for run in runs):
            keys = sorted({key for run in runs for key in run.known})
            raise ReportError(
                f"{one}: no run has {one.key}{near(one.key, keys)} (bakeoff show RUN prints what it has)"
            )
    return [run for run in runs if all(one.holds(run.known) for one in clauses)]


def near(word: str, known: Sequence[str]) -> str:
    """`; did you mean p99_us?`, or nothing where nothing is near."""
    found = difflib.get_close_matches(word, known, 1)
    return f"; did you mean {found[0]}?" if found else ""
