"""conf/choosing.yaml: what people need, what each choice costs, and the rules that pick from what was measured."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Literal

import msgspec

from runner.report.published import decoded
from runner.report.read import ReportError

Of = Literal["protocol", "codec", "producer"]
Word = str | int | float | bool


class Beside(msgspec.Struct, forbid_unknown_fields=True):
    """What else is said of the pick: the median of `metric` (more is better) in another operation."""

    operation: str
    metric: str


class Rule(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """How a need is answered; conf/choosing.yaml explains each word."""

    operation: str = ""
    where: dict[str, Word | list[Word]] = {}
    of: Of = "protocol"
    among: list[str] = []
    beside: Beside | None = None
    lowest: str = ""
    highest: str = ""
    smallest: str = ""
    fewest_produced: bool = False
    bounded_by: str = ""
    qualitative: bool = False


class PublishedPick(msgspec.Struct, forbid_unknown_fields=True):
    """What a source picks for the need, in its words, and which source (a file of conf/published/). `means`: what
    that is called here, where the words differ.
    """

    pick: str
    source: str
    means: str = ""


class Need(msgspec.Struct, forbid_unknown_fields=True):
    """One row of the choosing table. `pick` and `because` are given only where the rule is qualitative."""

    need: str
    rule: Rule
    pick: str = ""
    because: str = ""
    cost: str = ""
    published: PublishedPick | None = None


class Choosing(msgspec.Struct, forbid_unknown_fields=True):
    """`floor`: the protocol that the others are shown as multiples of. `left_out`: never picked."""

    floor: str
    left_out: list[str]
    costs: dict[str, str]
    needs: list[Need]


def load(file: Traversable | None = None) -> Choosing:
    """conf/choosing.yaml, or `file`. Raises ReportError, which names the need that has the mistake."""
    found = decoded(file or files("conf") / "choosing.yaml", Choosing, "conf/choosing.yaml")
    for need in found.needs:
        if problem := _problem(need):
            raise ReportError(f"conf/choosing.yaml: need '{need.need}': {problem}")
    return found


def _problem(need: Need) -> str:
    rule = need.rule
    ranking = [word for word in ("lowest", "highest", "smallest", "fewest_produced") if getattr(rule, word)]
    if rule.qualitative:
        if ranking or rule.bounded_by or rule.operation or rule.among or rule.beside:
            return "a qualitative rule measures nothing; leave the other words out"
        return "" if need.pick and need.because else "a qualitative rule needs `pick` and `because`"
    if need.pick or need.because:
        return "`pick` and `because` are computed; only a qualitative rule has them"
    if not rule.operation:
        return "`operation` is missing: whose runs are looked at"
    if rule.among and not (rule.lowest or rule.highest):
        return "`among` is for lowest and highest: the pick is compared with the best of the others"
    if len(ranking) > 1:
        return f"give one of {' and '.join(ranking)}"
    return "" if ranking or rule.bounded_by else "give lowest, highest, smallest, fewest_produced or bounded_by"
