"""A headless Chromium for tests, driven over its DevTools protocol with a library that the project has anyway."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import tempfile
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

CHROMIUM = "BAKEOFF_TEST_CHROMIUM"  # in the environment: the program
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
START_S, ANSWER_S = 60, 30
MOST_BYTES = 100_000_000  # of one answer: a screenshot is in it
WHERE = "webSocketDebuggerUrl"


def found() -> str | None:
    """The program that BAKEOFF_TEST_CHROMIUM names, which must be there, else one that is on the PATH."""
    if named := os.environ.get(CHROMIUM):
        program = shutil.which(named)
        assert program, f"{CHROMIUM}={named}: there is no such program"
        return program
    return next((path for name in NAMES if (path := shutil.which(name)) and _starts(path)), None)


def _starts(path: str) -> bool:
    """Whether it says its version: some systems have a stand-in that only names another package."""
    try:
        done = subprocess.run([path, "--version"], capture_output=True, stdin=subprocess.DEVNULL, timeout=START_S)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and b"Chrom" in done.stdout


class Tab:
    """One page. `requests`: every address that was asked for. `complaints`: what the console and the page said."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._last = 0
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._loaded = asyncio.Event()
        self.requests: deque[str] = deque()
        self.complaints: deque[str] = deque()

    async def listen(self) -> None:
        """Reads until the connection ends."""
        async for text in self._socket:
            said = json.loads(text)
            if "id" in said:
                self._answers.pop(said["id"]).set_result(said)
                continue
            given = said.get("params", {})
            match said["method"]:
                case "Page.loadEventFired":
                    self._loaded.set()
                case "Network.requestWillBeSent":
                    self.requests.append(given["request"]["url"])
                case "Runtime.consoleAPICalled":
                    self.complaints.append(json.dumps(given["args"]))
                case "Runtime.exceptionThrown":
                    self.complaints.append(json.dumps(given["exceptionDetails"]))
                case "Log.entryAdded":
                    self.complaints.append(given["entry"]["text"])

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The answer to a DevTools command."""
        self._last += 1
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._answers[self._last] = answer
        await self._socket.send(json.dumps({"id": self._last, "method": method, "params": params}))
        said = await asyncio.wait_for(answer, ANSWER_S)
        assert "error" not in said, said
        result: dict[str, Any] = said["result"]
        return result

    async def visit(self, address: str) -> None:
        """Until it has loaded."""
        self._loaded.clear()
        await self.ask("Page.navigate", url=address)
        await asyncio.wait_for(self._loaded.wait(), ANSWER_S)

    async def show(self, width: int, height: int, scheme: str) -> None:
        """As a screen of this size shows it, `scheme`: light or dark."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        await self.ask("Emulation.setDeviceMetricsOverride", **size)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        await self.ask("Emulation.setEmulatedMedia", features=features)

    async def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression."""
        said = await self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in said, said
        return said["result"].get("value")


@asynccontextmanager
async def tab(program: str) -> AsyncIterator[Tab]:
    """A browser with one empty page, both gone in the end."""
    with tempfile.TemporaryDirectory(prefix="bakeoff-chromium-", ignore_cleanup_errors=True) as folder:
        words = [f"--user-data-dir={folder}", "--headless", "--remote-debugging-port=0", "--no-first-run"]
        words += ["--disable-gpu", "--disable-background-networking", "--disable-component-update"]
        words += ["--disable-dev-shm-usage"]
        words += ["--no-sandbox"] if os.geteuid() == 0 else []  # it refuses to be root otherwise; the page is ours
        nowhere = asyncio.subprocess.DEVNULL
        process = await asyncio.create_subprocess_exec(
            program, *words, "about:blank", stdin=nowhere, stdout=nowhere, stderr=nowhere
        )
        try:
            address = await asyncio.wait_for(_address(Path(folder) / "DevToolsActivePort"), START_S)
            async with connect(address, max_size=MOST_BYTES, compression=None, ping_interval=None) as socket:
                made = Tab(socket)
                reading = asyncio.create_task(made.listen())
                for domain in ("Page", "Network", "Runtime", "Log"):
                    await made.ask(f"{domain}.enable")
                yield made
            reading.cancel()
            with suppress(asyncio.CancelledError):
                await reading
        finally:
            with suppress(ProcessLookupError):
                process.terminate()
            try:
                await asyncio.wait_for(process.wait(), START_S)
            except TimeoutError:
                process.kill()
                await process.wait()


async def _address(file: Path) -> str:
    """Where the browser's first page is to be talked to, once it says so."""
    while (port := _port(file)) is None:  # noqa: ASYNC110 - another program writes the file
        await asyncio.sleep(0.05)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET /json HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode())
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(int(h.split(b":")[1]) for h in head.split(b"\r\n") if h.lower().startswith(b"content-length"))
        pages = json.loads(await reader.readexactly(length))
    finally:
        writer.close()
    return next(str(page[WHERE]) for page in pages if page["type"] == "page")


def _port(file: Path) -> int | None:
    lines = file.read_text().split() if file.exists() else []
    return int(lines[0]) if len(lines) == 2 else None
