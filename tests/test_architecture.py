"""The house rules that no reviewer should have to check by eye."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent
MODULES = sorted(
    path for top in ("runner", "adapters") for path in (ROOT / top).rglob("*.py") if not path.stem.endswith("_pb2")
)
CARRIERS = {"sse": "http"}  # a protocol that rides on another one's parts
PROTOCOLS = sorted(path.stem for path in (ROOT / "conf" / "protocol").glob("*.yaml"))
# What plans and runs, as against what carries messages (adapters) and what tells of the past: the report, and the
# views, which have a column for the version of each protocol's library.
PAST = (
    ROOT / "runner" / "report",
    ROOT / "runner" / "store" / "views.py",
    ROOT / "runner" / "store" / "conditions.py",
)
ENGINE = [p for p in MODULES if p.is_relative_to(ROOT / "runner") and not any(map(p.is_relative_to, PAST))]


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def strings(path: Path) -> Iterator[str]:
    """String constants, docstrings and annotations left out."""
    module = tree(path)
    documents = {
        id(node.body[0].value)
        for node in ast.walk(module)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documents:
            yield node.value


@pytest.mark.parametrize("path", ENGINE, ids=named)
def test_the_engine_never_names_a_protocol(path: Path) -> None:
    assert [text for text in strings(path) if text in PROTOCOLS] == []


@pytest.mark.parametrize("path", ENGINE, ids=named)
def test_the_runner_reaches_adapters_only_through_the_seam(path: Path) -> None:
    assert {name for name in imports(path) if name.startswith("adapters")} <= {"adapters.api", "adapters.messages"}


@pytest.mark.parametrize("path", [p for p in MODULES if p.is_relative_to(ROOT / "adapters")], ids=named)
def test_an_adapter_imports_no_other_adapter(path: Path) -> None:
    own = path.stem.partition("_")[0]  # grpc_status belongs to grpc
    allowed = ("adapters.api", "adapters.messages", f"adapters.{own}")
    if own in CARRIERS:
        allowed = (*allowed, f"adapters.{CARRIERS[own]}_")
    if own == "codecs":
        allowed = (*allowed, "adapters.wire")
    reached = [name for name in imports(path) if name.startswith("adapters.")]

    assert [name for name in reached if not name.startswith(allowed)] == []


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_every_module_says_what_it_is_for(path: Path) -> None:
    if path.name == "__init__.py" and not path.read_text().strip():
        return

    assert ast.get_docstring(tree(path))


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_no_module_is_two_modules(path: Path) -> None:
    lines = len(path.read_text().splitlines())

    assert lines <= 350, f"{named(path)} has {lines} lines"


def test_no_module_is_a_drawer_for_everything() -> None:
    assert [named(p) for p in MODULES if p.stem in ("utils", "helpers", "common", "base", "manager")] == []


def test_the_import_contracts_of_pyproject_hold() -> None:
    lint = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([lint, "--no-cache"], cwd=ROOT, capture_output=True, text=True, timeout=100)

    assert done.returncode == 0, done.stdout


def test_measured_processes_load_no_hydra_and_no_database() -> None:
    """Their heaps would be in somebody's latency."""
    heavy = ("hydra", "omegaconf", "sqlalchemy", "rich", "tabulate")
    script = (
        f"import sys, runner.server, runner.driver, runner.config; print([m for m in {heavy} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60)

    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize("group", ["scenario", "suite"])
def test_a_question_stands_on_line_two_and_its_command_on_line_three(group: str) -> None:
    for path in (ROOT / "conf" / group).glob("*.yaml"):
        package, question, command = path.read_text().splitlines()[:3]
        assert package == "# @package _global_"  # Hydra looks for it on the first line only
        assert question.startswith("# "), path.name
        assert command.startswith("# bakeoff "), path.name
        assert f"{group}={path.stem}" in command


@pytest.mark.parametrize("group", ["operation", "protocol", "codec", "load", "storage"])
def test_an_option_is_named_after_its_file(group: str) -> None:
    for path in (ROOT / "conf" / group).glob("*.yaml"):
        assert yaml.safe_load(path.read_text())["name"] == path.stem
