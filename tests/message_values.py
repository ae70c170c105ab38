"""Any message of any type, for tests that take them all."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from adapters import messages

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
    return st.builds(kind, *(_VALUES[field.type] for field in msgspec.structs.fields(kind)))


def well_typed(message: Any, kind: type) -> bool:
    """Whether `message` is a `kind` and each field a value of exactly the declared type."""
    values = ((getattr(message, field.name), field.type) for field in msgspec.structs.fields(kind))
    return type(message) is kind and all(type(value) is expected for value, expected in values)
