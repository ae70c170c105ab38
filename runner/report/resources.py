"""Memory and context switches beside speed: columns that CSV and JSON have, and the text has no room for."""

from __future__ import annotations

from runner.report.figures import size
from runner.report.rows import Row
from runner.report.table import NOTHING, Cell, Column, middle

SIDES = ("server", "driver")
DIGITS = 3  # of switches: a loop that is never idle has one in hundreds of messages


def columns(unit: str, *, server_memory_shown: bool = False) -> list[Column]:
    """`unit`: what switches are counted per."""
    return [
        *peaks(server_memory_shown=server_memory_shown),
        *(Column(f"{side}_switches", f"{side}\nswitches\n/{unit}", shown=False) for side in SIDES),
    ]


def cells(row: Row) -> dict[str, Cell]:
    """Medians; memory is in bytes, read in the unit that fits."""
    return {
        **peak_cells(row),
        **{f"{side}_switches": middle(row.estimate(f"{side}_switches"), DIGITS) for side in SIDES},
    }


def peaks(*, server_memory_shown: bool = False) -> list[Column]:
    """The most memory that either side held."""
    return [
        Column(f"{side}_peak_rss_bytes", f"{side}\npeak\nRSS", shown=server_memory_shown and side == "server")
        for side in SIDES
    ]


def peak_cells(row: Row) -> dict[str, Cell]:
    """The cells of `peaks`: a dash, never 0, where it was not measured."""
    found = {}
    for side in SIDES:
        peak = row.estimate(f"{side}_peak_rss_bytes")
        found[f"{side}_peak_rss_bytes"] = Cell(size(peak.median), peak.median) if peak else NOTHING
    return found
