"""A finished run as the rows that keep it; whatever no database keeps unchanged is refused here, by name."""

from __future__ import annotations

import hashlib
import json
import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from runner.checks import Check
from runner.store import histogram
from runner.store.errors import Unstorable
from runner.store.record import RunRecord, SweepRecord

_INT64 = 2**63
SAMPLES_MAX = 10_000  # rows of one name, unless the run's configuration says otherwise


@dataclass
class RunRows:
    """The rows of one run, as parameters of an INSERT into each table."""

    environment: dict[str, Any]
    run: dict[str, Any]
    measurement: list[tuple[str, str, float, str]]
    sample: list[tuple[str, str, int, int]]
    distribution: list[tuple[str, str, int, int, int, str, bytes]]
    series: list[tuple[str, str, int, float | None]]
    verdict_check: list[tuple[str, str, float, str, float | None, float | None, int, str, str]]


def sweep_row(record: SweepRecord) -> dict[str, Any]:
    """Raises Unstorable."""
    return {
        "sweep_id": _text(record.sweep_id, "sweep_id"),
        "suite": None if record.suite is None else _text(record.suite, "suite"),
        "command": _text(record.command, "command"),
        "seed": _whole(record.seed, "seed"),
        "planned": _whole(record.planned, "planned"),
        "started_at": moment(record.started_at, "started_at"),
        "ended_at": None if record.ended_at is None else moment(record.ended_at, "ended_at"),
    }


def run_rows(record: RunRecord, samples_max: int | None = None) -> RunRows:
    """At most `samples_max` rows of each name (default: record.config's record.samples_max); the histogram has all.

    Raises Unstorable.
    """
    if samples_max is None:
        samples_max = record.config.get("record", {}).get("samples_max", SAMPLES_MAX)
    facts = _plain(record.environment, "environment")
    samples = {name: _samples(values, name) for name, values in record.samples.items()}
    return RunRows(
        environment={"environment_hash": _hash(facts), "facts": facts},
        run=_run(record) | {"environment_hash": _hash(facts)},
        measurement=[
            (record.run_id, _text(name, "metric"), _number(value, f"measurement {name}"), _text(unit, name))
            for name, (value, unit) in record.measurements.items()
        ],
        sample=[
            (record.run_id, name, seq, values[seq])
            for name, values in samples.items()
            for seq in _kept(len(values), samples_max)
        ]
        + [
            (record.run_id, _text(name, "the name of samples"), number * folded.every, value)
            for name, folded in record.folded.items()
            for number, value in enumerate(folded.kept)
        ],
        distribution=[
            (
                record.run_id,
                name,
                len(values),
                min(values),
                max(values),
                histogram.ENCODING,
                histogram.encode(values),
            )
            for name, values in samples.items()
            if values
        ]
        + [
            (
                record.run_id,
                name,
                f.n,
                f.least,
                f.most,
                histogram.ENCODING,
                histogram.encode_counts(f.counts, f.most),
            )
            for name, f in record.folded.items()
        ],
        series=[row for name, points in record.series.items() for row in _series(record.run_id, name, points)],
        verdict_check=[_check(record.run_id, check) for check in record.checks],
    )


def _run(record: RunRecord) -> dict[str, Any]:
    texts = "run_id sweep_id scenario label operation protocol engine codec variant placement verdict reason"
    documents = "config conditions facts findings errors"
    return {
        **{name: _text(getattr(record, name), name) for name in texts.split()},
        **{name: _whole(getattr(record, name), name) for name in ("position", "connections", "repeat")},
        **{name: _plain(getattr(record, name), name) for name in documents.split()},
        "overrides": _plain(list(record.overrides), "overrides"),
        "started_at": moment(record.started_at, "started_at"),
        "duration_s": _number(record.duration_s, "duration_s"),
    }


def _check(run_id: str, check: Check) -> tuple[str, str, float, str, float | None, float | None, int, str, str]:
    where = f"check {check.name}"
    least, most = (None if limit is None else _number(limit, where) for limit in (check.least, check.most))
    name, unit, reason = _text(check.name, where), _text(check.unit, where), _text(check.reason, where)
    return (run_id, name, _number(check.value, where), unit, least, most, int(check.passed), check.weight, reason)


def _kept(count: int, most: int) -> range:
    """Every k-th position, from 0: all of them where they fit, else the smallest k that does."""
    return range(0, count, max(1, math.ceil(count / most))) if most > 0 else range(0)


def _samples(values: Sequence[int], name: str) -> array[int]:
    _text(name, "the name of samples")
    try:
        checked = array("q", values)
    except (TypeError, OverflowError) as error:
        raise Unstorable(f"samples {name}: not all are whole 64-bit nanoseconds ({error})") from None
    if checked and min(checked) < 0:
        raise Unstorable(f"samples {name}: {min(checked)} is a negative time")
    return checked


def _series(
    run_id: str, name: str, points: Sequence[tuple[int, float | None]]
) -> list[tuple[str, str, int, float | None]]:
    _text(name, "the name of a series")
    where = f"series {name}"
    rows = [
        (run_id, name, _whole(t_ns, f"{where}, t_ns"), None if value is None else _number(value, where))
        for t_ns, value in points
    ]
    if len({row[2] for row in rows}) < len(rows):
        raise Unstorable(f"{where}: two values at the same t_ns")
    return rows


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        raise Unstorable(f"{where}: {value!r} is not a number")
    if hasattr(value, "__index__"):
        whole = _whole(value, where)
        if int(float(whole)) != whole:
            raise Unstorable(f"{where}: {whole} has more digits than a 64-bit float keeps")
        return float(whole)
    number = float(value)
    if not math.isfinite(number):
        raise Unstorable(f"{where}: {number} is not a finite number")
    return number


def _whole(value: Any, where: str) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise Unstorable(f"{where}: {value!r} is not a whole number")
    whole = int(value)
    if not -_INT64 <= whole < _INT64:
        raise Unstorable(f"{where}: {whole} needs more than 64 bits")
    return whole


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise Unstorable(f"{where}: {value!r} is not text")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        half = ascii(value[error.start])
        raise Unstorable(f"{where}: character {error.start} is {half}, half of a surrogate pair") from None
    return value


def moment(value: datetime, where: str) -> datetime:
    """`value`, unless it is a local time that does not say so. Raises Unstorable."""
    if value.tzinfo is None:
        raise Unstorable(f"{where}: {value.isoformat()} has no time zone")
    return value


def _plain(value: Any, where: str) -> Any:
    """`value` as JSON can hold it and give it back."""
    if isinstance(value, Mapping):
        return {_text(key, f"a key of {where}"): _plain(item, f"{where}.{key}") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, f"{where}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, str):
        return _text(value, where)
    if value is None or isinstance(value, bool):
        return value
    if hasattr(value, "__index__"):
        return _whole(value, where)
    return _number(value, where)


def to_json(value: Any) -> str:
    """Text with every character as itself, keys in order."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))


def _hash(facts: Any) -> str:
    return hashlib.sha256(to_json(facts).encode()).hexdigest()[:16]
