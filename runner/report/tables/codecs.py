"""CODECS: what each protocol's bare library takes, and how the wire says what it carries. Qualitative."""

from __future__ import annotations

from runner.report.context import Context
from runner.report.table import Column, Table, words
from runner.report.tables.protocols import identity, ordered, several


def build(context: Context) -> Table | None:
    """None where no protocol was run."""
    found = context.sweep.declared
    if not found:
        return None
    columns = [
        Column("protocol", "protocol", "key"),
        Column("engine", "engine", "key"),
        Column("library", "library", "text"),
        Column("accepts", "the bare library takes", "prose"),
        Column("default_codec", "default codec here", "text"),
        Column("wire_type", "type or frame kind on the wire", "prose"),
    ]
    facts = ("accepts", "default_codec", "wire_type")
    return Table(
        "codecs",
        "CODECS",
        "who turns messages into bytes",
        ["qualitative: declared by the adapters, not measured", "any codec can be chosen over any protocol"],
        columns,
        [
            {**identity(context, name), **{fact: words(found[name].get(fact)) for fact in facts}}
            for name in ordered(context)
        ],
        narrow="records",
        by_itself=several(context),
    )
