"""Bringing in what another database holds, or a run that could not be saved. Doing so twice changes nothing.

Sweeps and runs keep their ids, so an id that is there already is the same sweep or run. If it is not, the two are
compared in full, and a difference stops everything: nothing of ours is written over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Connection, Table, insert, select, update

from runner.store import schema
from runner.store.errors import StoreError
from runner.store.located import without_password
from runner.store.open import Store, read_store
from runner.store.record import RunRecord, SweepRecord
from runner.store.rows import RunRows, run_rows, sweep_row
from runner.store.save import UNSAVED_FORMAT, Unsaved, insert_run, read_unsaved

_NARROW = (schema.measurement, schema.sample, schema.distribution, schema.series, schema.verdict_check)


@dataclass
class Merged:
    """How much of a source was new, and how much was there already."""

    sweeps: int = 0
    runs: int = 0
    runs_known: int = 0


@dataclass
class _Source:
    sweeps: Sequence[dict[str, Any]]
    runs: Iterator[RunRows]
    certain: bool = True  # False: the sweep is guessed from its run, and any that is there is better


def merge(store: Store, sources: Sequence[str]) -> list[Merged]:
    """Brings every source in, in one transaction: all of them or, where one is refused, none.

    A source is a database (path or URL) or a file that Store.save_run left. Raises StoreError, which names the id
    of a sweep or run that both have with different content.
    """
    with store.writing() as connection:
        return [_merge(connection, source, store) for source in sources]


def check_sources(sources: Sequence[str]) -> None:
    """Raises StoreError for a path where there is nothing; better before a database is made to merge it into."""
    for name in sources:
        if "://" not in name and "\0" not in name and not Path(name).exists():
            raise StoreError(f"{name}: there is no such file; give a database or a run that bakeoff kept")


def _merge(connection: Connection, name: str, store: Store) -> Merged:
    done = Merged()
    with _opened(name, store) as source:
        shown = without_password(name)
        for row in source.sweeps:
            done.sweeps += _bring_sweep(connection, row, source.certain, shown, store.shown)
        for rows in source.runs:
            known = _load(connection, rows.run["run_id"])
            if known is None:
                insert_run(connection, rows)
                done.runs += 1
            elif _comparable(known) == _comparable(rows):
                done.runs_known += 1
            else:
                raise _differs(f"run {rows.run['run_id']}", shown, store.shown)
    return done


def _bring_sweep(connection: Connection, row: dict[str, Any], certain: bool, name: str, shown: str) -> bool:
    """Whether it was new. A sweep that had not ended yet takes the end from its copy."""
    table = schema.sweep
    this = table.c.sweep_id == row["sweep_id"]
    found = connection.execute(select(table).where(this)).mappings().first()
    if found is None:
        connection.execute(insert(table), row)
        return True
    if not certain:
        return False
    if {**found, "ended_at": None} != {**row, "ended_at": None}:
        raise _differs(f"sweep {row['sweep_id']}", name, shown)
    if found["ended_at"] is None:
        connection.execute(update(table).where(this).values(ended_at=row["ended_at"]))
    elif row["ended_at"] not in (None, found["ended_at"]):
        raise _differs(f"sweep {row['sweep_id']}", name, shown)
    return False


def _differs(what: str, name: str, shown: str) -> StoreError:
    return StoreError(
        f"{name}: {what} is in {shown} too, with other content; nothing was merged, give another --db"
    )


@contextmanager
def _opened(name: str, store: Store) -> Iterator[_Source]:
    if (unsaved := _unsaved(name)) is not None:
        sweep = unsaved.sweep or _guessed(unsaved.run)
        yield _Source([sweep_row(sweep)], iter([run_rows(unsaved.run)]), certain=unsaved.sweep is not None)
        return
    with read_store(name) as other, other.engine.connect() as reading:
        if other.url == store.url:
            raise StoreError(f"{other.shown}: it is the database that it would be merged into; give another --db")
        sweeps = [dict(row) for row in reading.execute(select(schema.sweep)).mappings()]
        yield _Source(sweeps, _runs(reading))


def _unsaved(name: str) -> Unsaved | None:
    """The run that `name` keeps, None if it is anything but a file of JSON. Raises StoreError."""
    path = Path(name)
    try:
        with path.open("rb") as file:
            if file.read(1) != b"{":
                return None
        unsaved = read_unsaved(path)
    except msgspec.DecodeError as error:
        said = f"neither a database nor a run that bakeoff kept ({error})"
        raise StoreError(f"{name}: {said}; give another file") from None
    except (OSError, ValueError):  # a folder, a URL, or text that can be no file's name
        return None
    if unsaved.format != UNSAVED_FORMAT:
        raise StoreError(f"{name}: {unsaved.format!r} is of another bakeoff, this one knows {UNSAVED_FORMAT!r}")
    return unsaved


def _guessed(record: RunRecord) -> SweepRecord:
    """The sweep of a run, should nobody know it any more. What only the sweep knew is empty."""
    return SweepRecord(
        sweep_id=record.sweep_id,
        suite=record.config.get("suite") or None,
        command="",
        seed=record.config.get("seed") or 0,
        planned=max(1, record.position),
        started_at=record.started_at,
    )


def _runs(connection: Connection) -> Iterator[RunRows]:
    for run_id in connection.execute(select(schema.run.c.run_id).order_by(schema.run.c.run_id)).scalars().all():
        rows = _load(connection, run_id)
        if rows is not None:  # one transaction: it is there
            yield rows


def _load(connection: Connection, run_id: str) -> RunRows | None:
    """All that the database has of a run, as it would be inserted."""
    run, environment = schema.run, schema.environment
    found = connection.execute(select(run).where(run.c.run_id == run_id)).mappings().first()
    if found is None:
        return None
    this = environment.c.environment_hash == found["environment_hash"]
    facts = connection.execute(select(environment).where(this)).mappings().one()
    measurement, sample, distribution, series, checks = (_rows(connection, table, run_id) for table in _NARROW)
    return RunRows(dict(facts), dict(found), measurement, sample, distribution, series, checks)


def _rows(connection: Connection, table: Table, run_id: str) -> list[Any]:
    return [tuple(row) for row in connection.execute(select(table).where(table.c.run_id == run_id))]


def _comparable(rows: RunRows) -> tuple[Any, ...]:
    """`rows` in an order that does not depend on where they come from."""
    return (
        rows.environment,
        rows.run,
        *(sorted(part, key=lambda row: row[:3]) for part in (rows.measurement, rows.sample)),
        *(sorted(part, key=lambda row: row[:3]) for part in (rows.distribution, rows.series, rows.verdict_check)),
    )
