"""A report as one HTML file: the tables that the other formats have, and pictures. It opens offline.

Nothing in it is fetched or run: no script, no font, no link to elsewhere, and its policy forbids them. Whatever a
user named (labels, suites, commands, variants) is escaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from runner.report.figures import number, plain
from runner.report.pictures.chart import Axis, Picture
from runner.report.pictures.svg import STYLE, drawn
from runner.report.render import Report, Section
from runner.report.table import Cell, Column, Table


def page(report: Report) -> str:
    """The file."""
    here = files("runner.report")
    template = Environment(autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True).from_string(
        (here / "page.html.j2").read_text("utf-8")
    )
    several = len(report.sections) > 1
    names = ", ".join(section.sweep_id for section in report.sections[-1:])
    return template.render(
        title=f"bakeoff · {len(report.sections)} sweeps" if several else f"bakeoff · sweep {names}",
        style=Markup(STYLE + (here / "page.css").read_text("utf-8")),
        sections=[_section(section, f"s{i}") for i, section in enumerate(report.sections, 1)],
        closing=report.closing,
    )


def _section(section: Section, prefix: str) -> dict[str, Any]:
    titles = {table.name: table.title for table in section.tables}
    return {
        "id": prefix,
        "sweep_id": section.sweep_id,
        "lines": section.lines,
        "attention": section.attention,
        "pictures": [_picture(found, prefix, titles[found.table]) for found in section.pictures],
        "tables": [_table(table, prefix) for table in section.tables],
    }


def _picture(picture: Picture, prefix: str, title: str) -> dict[str, Any]:
    name = f"{prefix}-picture-{picture.name}"
    points = list(_points(picture))
    brackets = any(row[4:] != ["", ""] for row in points)
    return {
        "id": name,
        "question": picture.question,
        "notes": picture.notes,
        "table_id": f"{prefix}-{picture.table}",
        "table_title": title,
        "charts": [
            {"title": chart.title, "svg": Markup(drawn(picture, chart, f"{name}-{i}"))}
            for i, chart in enumerate(picture.charts)
        ],
        "brackets": brackets,
        "points": points if brackets else [row[:4] for row in points],
    }


def _points(picture: Picture) -> Iterator[list[str]]:
    """chart, line, x, y, least, most of everything that is drawn."""
    for chart in picture.charts:
        what = f"{chart.title}: {chart.y.label} by {chart.x.label}".removeprefix(": ")
        for line in chart.lines:
            repeats = {f"{line.name}, {name}": points for name, points in line.repeats.items()}
            for name, points in {line.name: line.points, **repeats}.items():
                for p in points:
                    values = ("" if value is None else _read(value) for value in (p.y, p.low, p.high))
                    yield [what, name, _on(chart.x, p.x), *values]


def _on(axis: Axis, value: float) -> str:
    return (axis.ticks or {}).get(value) or _read(value)


def _read(value: float) -> str:
    """Six significant figures."""
    return number(value) if abs(value) >= 1e5 or value == int(value) else plain(value)


def _table(table: Table, prefix: str) -> dict[str, Any]:
    shown = [column for column in table.columns if column.shown]
    return {
        "id": f"{prefix}-{table.name}",
        "title": table.title,
        "subtitle": table.subtitle,
        "conditions": table.conditions,
        "columns": [{"head": column.head, "kind": column.kind} for column in shown],
        "rows": [_cells(shown, row) for row in table.rows],
        "notes": table.notes,
    }


def _cells(columns: Sequence[Column], row: Any) -> list[dict[str, Any]]:
    found = [(column, row.get(column.key, Cell())) for column in columns]
    return [{"kind": column.kind, "text": cell.text, "bracket": cell.bracket} for column, cell in found]
