"""What can be wrong with a configuration file before anything is composed of it.

YAML reads some plain words as something nobody meant (012 is 10, 1:30 is 90), keeps the last of two equal keys
without a word, and Hydra takes ours where a user's file has the same place and name. A file that says less than
its group needs is composed to something else. All of that is refused here, with file and line.
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
_GLOBAL = "# @package _global_"
_NAMED = {"scenario": "scenario", "suite": "suite"}  # group -> the key that repeats the file's name
_TARGETS = {"operation": "runner.operations.stream.Stream", "protocol": "adapters.tcp.Tcp"}
_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")


def refuse_bad_files(*folders: Path, conf: Path = CONF) -> None:
    """Raises Refused for every mistake in the option files of `conf` and of a user's `folders`."""
    problems = [problem for file in _files(conf) for problem in file_problems(file, _group(file, conf))]
    for folder in folders:
        if not folder.is_dir():
            problems.append(f"--config-dir: there is no folder {folder}")
        elif not folder.samefile(conf):
            for file in _files(folder):
                problems += _clash(file, file.relative_to(folder), conf) + file_problems(file, _group(file, folder))
    if problems:
        raise Refused(problems)


def _clash(file: Path, place: Path, conf: Path) -> list[str]:
    if not (conf / place).is_file():
        return []
    return [
        f"{file}: would not be used, because {conf / place} has the same place and name; "
        f"rename yours, say to {place.with_stem('my_' + place.stem)}"
    ]


def file_problems(file: Path, group: str = "") -> list[str]:
    """What is wrong with one YAML file, each with its line. `group`: the folder that it is an option of."""
    try:
        text = file.read_text(encoding="utf-8")
        root = yaml.compose(text, Loader=_LOADER)
    except yaml.YAMLError as exc:
        return [yaml_problem(exc, str(file))]
    except (OSError, UnicodeDecodeError) as exc:
        return [f"{file}: cannot be read: {exc}"]
    if group in GROUPS and (lacking := _lacking(group, file.stem, text, root)):
        return [f"{file}: {lacking}"]
    return [f"{file}:{node.start_mark.line + 1}: {what}" for node, what in _strange(root)]


def yaml_problem(exc: yaml.YAMLError, file: str) -> str:
    """`file:line: what; the way out` of a syntax error."""
    mark = getattr(exc, "problem_mark", None) or getattr(exc, "context_mark", None)
    what = getattr(exc, "problem", None) or str(exc).partition("\n")[0]
    return f"{file}:{mark.line + 1}: {what}; {_way_out(what, file, mark)}" if mark else f"{file}: {what}"


def _way_out(what: str, file: str, mark: yaml.Mark) -> str:
    if "cannot start any token" in what and _is_tab(file, mark):
        return "indent with spaces, not tabs"
    if any(words in what for words in ("cannot start any token", "alias", "anchor", "tag")):
        return "put the value in quotes"
    if "another document" in what:
        return "keep one document in the file"
    if "',' or" in what:
        return "close the bracket"
    if "unexpected end of stream" in what:
        return "close the quote"
    return f"check the indentation of line {mark.line + 1}"


def _is_tab(file: str, mark: yaml.Mark) -> bool:
    try:
        line = Path(file).read_text(encoding="utf-8").splitlines()[mark.line]
    except (OSError, UnicodeDecodeError, IndexError):
        return False
    return line[mark.column : mark.column + 1] == "\t"


def _group(file: Path, folder: Path) -> str:
    """The group that a file is an option of; "" for one further down, which may be a piece of others."""
    parts = file.relative_to(folder).parts
    return parts[0] if len(parts) == 2 else ""


def _lacking(group: str, name: str, text: str, root: Any) -> str:
    """What an option file must say and does not, with what to write; "" for nothing."""
    named = _NAMED.get(group)
    first = f"write {named or 'name'}: {name}"
    if named and not _is_global(text):
        return f"the first line must be `{_GLOBAL}`"
    if root is None:
        return f"it is empty; {first}, and the keys that belong to it"
    if not isinstance(root, yaml.MappingNode):
        return f"expected keys, got {'a list' if isinstance(root, yaml.SequenceNode) else 'text'}; {first}"
    values = {key.value: value for key, value in root.value if isinstance(key, yaml.ScalarNode)}
    if named:
        if named not in values:
            return f"it has no name; {first}"
        if values[named].value != name:
            return f"says {named}: {values[named].value}; {first}"
    if group in _TARGETS and not {"_target_", "defaults"} & values.keys():
        return f"it has no _target_; write _target_: and the dotted name of a class, such as {_TARGETS[group]}"
    return ""


def _is_global(text: str) -> bool:
    """Whether Hydra sees the package line: only lines like it may stand above."""
    for line in filter(None, map(str.strip, text.splitlines())):
        if not re.match(r"#\s*@", line):
            return False
        if line.lstrip("#").split() == ["@package", "_global_"]:
            return True
    return False


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
