"""The words before Hydra: listed where people look for them, each with an example, mistakes answered alike."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from runner.__main__ import main
from runner.words import WORDS, listed
from tests.golden_db import golden
from tests.readme import README

READING = ["runs", "show", "compare", "check", "rerun", "export", "delete"]
ARGUMENTS = {
    "compare": ["last~1", "last"],
    "check": [str(README.parent / "conf" / "thresholds" / "example.yaml")],
    "show": ["01KG"],
    "rerun": ["01KG"],
    "export": ["01KG", "--hdr", "x.hlog"],
    "delete": ["01KG", "--yes"],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_help_lists_every_word_in_lines_that_align(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    assert main(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()

    at = next(i for i, line in enumerate(lines) if line.startswith("usage: "))
    told = [line[7:] for line in lines[at : at + len(WORDS) + 1]]
    assert told == listed(0).splitlines()
    assert [line.split()[1] for line in told[1:]] == list(WORDS)


def test_the_readme_lists_every_word() -> None:
    assert listed(0) in README.read_text()


@pytest.mark.parametrize("word", [word for word in WORDS if word not in ("report", "serve")])
def test_a_words_help_shows_examples_and_needs_no_database(
    word: str, capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    assert main([word, "--help"]) == 0
    out = capsys.readouterr().out

    assert out.startswith(f"usage: bakeoff {word} ")
    assert f"\n  bakeoff {word}" in out.partition("Examples")[2]
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("word", READING)
def test_without_a_database_there_is_one_line(word: str, capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    assert main([word, *ARGUMENTS.get(word, [])]) == 2

    assert capsys.readouterr() == ("", f"bakeoff {word}: results.db not found; run bakeoff first\n")
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("word", READING)
def test_an_unknown_option_is_one_line_with_the_near_one(
    word: str, capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    golden(folder / "results.db")
    assert main([word, *ARGUMENTS.get(word, []), "--bd", "x"]) == 2

    out, err = capsys.readouterr()
    assert (out, err) == (
        "",
        f"bakeoff {word}: --bd: not understood; did you mean '--db'? (bakeoff {word} --help)\n",
    )


def test_the_words_need_no_hydra() -> None:
    words = [word for word in WORDS if word not in ("serve", "rerun")]
    calls = "; ".join(f"main([{word!r}, '--help'])" for word in words)
    script = f"import sys; from runner.__main__ import main; {calls}; sys.exit('hydra' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)

    assert (done.returncode, done.stderr) == (0, "")
