"""`bakeoff show RUN`: everything that is known of one run."""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, func, select

from runner.command_line import Parser, answer, write
from runner.report.command import terminal_width
from runner.report.figures import number
from runner.report.layout import width_of, wrap
from runner.report.read import open_report
from runner.report.stored import COLUMNS, Stored, chosen_run, flatten, said, shown
from runner.store import schema

EXAMPLES = """\
  bakeoff show 01M8QRN72F380                    the beginning of an id is enough
  bakeoff show 01M8QRN72F380 --format json      for programs
  bakeoff runs                                  lists the ids"""

_DOCUMENTS = ("findings", "errors", "conditions", "facts")


def main(argv: Sequence[str]) -> int:
    """The words after `bakeoff show`. Returns the exit code: 0, or 2 with one line on stderr for a mistake."""
    return answer(_parser(), argv, _answer)


def _parser() -> Parser:
    parser = Parser("show", "Print everything that is known of one run.", EXAMPLES)
    parser.add_argument("run", metavar="RUN", help="the id of a run, or its beginning")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    return parser


def _answer(asked: argparse.Namespace) -> int:
    with open_report(asked.db) as connection:
        found = known(connection, chosen_run(connection, asked.run))
    if asked.format == "json":
        write(json.dumps(found, ensure_ascii=False, allow_nan=False, indent=2) + "\n")
    else:
        write(told(found, shown(asked.db), terminal_width()))
    return 0


def known(connection: Connection, run: Stored) -> dict[str, Any]:
    """The run as JSON could hold it."""
    run_id = run.row["run_id"]
    measured, samples, series = schema.measurement, schema.distribution, schema.series
    measurements = connection.execute(
        select(measured.c.metric, measured.c.value, measured.c.unit)
        .where(measured.c.run_id == run_id)
        .order_by(measured.c.metric)
    )
    histograms = connection.execute(
        select(samples.c.name, samples.c.n, samples.c.min_ns, samples.c.max_ns)
        .where(samples.c.run_id == run_id)
        .order_by(samples.c.name)
    )
    points = connection.execute(
        select(series.c.name, func.count(), func.min(series.c.t_ns), func.max(series.c.t_ns))
        .where(series.c.run_id == run_id)
        .group_by(series.c.name)
        .order_by(series.c.name)
    )
    row = {name: run.row[name] for name in COLUMNS}
    row["started_at"] = f"{row['started_at']:%Y-%m-%dT%H:%M:%S.%fZ}"
    return {
        "format": "bakeoff run 1",
        **row,
        "measurements": {m.metric: {"value": m.value, "unit": m.unit} for m in measurements},
        "samples": {s.name: {"n": s.n, "min_ns": s.min_ns, "max_ns": s.max_ns} for s in histograms},
        "series": {name: {"points": n, "from_ns": least, "to_ns": most} for name, n, least, most in points},
        **{name: run.row[name] for name in _DOCUMENTS},
        "environment": run.row["machine"],
        "config": run.row["config"],
        "overrides": list(run.row["overrides"]),
    }


def told(run: Mapping[str, Any], database: str, width: int) -> str:
    """`run`, as `known` returns it, for people."""
    config: dict[str, Any] = {}
    flatten("", run["config"], config)
    parts = [
        _block("run", {name: run[name] for name in COLUMNS}, width),
        _block("measurements", {name: _measured(m) for name, m in run["measurements"].items()}, width),
        _block("samples", {name: _sampled(found) for name, found in run["samples"].items()}, width),
        _block("series", {name: _points(found) for name, found in run["series"].items()}, width),
        *(_block(name, run[name], width) for name in ("findings", "errors", "conditions")),
        _block("environment", run["environment"], width),
        _block("facts that the protocol declares", run["facts"], width),
        _block(
            "configuration", {key: value for key, value in config.items() if not key.startswith("plan.")}, width
        ),
        _again(run, database),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _block(title: str, values: Mapping[str, Any], width: int) -> str:
    if not values:
        return f"{title}: none"
    place = max(map(width_of, values))
    lines = [title]
    for name, value in values.items():
        text = " ".join(said(value).split()) or "-"
        first, *rest = wrap(text, max(20, width - place - 4)) or ["-"]
        lines.append(f"  {name}{' ' * (place - width_of(name))}  {first}")
        lines += [f"{' ' * (place + 4)}{line}" for line in rest]
    return "\n".join(lines)


def _measured(found: Mapping[str, Any]) -> str:
    value = found["value"]
    digits = 0 if float(value).is_integer() else 3 if abs(value) < 1000 else 1
    return f"{number(value, digits)} {found['unit']}"


def _sampled(found: Mapping[str, Any]) -> str:
    return f"{number(found['n'])}, from {number(found['min_ns'])} to {number(found['max_ns'])} ns"


def _points(found: Mapping[str, Any]) -> str:
    return f"{number(found['points'])} points, from {found['from_ns'] / 1e9:g} to {found['to_ns'] / 1e9:g} s"


def _again(run: Mapping[str, Any], database: str) -> str:
    db = "" if database == "results.db" else f" --db {shlex.quote(database)}"
    lines = ["overrides", f"  {shlex.join(run['overrides']) or 'none: the default scenario'}"]
    lines += ["again, and compared with this run", f"  bakeoff rerun {run['run_id']}{db}"]
    return "\n".join(lines)
