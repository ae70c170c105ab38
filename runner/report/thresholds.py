"""A file of thresholds: what it may say, and every mistake in it as one line with its place.

rules:
  - p99_us < 2000                            of every cell that measures it: the median of its good runs
  - rule: p50_us ratio < 1.10 with 95 %      against the same cell of a baseline
    where: {operation: request_response, protocol: [grpc, rsocket]}
    name: calls did not become slower
  - rule: bounded_by = demand                a word: of every run
    where: {producer: credited}
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from runner.report.stats import CONFIDENCE
from runner.report.stored import Clause, near, said

COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "!=": operator.ne,
    "==": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
    "=": operator.eq,
}
_RULE = re.compile(r"([\w.]+)(\s+ratio)?\s*(<=|>=|!=|==|<|>|=)\s*(.+?)(?:\s+with\s+([\d.]+)\s*%)?")
_KEYS = ("rule", "where", "name")
_FORMS = "write it as p99_us < 2000, p50_us ratio < 1.10 with 95 %, or bounded_by = demand"


class Misstated(Exception):
    """A mistake in the file: one line with its place and the way out."""


@dataclass(frozen=True)
class Rule:
    """`limit`: a number, or the word that a finding, condition or column must (or must not) be. `relative`: it is
    about the ratio to a baseline; `certain`: about all of its 95 % interval.
    """

    text: str
    name: str
    metric: str
    comparison: str
    limit: float | str
    relative: bool
    certain: bool
    where: tuple[Clause, ...]

    def holds(self, value: float | str) -> bool:
        """Whether the value is as it should be."""
        found = COMPARISONS[self.comparison](value, self.limit)
        return bool(found)


def rules(text: str, file: str) -> list[Rule]:
    """What the file says, in order. Raises Misstated."""
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        at = f"line {mark.line + 1}: " if mark else ""
        problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
        raise Misstated(f"{file}: {at}{problem}; it is not YAML") from None
    if not isinstance(found, dict) or not isinstance(found.get("rules"), list) or not found["rules"]:
        raise Misstated(f"{file}: expected a list of rules under the key 'rules'")
    if unknown := [str(key) for key in found if key != "rules"]:
        raise Misstated(f"{file}: {unknown[0]}: no such key{near(unknown[0], ['rules'])} (it takes: rules)")
    return [_rule(entry, f"{file}: rule {number}") for number, entry in enumerate(found["rules"], 1)]


def _rule(entry: Any, place: str) -> Rule:
    given = {"rule": entry} if isinstance(entry, str) else entry
    if not isinstance(given, dict):
        raise Misstated(f"{place}: expected text or keys, got {said(entry) or 'nothing'}; {_FORMS}")
    if unknown := [str(key) for key in given if key not in _KEYS]:
        takes = ", ".join(_KEYS)
        raise Misstated(f"{place}: {unknown[0]}: no such key{near(unknown[0], _KEYS)} (a rule takes: {takes})")
    text = given.get("rule")
    if not isinstance(text, str):
        raise Misstated(
            f"{place}: rule: missing; {_FORMS}" if text is None else f"{place}: rule: not text; {_FORMS}"
        )
    name = given.get("name", "")
    if not isinstance(name, str):
        raise Misstated(f"{place}: name: expected text, got {said(name)}; put it in quotes")
    return _parsed(text, name, _where(given.get("where", {}), place), place)


def _parsed(text: str, name: str, where: tuple[Clause, ...], place: str) -> Rule:
    found = _RULE.fullmatch(text.strip())
    if found is None:
        raise Misstated(f"{place}: {text!r} is not understood; {_FORMS}")
    metric, ratio, comparison, right, percent = found.groups()
    limit = _number(right)
    if ratio and limit is None:
        raise Misstated(f"{place}: {text!r}: a ratio is compared with a number, not with {right!r}")
    if limit is None and comparison not in ("=", "==", "!="):
        raise Misstated(f"{place}: {text!r}: {right!r} is no number; words are compared with = or !=")
    if percent and not ratio:
        raise Misstated(f"{place}: {text!r}: only a ratio has an interval; leave out 'with {percent} %'")
    if percent and float(percent) != CONFIDENCE:
        raise Misstated(f"{place}: {text!r}: intervals are of {CONFIDENCE:g} %; write 'with {CONFIDENCE:g} %'")
    if percent and comparison in ("=", "==", "!="):
        raise Misstated(f"{place}: {text!r}: an interval is below or above a number; use < or >")
    return Rule(
        text, name, metric, comparison, right if limit is None else limit, bool(ratio), bool(percent), where
    )


def _where(given: Any, place: str) -> tuple[Clause, ...]:
    if not isinstance(given, dict):
        raise Misstated(f"{place}: where: expected keys, got {said(given)}; write where: {{protocol: grpc}}")
    clauses = []
    for key, values in given.items():
        several = values if isinstance(values, list) else [values]
        if any(isinstance(value, dict | list) for value in several):
            raise Misstated(f"{place}: where: {key}: expected a value or a list of values")
        clauses.append(Clause(str(key), tuple(map(said, several))))
    return tuple(clauses)


def _number(text: str) -> float | None:
    try:
        return float(text.replace(",", "").replace("_", ""))
    except ValueError:
        return None
