"""`bakeoff export RUN`: raw samples as CSV or Parquet, and all timings as an HdrHistogram log."""

from __future__ import annotations

import argparse
import csv
import importlib
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, select

from runner.command_line import Mistake, Parser, answer
from runner.report.figures import counted, number
from runner.report.read import open_report
from runner.report.stored import Stored, chosen_run
from runner.store import schema
from runner.store.histogram import log_payload

EXAMPLES = """\
  bakeoff export 01M8QRN72F380 --samples samples.csv        run_id, name, seq, value_ns
  bakeoff export 01M8QRN72F380 --samples samples.parquet    the same; needs pyarrow
  bakeoff export 01M8QRN72F380 --hdr latency.hlog           for HdrHistogram's own tools

`seq` is the true position of a sample, from 0: above record.samples_max only every k-th is kept as a row. The
histogram has all of them."""

_NS_PER_MS = 1e6  # what a log's Interval_Max is divided by, as HdrHistogram's tools expect of nanoseconds


def main(argv: Sequence[str]) -> int:
    """The words after `bakeoff export`. Returns the exit code: 0, or 2 with one line on stderr for a mistake."""
    return answer(_parser(), argv, _answer)


def _parser() -> Parser:
    parser = Parser("export", "Write the samples of one run into a file.", EXAMPLES)
    parser.add_argument("run", metavar="RUN", help="the id of a run, or its beginning")
    parser.add_argument("--samples", metavar="FILE", help="FILE.csv or FILE.parquet")
    parser.add_argument("--hdr", metavar="FILE", help="an HdrHistogram log, one line for each name of samples")
    parser.add_argument("--force", action="store_true", help="write over files that are there")
    return parser


def _answer(asked: argparse.Namespace) -> int:
    if asked.samples is None and asked.hdr is None:
        raise Mistake("nothing to write; give --samples FILE or --hdr FILE")
    if asked.samples is not None and Path(asked.samples).suffix not in (".csv", ".parquet"):
        raise Mistake(f"--samples {asked.samples}: neither .csv nor .parquet; give the file one of these endings")
    for name in (asked.samples, asked.hdr):
        if name is not None and Path(name).exists() and not asked.force:
            raise Mistake(f"{name} is there already; give another name, or --force to write over it")
    with open_report(asked.db) as connection:
        run = chosen_run(connection, asked.run)
        rows = samples(connection, run.row["run_id"])
        histograms = distributions(connection, run.row["run_id"])
    if not histograms:
        reason = f": {run.row['reason']}" if run.row["reason"] else ""
        raise Mistake(f"run {run.row['run_id']} has no samples; it ended {run.row['verdict']}{reason}")
    files: dict[str, tuple[bytes, str]] = {}
    total = sum(n for _, n, _, _ in histograms)
    if asked.samples is not None:
        data = parquet(rows, asked.samples) if asked.samples.endswith(".parquet") else comma_separated(rows)
        of = f" of {number(total)}" if total != len(rows) else ""
        files[asked.samples] = data, f"{number(len(rows))}{of} samples"
    if asked.hdr is not None:
        files[asked.hdr] = (
            histogram_log(run, histograms),
            f"{counted(len(histograms), 'histogram')} of {number(total)} samples",
        )
    for name, (data, what) in files.items():
        _write(name, data, asked.force)
        print(f"{name}: {what}")
    return 0


def samples(connection: Connection, run_id: str) -> list[tuple[str, str, int, int]]:
    """(run_id, name, seq, value_ns), in order."""
    table = schema.sample
    query = select(table.c.run_id, table.c.name, table.c.seq, table.c.value_ns).where(table.c.run_id == run_id)
    return [tuple(row) for row in connection.execute(query.order_by(table.c.name, table.c.seq))]


def distributions(connection: Connection, run_id: str) -> list[tuple[str, int, int, bytes]]:
    """(name, n, max_ns, the compressed histogram), in order."""
    table = schema.distribution
    query = select(table.c.name, table.c.n, table.c.max_ns, table.c.data).where(table.c.run_id == run_id)
    return [
        (name, n, most, bytes(data)) for name, n, most, data in connection.execute(query.order_by(table.c.name))
    ]


def comma_separated(rows: Sequence[tuple[str, str, int, int]]) -> bytes:
    """CSV in UTF-8, whatever the locale."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["run_id", "name", "seq", "value_ns"])
    writer.writerows(rows)
    return out.getvalue().encode()


def parquet(rows: Sequence[tuple[str, str, int, int]], name: str) -> bytes:
    """The same columns. Raises Mistake where pyarrow is not installed."""
    try:
        arrow: Any = importlib.import_module("pyarrow")
        writer: Any = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise Mistake(f"{name}: Parquet needs pyarrow; pip install pyarrow, or give a .csv") from None
    columns = zip(*rows, strict=True) if rows else ((), (), (), ())
    kinds = (arrow.string(), arrow.string(), arrow.int64(), arrow.int64())
    arrays = [arrow.array(list(values), kind) for values, kind in zip(columns, kinds, strict=True)]
    out = io.BytesIO()
    writer.write_table(arrow.table(arrays, names=["run_id", "name", "seq", "value_ns"]), out)
    return out.getvalue()


def histogram_log(run: Stored, histograms: Sequence[tuple[str, int, int, bytes]]) -> bytes:
    """HdrHistogram's log format 1.3: one interval, tagged with the name of its samples; values are nanoseconds.

    Source: the comment of HistogramLogWriter in HdrHistogram (Java).
    """
    began = run.row["started_at"]
    lines = [
        f"#[bakeoff run {run.row['run_id']}; values in nanoseconds]",
        "#[Histogram log format version 1.3]",
        f"#[StartTime: {began.timestamp():.3f} (seconds since epoch), {began:%a %b %d %H:%M:%S UTC %Y}]",
        '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"',
    ]
    for name, _, most, data in histograms:
        tag = "".join("_" if c in ", \t\r\n" else c for c in name)
        lines.append(f"Tag={tag},0.000,{run.row['duration_s']:.3f},{most / _NS_PER_MS:.3f},{log_payload(data)}")
    return ("\n".join(lines) + "\n").encode()


def _write(name: str, data: bytes, force: bool) -> None:
    try:
        with Path(name).open("wb" if force else "xb") as file:
            file.write(data)
    except OSError as error:
        raise Mistake(f"{name}: cannot be written ({error.strerror or error}); give another file") from None
