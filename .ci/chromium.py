"""Finds a Chromium for the tests that look at the HTML report, or installs one, and runs a command with it.

    python .ci/chromium.py make test

BAKEOFF_TEST_CHROMIUM, which names the program, is set for the command: with it those tests are never skipped. It is
a browser that is on the PATH, else one that apt-get installs (as root; no wheel on PyPI has one inside). Where none
can be had this says so and runs the command all the same, without those tests.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

VARIABLE = "BAKEOFF_TEST_CHROMIUM"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PACKAGES = ("chromium", "fonts-dejavu-core")  # a page without any font shows no text
ANSWER_S, INSTALL_S = 60, 240
RETRIES = ("-o", "Acquire::Retries=3")


class NoBrowser(Exception):
    """Why there is none."""


def main(command: list[str]) -> int:
    """The exit code of `command`."""
    given = dict(os.environ)
    if not given.get(VARIABLE):
        try:
            given[VARIABLE] = installed() or by_apt()
        except NoBrowser as error:
            print(f"Chromium: the tests that need a browser are NOT run: {error}", file=sys.stderr)
            given.pop(VARIABLE, None)
    return subprocess.run(command, env=given).returncode


def installed() -> str | None:
    """One on the PATH that starts: some systems have a stand-in that only names another package."""
    return next((path for name in NAMES if (path := shutil.which(name)) and starts(path)), None)


def starts(path: str) -> bool:
    """Whether it says its version."""
    try:
        done = subprocess.run([path, "--version"], capture_output=True, stdin=subprocess.DEVNULL, timeout=ANSWER_S)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and b"Chrom" in done.stdout


def by_apt() -> str:
    """Raises NoBrowser."""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise NoBrowser("none is on the PATH, and apt-get needs root on a Debian-like machine")
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for words in ["update"], ["install", "-y", "--no-install-recommends", *PACKAGES]:
        try:
            done = subprocess.run(
                ["apt-get", "-q", *RETRIES, *words], env=quiet, capture_output=True, text=True, timeout=INSTALL_S
            )
        except subprocess.TimeoutExpired:
            raise NoBrowser(f"apt-get {words[0]} did not end in {INSTALL_S} s") from None
        if done.returncode:
            said = next((line for line in reversed(done.stderr.splitlines()) if line.strip()), "it said nothing")
            raise NoBrowser(f"apt-get {words[0]} failed ({said.strip()})")
    if found := installed():
        return found
    raise NoBrowser("apt-get installed none that starts")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
