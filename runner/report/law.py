"""What a service time allows: rate <= workers / service time, Little's law, and what another tool measured."""

from __future__ import annotations

from collections.abc import Sequence

from runner.report.compare import named
from runner.report.figures import counted, listed, number, plain, ratio
from runner.report.rows import Row, Rows

OVER = 1.02  # a rate above its bound by more than this is over it: clocks and the window's ends have a share
LITTLE_BAND = 0.10
MS_PER_S = 1e3
US_PER_S = 1e6


def laws(rows: Rows) -> list[str]:
    """The sentences under a table of `requests_per_s`; none without good rows."""
    return [*_service_time(rows), *_little(rows), *_crosscheck(rows)]


def model(row: Row) -> str:
    """What serves: threads or event loop; "" where that was not recorded."""
    return row.finding("model") or str(row.first.condition("model") or "")


def workers(row: Row) -> float | None:
    """Threads of the server's pool, None for an event loop."""
    found = row.estimate("workers")
    recorded = row.first.condition("workers")
    return found.median if found else float(recorded) if isinstance(recorded, int | float) else None


def bound(row: Row) -> tuple[float, str] | None:
    """(the most requests/s that the service time of `row` allows, how that is computed); None without one.

    In a closed loop there are no more requests at a time than connections, whatever could serve them.
    """
    ms, callers = float(row.under.get("service_time_ms") or 0), row.first.connections
    if ms <= 0:
        return None
    pool = workers(row)
    if pool is not None and pool <= callers:
        some, who = pool, counted(pool, "worker")
    elif pool is None and row.under.get("service_work") == "busy":
        some, who = 1.0, "one busy loop"
    else:
        some, who = float(callers), counted(callers, "connection")
    return some * MS_PER_S / ms, f"{who} / {plain(ms)} ms"


def _named(rows: Rows) -> Sequence[tuple[Row, str]]:
    found = []
    for side in named(rows.good):
        where = rows.differing(side.row)
        found.append((side.row, f"{side.name}, {where}" if where else side.name))
    return found


def _service_time(rows: Rows) -> list[str]:
    lines = []
    for row, name in _named(rows):
        limit, rate = bound(row), row.estimate("requests_per_s")
        if limit is None or rate is None:
            continue
        most, how = limit
        holds = max(row.values("requests_per_s")) <= most * OVER
        said = f"{number(100 * rate.median / most)} % of it: holds" if holds else "more than that: DOES NOT HOLD"
        lines.append(
            f"  {name} ({model(row) or 'model not recorded'}): at most {number(most)} requests/s "
            f"({how}), {number(rate.median)} here, {said}"
        )
    return ["law: rate <= workers / service time:", *lines] if lines else []


def _little(rows: Rows) -> list[str]:
    """Requests in flight are rate x mean time; in a closed loop that is the number of connections."""
    within: list[tuple[float, str]] = []
    beyond: list[tuple[float, str]] = []
    for row, name in _named(rows):
        pairs = [(run.metric("requests_per_s"), run.metric("mean_us")) for run in row.runs]
        flights = [rate * mean / US_PER_S / row.first.connections for rate, mean in pairs if rate and mean]
        if not flights:
            continue
        worst = max(flights, key=lambda share: abs(share - 1))
        (within if abs(worst - 1) <= LITTLE_BAND else beyond).append((worst, name))
    said = "Little's law, requests in flight = rate x mean time"
    lines = []
    if within:
        worst, _ = max(within, key=lambda found: abs(found[0] - 1))
        which = "every row" if not beyond else f"{number(len(within))} rows"
        lines.append(f"{said}: within 10 % of the connections in {which} (at worst {number(100 * worst, 1)} %)")
    if beyond:
        names = listed(f"{name} ({number(100 * worst)} %)" for worst, name in beyond)
        lines.append(f"{said}: NOT within 10 % of the connections: {names}")
    return lines


def _crosscheck(rows: Rows) -> list[str]:
    lines = []
    for row, name in _named(rows):
        theirs, ours = row.estimate("crosscheck_requests_per_s"), row.estimate("requests_per_s")
        if theirs and ours and theirs.median:
            tool = row.finding("crosscheck_tool") or "another tool"
            lines.append(
                f"  {name}: {tool} {number(theirs.median)} requests/s, bakeoff {number(ours.median)} "
                f"({ratio(ours.median / theirs.median)} of it)"
            )
    return ["crosscheck, against the same server:", *lines] if lines else []
