"""What pictures ask of the database: whole distributions, and values over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hdrh.histogram import HdrHistogram
from sqlalchemy import select

from runner.report.read import NS_PER_S, Sweep
from runner.store import schema
from runner.store.histogram import ENCODING, decode


def histograms(sweep: Sweep, operation: str, name: str) -> Mapping[str, HdrHistogram]:
    """run_id -> all timings called `name`, in ns, for the runs of the sweep that have them."""
    run, kept = schema.run, schema.distribution
    query = (
        select(kept.c.run_id, kept.c.data)
        .join(run, run.c.run_id == kept.c.run_id)
        .where(run.c.sweep_id == sweep.sweep_id, run.c.operation == operation)
        .where(kept.c.name == name, kept.c.encoding == ENCODING)
    )
    return {row.run_id: decode(row.data) for row in sweep.connection.execute(query)}


def series(sweep: Sweep, operation: str, name: str) -> Mapping[str, Sequence[tuple[float, float]]]:
    """run_id -> (s since the start of the watch, value), by time; moments without a value are left out."""
    run, kept = schema.run, schema.series
    query = (
        select(kept.c.run_id, kept.c.t_ns, kept.c.value)
        .join(run, run.c.run_id == kept.c.run_id)
        .where(run.c.sweep_id == sweep.sweep_id, run.c.operation == operation)
        .where(kept.c.name == name, kept.c.value.is_not(None))
        .order_by(kept.c.run_id, kept.c.t_ns)
    )
    found: dict[str, list[tuple[float, float]]] = {}
    for row in sweep.connection.execute(query):
        found.setdefault(row.run_id, []).append((row.t_ns / NS_PER_S, row.value))
    return found
