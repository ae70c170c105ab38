"""Which cells a command line or a suite means, whether all of them can be run, and in which order.

Nothing starts before every cell was composed and checked: all problems of all cells come out at once.
"""

from __future__ import annotations

import itertools
import json
import random
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import CompactHydraException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from runner.config import Cell, check, dotted_keys
from runner.hydra_errors import one_line, unknown_key
from runner.job import plain
from runner.mistakes import Refused, no_such_key, shown
from runner.options import option_file

Compose = Callable[[list[str]], DictConfig]

ONE_PER_SWEEP = ("suite", "storage", "seed", "report", "fail_fast")  # what all cells of a sweep must share
_ONE_OF_A_LIST = re.compile(r"(\S+: expected a list.*), got .* \(write \[(.*)\]\)")  # as runner.values says it
_NOT_THE_CELL = ("plan", "repeats")  # two cells that differ only here are one


@dataclass(frozen=True)
class Combination:
    """The overrides of one cell to be. Those of `optional` keys are left out where the key does not exist."""

    overrides: tuple[str, ...]
    optional: frozenset[str] = frozenset()


@dataclass(frozen=True)
class PlannedCell:
    """A cell that can be run, and the overrides that compose it."""

    overrides: tuple[str, ...]
    cell: Cell
    repeats: int

    def title(self, common: Iterable[str]) -> str:
        """`grpc stream codec=cbor`: protocol, operation, and the overrides that not all cells have."""
        told = {"scenario", "operation", "protocol", "suite", "repeats", *common}
        extra = [o for o in self.overrides if o not in told and o.partition("=")[0] not in told]
        return " ".join([self.cell.protocol, self.cell.operation.name, *extra])


def combinations(overrides: Sequence[Override]) -> list[tuple[str, ...]]:
    """Every combination of the values that `overrides` give (a=1,2 b=3: two), the last axis moving fastest.

    Of two overrides of one key the later wins. Raises Refused for a sweep without end (interval).
    """
    axes: dict[str, list[str]] = {}
    for override in overrides:
        key = override.get_key_element()
        if not override.is_sweep_override():
            axes[key] = [f"{key}={override.get_value_element_as_str()}"]
        elif override.is_discrete_sweep():
            axes[key] = [f"{key}={value}" for value in override.sweep_string_iterator()]
        else:
            raise Refused([f"{override.input_line}: this has no countable values; list them: {key}=1,2"])
    return list(itertools.product(*axes.values()))


def merged(line: Sequence[Override], cli: Sequence[Override]) -> list[Override]:
    """A suite's line with the command line's overrides put over it.

    The command line wins, and where it chooses another option (protocol=tcp) the line's knobs of that group go
    too. One exception: a line that fixes `repeats` keeps it.
    """
    chosen = {override.key_or_group for override in cli}
    kept = [
        override
        for override in line
        if override.key_or_group == "repeats"
        or not (override.key_or_group in chosen or override.key_or_group.partition(".")[0] in chosen)
    ]
    fixed = {override.key_or_group for override in line} & {"repeats"}
    return kept + [override for override in cli if override.key_or_group not in fixed]


def expand(
    lines: Sequence[str] | None, suite: Sequence[str], cli: Sequence[str], parser: OverridesParser
) -> list[Combination]:
    """All combinations: of the command line `cli` alone, or of every line of a suite merged with it.

    `suite`: the overrides that chose the suite. Raises Refused, or what the parser raises.
    """
    told = parser.parse_overrides(list(cli))
    if lines is None:
        return [Combination((*suite, *overrides)) for overrides in combinations(told)]
    # A group has a value everywhere; a key need not.
    optional = frozenset(
        o.key_or_group for o in told if "." in o.key_or_group and not (o.is_add() or o.is_force_add())
    )
    return [
        Combination((*suite, *overrides), optional)
        for line in lines
        for overrides in combinations(merged(parser.parse_overrides(shlex.split(line)), told))
    ]


def suite_lines(sweeps: Any) -> list[str] | None:
    """`hydra.sweeper.sweeps` of a suite file; None where there is none. Raises Refused for anything but lines."""
    if sweeps is None:
        return None
    if isinstance(sweeps, list) and sweeps and all(isinstance(line, str) for line in sweeps):
        return sweeps
    text = f"expected a list of lines, each written as on the command line, got {shown(sweeps)}"
    raise Refused([f"hydra.sweeper.sweeps: {text}"])


