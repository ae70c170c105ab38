"""PROTOCOLS: what each one is, in its adapter's words. Qualitative: nothing here is measured."""

from __future__ import annotations

from runner.report.context import Context
from runner.report.table import Cell, Column, Table, words

# fact -> its heading
FACTS = {
    "transport": "transport",
    "schema": "schema",
    "interaction": "interaction",
    "demand": "how a reader says wait",
    "deadlines": "deadlines",
    "browser": "browser",
}


def build(context: Context) -> Table | None:
    """None where no protocol was run."""
    found = context.sweep.declared
    if not found:
        return None
    columns = [
        Column("protocol", "protocol", "key"),
        Column("engine", "engine", "key"),
        Column("library", "library", "text"),
        *(Column(fact, head, "prose") for fact, head in FACTS.items()),
    ]
    rows = [
        {**identity(context, name), **{fact: words(found[name].get(fact)) for fact in FACTS}}
        for name in ordered(context)
    ]
    return Table(
        "protocols",
        "PROTOCOLS",
        "what each one is",
        ["qualitative: declared by the adapters, not measured"],
        columns,
        rows,
        narrow="turned",
        by_itself=several(context),
    )


def ordered(context: Context) -> list[tuple[str, str]]:
    """Every (protocol, engine), the floor first."""
    return sorted(context.sweep.declared, key=lambda name: (name[0] != context.choosing.floor, name))


def several(context: Context) -> bool:
    """Whether there is more than one protocol to tell apart, references aside."""
    return len({protocol for protocol, _ in context.sweep.declared} - set(context.choosing.left_out)) > 1


def identity(context: Context, name: tuple[str, str]) -> dict[str, Cell]:
    """Protocol, engine, and the library with the version that was measured."""
    protocol, engine = name
    library = str(context.sweep.declared[name].get("library") or "")
    versions = sorted(
        {str(facts[library]) for facts in context.sweep.environments.values() if facts.get(library) is not None}
    )
    floor = protocol == context.choosing.floor
    return {
        "protocol": Cell(f"{protocol} (floor)" if floor else protocol, protocol),
        "engine": words(engine),
        "library": words(" ".join([library, " and ".join(versions)]).strip()),
    }
