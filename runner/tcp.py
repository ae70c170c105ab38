"""This process's TCP connections as the kernel counts them: what waits in their queues and what they have carried.

Linux only; elsewhere the answers are None, never 0.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import termios
from collections.abc import Iterator, Sequence
from typing import NamedTuple


class TcpQueue(NamedTuple):
    """One of this process's TCP connections, in bytes: what the kernel holds now and has carried so far."""

    send_queue_bytes: int  # written by us, not yet acknowledged
    receive_queue_bytes: int  # arrived, not yet read by us
    acked_bytes: int
    received_bytes: int


def tcp_queues(port: int, *, local: bool) -> list[TcpQueue] | None:
    """The TCP connections of this process whose local (a server's) or remote (a client's) port is `port`.

    Reads /proc/self/fd, so that it also sees sockets that a library hides. None where the system lacks it.
    TCP_INFO offsets: struct tcp_info of linux/tcp.h, tcpi_bytes_acked at 120, tcpi_bytes_received at 128.
    """
    try:
        names = os.listdir("/proc/self/fd")
    except OSError:
        return None
    return [queue for name in names for queue in _queue_of(int(name), port, local)]


def _queue_of(fd: int, port: int, local: bool) -> Iterator[TcpQueue]:
    try:
        if not os.readlink(f"/proc/self/fd/{fd}").startswith("socket:"):
            return
        with socket.socket(fileno=os.dup(fd)) as sock:
            if sock.type != socket.SOCK_STREAM or sock.family not in (socket.AF_INET, socket.AF_INET6):
                return
            mine, theirs = sock.getsockname()[1], sock.getpeername()[1]  # a listening socket has no peer
            if (mine if local else theirs) != port:
                return
            info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
            acked, received = struct.unpack_from("QQ", info, 120)
            yield TcpQueue(_ioctl(sock, termios.TIOCOUTQ), _ioctl(sock, termios.FIONREAD), acked, received)
    except OSError:
        return


def _ioctl(sock: socket.socket, request: int) -> int:
    return int(struct.unpack("i", fcntl.ioctl(sock, request, b"\0\0\0\0"))[0])


class Carried(NamedTuple):
    """What a set of connections has carried so far, in bytes above TCP: payload, framing and headers."""

    connections: int
    in_bytes: int  # arrived, read or not
    out_bytes: int  # written, acknowledged or not
    read_bytes: int  # arrived and read


def carried(queues: Sequence[TcpQueue] | None) -> Carried | None:
    """The sum over `queues`; None where they cannot be seen."""
    if queues is None:
        return None
    return Carried(
        len(queues),
        sum(queue.received_bytes for queue in queues),
        sum(queue.acked_bytes + queue.send_queue_bytes for queue in queues),
        sum(queue.received_bytes - queue.receive_queue_bytes for queue in queues),
    )


def spent_on_wire(before: Carried | None, after: Carried | None) -> dict[str, int]:
    """wire_in_bytes and wire_out_bytes between two readings. Empty where they cannot be told: counters that a
    closed connection took with it are gone.
    """
    if before is None or after is None or before.connections != after.connections:
        return {}
    spent = {
        "wire_in_bytes": after.in_bytes - before.in_bytes,
        "wire_out_bytes": after.out_bytes - before.out_bytes,
    }
    return spent if min(spent.values()) >= 0 else {}