def plan(wanted: Sequence[Combination], compose: Compose) -> list[PlannedCell]:
    """Every cell, each once. Raises Refused with all problems of all cells."""
    problems: list[str] = []
    planned: dict[str, PlannedCell] = {}
    found: set[str] = set()
    keys: dict[str, None] = {}
    for combination in wanted:
        try:
            config, overrides = _composed(combination, compose)
        except (CompactHydraException, OmegaConfBaseException) as exc:
            problems.append(one_line(exc))
            continue
        except ValueError as exc:  # how Hydra calls, say, operation=5
            problems.append(f"{' '.join(combination.overrides)}: {exc}")
            continue
        found |= {key for key in combination.optional if any(_key(override) == key for override in overrides)}
        keys |= dict.fromkeys(dotted_keys(config))
        cell, wrong = check(config)
        problems += wrong
        problems += _not_the_scenarios(config, overrides, compose)
        if cell is not None:
            same = json.dumps({k: v for k, v in cell.config.items() if k not in _NOT_THE_CELL}, sort_keys=True)
            before = planned.get(same, PlannedCell(overrides, cell, 0))
            planned[same] = replace(before, repeats=max(before.repeats, cell.repeats))
    for key in sorted({key for combination in wanted for key in combination.optional} - found):
        section = key.partition(".")[0]
        problems.append(no_such_key(key, f"no sweep of this suite has it; {section}", _below(section, keys), keys))
    cells = list(planned.values())
    problems += [
        f"{name}: one sweep has one {name}; give one value"
        for name in ONE_PER_SWEEP
        if len({json.dumps(planned.cell.config[name], sort_keys=True) for planned in cells}) > 1
    ]
    if not wanted:
        problems.append("nothing to run: a glob on the command line matches nothing")
    if problems:
        raise Refused(_as_one_list(problems))
    return cells


def _as_one_list(problems: Iterable[str]) -> list[str]:
    """`problems`, with those of a list written as a sweep (key=0.5,1) as the one that they are."""
    said: dict[str, dict[str, None]] = {}
    alone: dict[str, str] = {}
    for problem in problems:
        found = _ONE_OF_A_LIST.fullmatch(problem)
        where = found[1] if found else problem
        alone.setdefault(where, problem)
        said.setdefault(where, {}).update({found[2]: None} if found else {})
    return [
        f"{where}; write {where.partition(':')[0]}=[{','.join(items)}]" if len(items) > 1 else alone[where]
        for where, items in said.items()
    ]


def _below(section: str, keys: Iterable[str]) -> list[str]:
    return [key.partition(".")[2] for key in keys if key.startswith(f"{section}.")]


def _composed(combination: Combination, compose: Compose) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The configuration of one cell, and the overrides that were of use.

    A key that does not exist is left out if it is optional. Otherwise it is forced in: `check` then says what is
    wrong with it, with everything else that is wrong.
    """
    overrides = list(combination.overrides)
    while True:
        try:
            return plain(compose(overrides)), tuple(overrides)
        except CompactHydraException as exc:
            key = unknown_key(exc)
            at = next((i for i, override in enumerate(overrides) if _key(override) == key), None)
            if key is None or at is None or overrides[at].startswith("++"):
                raise
            if key in combination.optional:
                del overrides[at]
            else:
                overrides[at] = f"++{overrides[at]}"


def _not_the_scenarios(config: dict[str, Any], overrides: Sequence[str], compose: Compose) -> list[str]:
    """The problem, if any, of an operation chosen beside the scenario, under whose name it would be stored."""
    if "operation" not in map(_key, overrides) or not isinstance(operation := config.get("operation"), dict):
        return []
    kept = [o for o in overrides if _key(o) in ("scenario", "suite") or _key(o).startswith("hydra.")]
    name = operation.get("name")
    if plain(compose(kept))["operation"]["name"] == name:
        return []
    way_out = f"use scenario={name}" if option_file("scenario", str(name)) else "write a scenario file that does"
    return [f"operation: a scenario chooses it; {way_out}"]


def _key(override: str) -> str:
    return override.lstrip("+~").partition("=")[0]


def order(repeats: Sequence[int], seed: int) -> list[tuple[int, int]]:
    """(index of the cell, number of the repeat, from 1) for every run: the first repeat of all cells, then the
    second of all that have one, and so on. Shuffled inside each, so that no cell always follows the same other.
    """
    rng = random.Random(seed)
    turns = []
    for repeat in range(1, max(repeats, default=0) + 1):
        block = [(cell, repeat) for cell, wanted in enumerate(repeats) if wanted >= repeat]
        rng.shuffle(block)
        turns += block
    return turns


@dataclass(frozen=True)
class Turn:
    """One run of the plan, and the overrides that Hydra composes it of."""

    title: str
    repeat: int
    overrides: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.title} repeat {self.repeat}"


def turns(cells: Sequence[PlannedCell], seed: int, sweep_id: str) -> list[Turn]:
    """Every run in the order in which it is started."""
    drawn = [f"seed={seed}"] if cells[0].cell.config["seed"] is None else []
    common = set.intersection(*(set(cell.overrides) for cell in cells))
    return [
        Turn(
            title=cells[index].title(common),
            repeat=repeat,
            overrides=(
                *cells[index].overrides,
                *drawn,
                f"plan.sweep_id='{sweep_id}'",
                f"plan.position={position}",
                f"plan.repeat={repeat}",
            ),
        )
        for position, (index, repeat) in enumerate(order([cell.repeats for cell in cells], seed), start=1)
    ]
