"""Whether a value fits an annotation, and how to say that it does not.

Nothing is converted but numbers that mean the same: 1e3 and 5.0 are whole, 5 is also 5.0. Text is never a number.
"""

from __future__ import annotations

import math
import re
import types
from collections.abc import Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

from runner.mistakes import near, shown

_LEADING_ZERO = re.compile(r"[-+]?0+([0-9_]+)")


def fit(kind: Any, value: Any) -> tuple[Any, Any]:
    """`value` in the plain form that `kind` means (1000 for 1e3) and as an instance of it. Raises ValueError."""
    plain = _plain(kind, value)
    try:
        return plain, msgspec.convert(plain, kind)
    except msgspec.ValidationError as exc:
        raise ValueError(str(exc)) from None


def _plain(kind: Any, value: Any) -> Any:
    if value is None:
        return value
    base = _base(kind)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(value)
        if base is int and value.is_integer():
            return int(value)
        return value
    if base is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if get_origin(base) in (list, tuple) and isinstance(value, (list, tuple)):
        return [_plain(get_args(base)[0], item) for item in value]
    return value


def _base(kind: Any) -> Any:
    """The annotation without constraints and without "or null"."""
    if get_origin(kind) is Annotated:
        return _base(get_args(kind)[0])
    if get_origin(kind) in (Union, types.UnionType):
        return _base(next(arg for arg in get_args(kind) if arg is not type(None)))
    return kind


def refusal(kind: Any, value: Any) -> str:
    """Why `value` does not fit, and what would."""
    text = f"expected {describe(kind)}, got {shown(value)}"
    base = _base(kind)
    if get_origin(base) is Literal:
        return text + near(str(value), [str(arg) for arg in get_args(base)])
    if isinstance(value, str):
        return text + _way_out(kind, base, value)
    if get_origin(base) in (list, tuple) and isinstance(value, (int, float)) and not isinstance(value, bool):
        return f"{text} (write [{shown(value)}])" if _fits(kind, [value]) else text
    if base is str and isinstance(value, (bool, int, float)):
        return f"{text} (write '\"{shown(value)}\"')"  # the shell takes one pair of quotes away
    return text


def _fits(kind: Any, value: Any) -> bool:
    try:
        fit(kind, value)
    except ValueError:
        return False
    return True


def _way_out(kind: Any, base: Any, value: str) -> str:
    word = value.strip().lower()
    if word in ("none", "nil", "~") and type(None) in _arms(kind):
        return " (write null)"
    if base is bool and word in ("yes", "no", "on", "off", "true", "false", "1", "0"):
        return f" (write {'true' if word in ('yes', 'on', 'true', '1') else 'false'})"
    if base in (int, float):
        if zero := _LEADING_ZERO.fullmatch(value):
            return f" (a leading 0 means octal in YAML; write {zero[1]})"
        if re.fullmatch(r"[-+]?[0-9][0-9_.e+-]*", word):
            return " (leave out the quotes)"
    return ""


def _arms(kind: Any) -> Sequence[Any]:
    if get_origin(kind) is Annotated:
        return _arms(get_args(kind)[0])
    return get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)


def describe(kind: Any) -> str:
    """What a key takes, in words: "a whole number, 1 or more"."""
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        metas = [arg for arg in args[1:] if isinstance(arg, msgspec.Meta)]
        if get_origin(args[0]) in (list, tuple):
            fewest = max((meta.min_length or 0 for meta in metas), default=0)
            return _list_of(get_args(args[0])[0], f" of {fewest} or more" if fewest else "")
        return describe(args[0]) + "".join(map(_bounds, metas))
    if origin in (Union, types.UnionType):
        arms = [describe(arg) for arg in args if arg is not type(None)]
        return " or ".join(arms) + ("; or null" if type(None) in args else "")
    if origin is Literal:
        return "one of " + ", ".join(map(str, args)) if len(args) > 1 else str(args[0])
    if origin in (list, tuple):
        return _list_of(args[0], "")
    words = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
    return words.get(kind, getattr(kind, "__name__", str(kind)))


def _list_of(item: Any, length: str) -> str:
    return f"a list{length}, each {describe(item)}"


def _bounds(meta: msgspec.Meta) -> str:
    if meta.ge is not None and meta.le is not None:
        return f" from {meta.ge} to {meta.le}"
    bounds = [
        f", {meta.ge} or more" if meta.ge is not None else "",
        f", {meta.le} or less" if meta.le is not None else "",
        f" above {meta.gt}" if meta.gt is not None else "",
        f" below {meta.lt}" if meta.lt is not None else "",
    ]
    return "".join(bounds)
