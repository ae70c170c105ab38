"""The parts of README.md that are generated: `python -m tests.readme [results.db]` writes them.

Output of the tool is never typed: the first screen's tables, and the picture that README.md shows, come from the
last sweep in the database; the columns of tables and views from runner.store.schema and runner.store.views.
tests/test_readme.py compares what can be compared.
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from runner.report.command import built
from runner.report.pictures.svg import drawn
from runner.report.read import open_report, sweeps
from runner.store import schema
from runner.store.views import COLUMNS
from runner.words import listed

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PICTURE = ROOT / ".github" / "production.svg"
DRAWN = ("backpressure", "producer awaited")  # its table, and what its title begins with
SHOWN = ("request_response", "backpressure", "choosing")


def views() -> str:
    """One table per view."""
    parts = []
    for view, columns in COLUMNS.items():
        rows = "\n".join(f"| `{name}` | {meaning} |" for name, meaning in columns)
        parts.append(f"`{view}`\n\n| column | unit, meaning |\n|---|---|\n{rows}\n")
    return "\n".join(parts)


def tables() -> str:
    """One table per table."""
    parts = []
    for table in schema.metadata.tables.values():
        rows = "\n".join(f"| `{column.name}` | {column.comment} |" for column in table.columns)
        parts.append(f"`{table.name}`: {table.comment}\n\n| column | unit, meaning |\n|---|---|\n{rows}\n")
    return "\n".join(parts)


def words() -> str:
    """The words that stand before key=value, as --help lists them; marked as text, so that no test runs them."""
    return f"```text\n{listed(0)}\n```\n"


def output(db: str) -> str:
    """What `bakeoff report` prints for the last sweep of `db`, a file named results.db."""
    command = [sys.executable, "-m", "runner", "report", *SHOWN]
    folder = Path(db).resolve().parent
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=60)
    return f"```\n$ bakeoff report {' '.join(SHOWN)}\n\n{done.stdout.strip()}\n```\n"


def picture(db: str) -> str:
    """One chart of the HTML report of the last sweep of `db`, as a file of its own."""
    with open_report(db) as connection:
        report = built(sweeps(connection)[-1:], "results.db", DRAWN[:1], "none", pictures=True)
    [found] = report.sections[0].pictures
    chart = next(chart for chart in found.charts if chart.title.startswith(DRAWN[1]))
    return drawn(replace(found, charts=[chart]), chart, "production", alone=True) + "\n"


def replaced(text: str, marker: str, part: str) -> str:
    """`text` with what stands between the comment that begins with `marker` and the next end as `part`."""
    pattern = re.compile(rf"(<!-- {marker}:[^\n]*-->\n).*?(<!-- end -->)", re.DOTALL)
    found, n = pattern.subn(lambda match: f"{match[1]}\n{part}\n{match[2]}", text)
    assert n == 1, marker
    return found


def main() -> None:
    text = replaced(replaced(README.read_text(), "views", views()), "tables", tables())
    text = replaced(text, "words", words())
    if len(sys.argv) > 1:
        text = replaced(text, "generated", output(sys.argv[1]))
        PICTURE.write_text(picture(sys.argv[1]))
    README.write_text(text)


if __name__ == "__main__":
    main()
