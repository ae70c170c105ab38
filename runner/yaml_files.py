"""What can be wrong with a configuration file before anything is composed of it.

YAML reads some plain words as something nobody meant (012 is 10, 1:30 is 90), keeps the last of two equal keys
without a word, and Hydra takes ours where a user's file has the same place and name. All of that is refused here,
with file and line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from runner.mistakes import Refused
from runner.options import CONF, GROUPS

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_OCTAL = re.compile(r"([-+]?)0+([0-9_]+)")
_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")


def refuse_bad_files(*folders: Path, conf: Path = CONF) -> None:
    """Raises Refused for every mistake in the option files of `conf` and of a user's `folders`."""
    problems = [problem for file in _files(conf) for problem in file_problems(file)]
    for folder in folders:
        if not folder.is_dir():
            problems.append(f"--config-dir: there is no folder {folder}")
        elif not folder.samefile(conf):
            for file in _files(folder):
                problems += _clash(file, file.relative_to(folder), conf) + file_problems(file)
    if problems:
        raise Refused(problems)


def _clash(file: Path, place: Path, conf: Path) -> list[str]:
    if not (conf / place).is_file():
        return []
    return [
        f"{file}: would not be used, because {conf / place} has the same place and name; "
        f"rename yours, say to {place.with_stem('my_' + place.stem)}"
    ]


def file_problems(file: Path) -> list[str]:
    """What is wrong with one YAML file, each with its line."""
    try:
        root = yaml.compose(file.read_text(encoding="utf-8"), Loader=_LOADER)
    except yaml.YAMLError as exc:
        return [yaml_problem(exc, str(file))]
    except (OSError, UnicodeDecodeError) as exc:
        return [f"{file}: cannot be read: {exc}"]
    return [f"{file}:{node.start_mark.line + 1}: {what}" for node, what in _strange(root)]


def yaml_problem(exc: yaml.YAMLError, file: str) -> str:
    """`file:line: what` of a syntax error."""
    mark = getattr(exc, "problem_mark", None) or getattr(exc, "context_mark", None)
    what = getattr(exc, "problem", None) or str(exc).partition("\n")[0]
    return f"{file}:{mark.line + 1}: {what}" if mark else f"{file}: {what}"


def _files(folder: Path) -> Iterator[Path]:
    """config.yaml and the files of our groups; what else lies there is not ours to judge."""
    for pattern in ("config.yaml", *(f"{group}/**/*.yaml" for group in (*GROUPS, "hydra"))):
        yield from sorted(folder.glob(pattern))


def _strange(node: Any) -> Iterator[tuple[Any, str]]:
    if isinstance(node, yaml.MappingNode):
        seen: dict[str, int] = {}
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                if first := seen.get(key.value):
                    yield key, f"'{key.value}' is here twice, first in line {first}; keep one"
                seen[key.value] = key.start_mark.line + 1
            yield from _strange(value)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _strange(item)
    elif isinstance(node, yaml.ScalarNode) and node.tag in _NUMBERS:
        if octal := _OCTAL.fullmatch(node.value):
            yield node, f"{node.value} is octal in YAML, because of the leading 0; write {octal[1]}{octal[2]}"
        elif ":" in node.value:
            yield node, f"{node.value} counts in sixties in YAML; write it as one number, or in quotes"
