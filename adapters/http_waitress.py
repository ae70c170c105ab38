"""waitress around a WSGI application: one thread that moves bytes, and a pool whose threads answer.

What of waitress is not left as it comes: its limits of 100 connections and 1 GiB of a request, its closing of
connections that say nothing for two minutes and of every connection after a chunked answer, and its warnings that
requests are waiting for a thread. What is left: a request of more than 512 KiB, and an answer of more than 1 MiB
that its reader does not take, wait in temporary files.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from waitress.channel import HTTPChannel
from waitress.server import create_server
from waitress.task import ThreadedTaskDispatcher, WSGITask
from waitress.wasyncore import dispatcher, loop

from adapters.api import Address, AddressInUse, Backlog, Served

BACKLOG = 2048  # connections that may wait to be accepted
IDLE_S = 30 * 24 * 3600  # a connection that says nothing is kept: quiet readers are what is measured
NO_LIMIT = 2**62
STOP_S = 1  # how long running calls may take to end when the server stops


class _Task(WSGITask):  # type: ignore[misc]
    def set_close_on_finish(self) -> None:
        """waitress asks for this with every chunked answer; its last chunk tells the end as well."""
        if not self.chunked_response or self.request.connection_close:
            super().set_close_on_finish()


class _Channel(HTTPChannel):  # type: ignore[misc]
    task_class = _Task


class _Served(Served):
    def __init__(self, address: Address, server: Any) -> None:
        self.address = address
        self._server = server

    def backlog(self) -> Backlog:
        channels: list[Any] = list(self._server.active_channels.values())
        return Backlog(size_bytes=sum(channel.total_outbufs_len for channel in channels))


def _listening(address: Address) -> socket.socket:
    found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    family, kind, proto, _, where = found[0]
    sock = socket.socket(family, kind, proto)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(where)
        sock.listen(BACKLOG)
    except OSError as exc:
        sock.close()
        if exc.errno == errno.EADDRINUSE:
            raise AddressInUse(address) from exc
        raise
    return sock


@asynccontextmanager
async def serve(
    application: Callable[..., Any], address: Address, workers: int, write_limit: int
) -> AsyncIterator[Served]:
    """waitress in threads of its own until the context ends. `write_limit`: bytes of one connection that may wait
    unsent before the thread that makes them waits. Raises AddressInUse.
    """
    for name in ("waitress", "waitress.queue"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    sock = _listening(address)
    pool = ThreadedTaskDispatcher()
    pool.set_thread_count(workers)
    server = create_server(
        application,
        _dispatcher=pool,
        sockets=[sock],
        threads=workers,
        backlog=BACKLOG,
        connection_limit=NO_LIMIT,
        channel_timeout=IDLE_S,
        max_request_body_size=NO_LIMIT,
        outbuf_high_watermark=write_limit,
        log_socket_errors=False,
        ident=None,
        clear_untrusted_proxy_headers=False,
    )
    server.channel_class = _Channel
    stop = threading.Event()
    moving = threading.Thread(target=_move, args=(server, stop), name="waitress", daemon=True)
    moving.start()
    try:
        yield _Served(Address(*sock.getsockname()[:2]), server)
    finally:
        stop.set()
        server.pull_trigger()
        await asyncio.to_thread(_stopped, server, moving)


def _move(server: Any, stop: threading.Event) -> None:
    """What server.run does, until `stop`; then every connection is closed at once."""
    while not stop.is_set():  # with poll: select stops at file descriptor 1,023
        loop(timeout=1, use_poll=True, map=server._map, count=1)
    dispatcher.close(server)  # nobody new
    for channel in list(server.active_channels.values()):
        channel.handle_close()  # also wakes the thread that waits for room in its buffer


def _stopped(server: Any, moving: threading.Thread) -> None:
    """Waits for the threads, for STOP_S each; one that is busy with a call longer than that is left behind."""
    moving.join(STOP_S)
    server.task_dispatcher.shutdown(timeout=STOP_S)
    server.pull_trigger = lambda: None  # its pipe is about to be closed, and its number used for something else
    server.trigger.close()
