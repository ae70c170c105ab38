"""From the plain keys of one section to the object they describe: annotations are the validation.

A dataclass's fields or a constructor's parameters say which keys there are. Every problem is reported, each in a
sentence; nothing is raised for what a user wrote.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterable, Mapping
from dataclasses import MISSING as UNSET
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, TypeVar, get_type_hints

from runner.mistakes import no_such_key, shown
from runner.values import describe, fit, refusal

T = TypeVar("T")
_NEEDS = re.compile(r"\bneeds (\w+=\S+)$")
MISSING = "???"  # how a composed configuration spells a value that was never given


@dataclass(frozen=True)
class Key:
    """One key that a section takes: its annotation, and its default (UNSET where it must be given)."""

    kind: Any
    default: Any


@dataclass(frozen=True)
class Read:
    """A section as it was understood: plain values for the record, and what a constructor takes."""

    plain: dict[str, Any]
    arguments: dict[str, Any]


def keys_of(kind: type) -> dict[str, Key]:
    """The keys that `kind` takes: a dataclass's fields, else its constructor's parameters."""
    if is_dataclass(kind):
        hints = get_type_hints(kind, include_extras=True)
        return {
            field.name: Key(
                hints[field.name],
                field.default if field.default_factory is UNSET else field.default_factory(),
            )
            for field in fields(kind)
            if field.init
        }
    constructor: Any = kind.__init__  # type: ignore[misc]
    if constructor is object.__init__:
        return {}
    hints = get_type_hints(constructor, include_extras=True)
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    _, *parameters = inspect.signature(constructor).parameters.values()
    return {
        parameter.name: Key(
            hints.get(parameter.name, Any),
            UNSET if parameter.default is parameter.empty else parameter.default,
        )
        for parameter in parameters
        if parameter.kind in named
    }


def locate(path: str, target: Any, base: type[Any], problems: list[str]) -> type[Any] | None:
    """The class that `target` ("adapters.tcp.Tcp") names, a subclass of `base`. `path` names the key."""
    if not isinstance(target, str) or "." not in target:
        problems.append(f"{path}: expected the dotted name of a class, got {shown(target)}")
        return None
    module_name, _, name = target.rpartition(".")
    try:
        found = getattr(importlib.import_module(module_name), name)
    except (ImportError, AttributeError) as exc:
        problems.append(f"{path}: cannot import {target}: {exc}")
        return None
    if not (isinstance(found, type) and issubclass(found, base)):
        problems.append(f"{path}: {target} is no {base.__name__}")
        return None
    return found


def read(path: str, taker: str, keys: Mapping[str, Key], values: Mapping[str, Any], problems: list[str]) -> Read:
    """`values` against `keys`. `path`: where they are ("" at the top) and `taker`: who takes them, for messages."""
    prefix = f"{path}." if path else ""
    result = Read({}, {})
    for name, value in values.items():
        key = keys.get(name)
        if key is None:
            problems.append(no_such_key(f"{prefix}{name}", taker, [other for other in keys if other != "name"]))
        elif value == MISSING:
            problems.append(f"{prefix}{name}: missing; give {describe(key.kind)}")
        else:
            try:
                result.plain[name], result.arguments[name] = fit(key.kind, value)
            except ValueError:
                problems.append(f"{prefix}{name}: {refusal(key.kind, value)}")
    for name, key in keys.items():
        if key.default is UNSET and name not in values:
            problems.append(f"{prefix}{name}: missing; give {describe(key.kind)}")
    return result


def build(path: str, kind: type[T], arguments: Mapping[str, Any], problems: list[str]) -> T | None:
    """The object, or None and one problem more: what a constructor finds between its keys."""
    try:
        return kind(**arguments)
    except (ValueError, TypeError) as exc:
        problems.append(_between_keys(path, arguments, str(exc)))
        return None


def _between_keys(path: str, keys: Iterable[str], text: str) -> str:
    """What a constructor says, with its keys as the command line spells them."""
    word, _, rest = text.partition(" ")
    if not path or word.rstrip(":") not in keys:
        return f"{path}: {text}" if path else text
    needed = _NEEDS.search(rest)
    way_out = f"; add {path}.{needed[1]}" if needed else ""
    return f"{path}.{word.rstrip(':')}: {rest}{way_out}"
