"""Any message of any type, for tests that take them all."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from adapters import messages
from adapters.codecs_table import item_kind

KINDS = [kind for kind in vars(messages).values() if isinstance(kind, type) and issubclass(kind, msgspec.Struct)]

# Nothing fails for being slow: the machine may be busy.
UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

_INT64 = st.integers(-(2**63), 2**63 - 1)
_VALUES: dict[Any, st.SearchStrategy[Any]] = {
    str: st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from(["null", "a\0b", '"\\\n', "漢😀"]),
    int: _INT64 | st.sampled_from([0, 23, 24, 2**53 + 1, 2**63 - 1, -(2**63)]),
    float: st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([-0.0, 5e-324, 1e308]),
    bytes: st.binary(),
}


def any_of(kind: type) -> st.SearchStrategy[Any]:
    """Messages of type `kind` that every codec can carry."""
    return st.builds(kind, *(_values(field.type) for field in msgspec.structs.fields(kind)))


def _values(annotation: Any) -> st.SearchStrategy[Any]:
    items = item_kind(annotation)
    return st.lists(any_of(items[0]), max_size=3) if items else _VALUES[annotation]


def sevens(kind: type) -> Any:
    """A message with 7 in every field, and two items in every list."""
    fields = msgspec.structs.fields(kind)
    return kind(*([sevens(item_kind(f.type)[0])] * 2 if item_kind(f.type) else f.type(7) for f in fields))


def well_typed(message: Any, kind: type) -> bool:
    """Whether `message` is a `kind` and each field a value of exactly the declared type."""
    values = ((getattr(message, field.name), field.type) for field in msgspec.structs.fields(kind))
    return type(message) is kind and all(_of_type(value, expected) for value, expected in values)


def _of_type(value: Any, annotation: Any) -> bool:
    items = item_kind(annotation)
    return (
        type(value) is list and all(well_typed(item, items[0]) for item in value)
        if items
        else type(value) is annotation
    )
