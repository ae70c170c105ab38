"""Room for what a run holds: memory, and disk for the database."""

from __future__ import annotations

import re
import shutil

from runner import machine
from runner.doctor.finding import Finding, Sight, fit, judged, not_told

MB = 2**20
DISK_MB = 500
SIDES = 2


def findings(sight: Sight, disk_free_bytes: int | None = None) -> list[Finding]:
    """`disk_free_bytes`: what the disk of the database has, asked of it unless given."""
    return [_memory(sight), _limit(sight), _disk(sight, disk_free_bytes)]


def _memory(sight: Sight) -> Finding:
    found = re.search(r"MemAvailable:\s+(\d+) kB", machine.read(sight.root, "proc/meminfo") or "")
    if not found:
        return not_told("free memory")
    return _enough(sight, "free memory", int(found[1]) * 1024)


def _limit(sight: Sight) -> Finding:
    limit = machine.memory_limit_bytes(sight.root)
    if not limit.told:
        return not_told("memory limit")
    return fit("memory limit", "none") if limit.value is None else _enough(sight, "memory limit", limit.value)


def _enough(sight: Sight, name: str, free_bytes: int) -> Finding:
    needed = SIDES * sight.max_rss_mb
    free = free_bytes // MB
    wanted = f"{needed:,} MB: limits.max_rss_mb={sight.max_rss_mb} for each side"
    remedy = f"limits.max_rss_mb={max(1, free // SIDES)}, or more memory: what swaps is not measured"
    return judged(name, f"{free:,} MB", free >= needed, "note", wanted, remedy)


def _disk(sight: Sight, free: int | None) -> Finding:
    if free is None:
        if sight.database is None:
            return not_told("free disk")
        try:
            free = shutil.disk_usage(sight.database.resolve().parent).free
        except OSError:
            return not_told("free disk")
    wanted = f"{DISK_MB} MB for the database"
    return judged(
        "free disk", f"{free // MB:,} MB", free >= DISK_MB * MB, "note", wanted, "make room, or --db PATH"
    )
