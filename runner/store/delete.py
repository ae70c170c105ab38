"""Removing a sweep: its runs, all their rows, and the environments that no other run refers to."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, delete, func, select

from runner.store import schema


@dataclass(frozen=True)
class Extent:
    """How much a sweep holds. `measurements`, `samples`: rows."""

    runs: int
    measurements: int
    samples: int


def extent(connection: Connection, sweep_id: str) -> Extent:
    """What `delete_sweep` would remove."""
    run = schema.run
    counts = []
    for table in (run, schema.measurement, schema.sample):
        query = select(func.count()).select_from(table)
        if table is not run:
            query = query.join(run, run.c.run_id == table.c.run_id)
        counts.append(connection.execute(query.where(run.c.sweep_id == sweep_id)).scalar_one())
    return Extent(*counts)


def delete_sweep(connection: Connection, sweep_id: str) -> None:
    """In the caller's transaction. Rows of a run go with it (ON DELETE CASCADE)."""
    run, sweep, environment = schema.run, schema.sweep, schema.environment
    connection.execute(delete(run).where(run.c.sweep_id == sweep_id))
    connection.execute(delete(sweep).where(sweep.c.sweep_id == sweep_id))
    used = select(run.c.run_id).where(run.c.environment_hash == environment.c.environment_hash)
    connection.execute(delete(environment).where(~used.exists()))
