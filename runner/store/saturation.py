"""The view `saturation`: one row for each rate that a search tried, with what came of the search."""

from __future__ import annotations

from runner.store.columns import CELL, WHOLE, Field, column, count, number, word
from runner.store.open_loop import ARRIVAL

JOIN = "LEFT JOIN series AS step ON step.run_id = run.run_id AND step.name = 'step_rate_per_s'"


def _step(name: str, meaning: str, value: str = "s.value") -> Field:
    chosen = f"SELECT {value} FROM series AS s WHERE s.run_id = run.run_id AND s.t_ns = step.t_ns"
    return Field(name, f"({chosen} AND s.name = 'step_{name}')", meaning)


SATURATION = [
    *CELL,
    column("connections", "client connections, or calls at a time on one"),
    ARRIVAL[0],
    number("slo_p99_ms", "ms, the objective: the response time's p99"),
    number("sustained_per_s", "calls per second, the highest rate that kept it; NULL if none did"),
    number("broken_per_s", "calls per second, the lowest rate that did not keep it"),
    word("saturated", "the side that used up its CPU first as the rate rose beyond: driver, server or neither"),
    number("saturated_at_per_s", "calls per second, the lowest such rate; NULL for neither"),
    count("steps", "rates tried, repetitions included"),
    Field("rate_per_s", "step.value", "calls per second that this step asked for"),
    _step("achieved_per_s", "right answers per second in this step"),
    _step("response_p50_us", "µs, median response time in this step"),
    _step("response_p99_us", "µs, its 99th percentile; below 100 calls the longest"),
    _step("errors", "calls of this step that failed", WHOLE.format("s.value")),
    _step("dropped", "calls of this step that were not made", WHOLE.format("s.value")),
    _step("schedule_delay_p99_us", "µs by which the driver was late, 99th percentile"),
    _step("server_cpu_pct", "% of a CPU that the server used in this step"),
    _step("driver_cpu_pct", "% of a CPU that the driver used in this step"),
    _step("kept", "1: the objective was kept", WHOLE.format("s.value")),
]
