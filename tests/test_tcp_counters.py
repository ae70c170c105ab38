"""What the kernel says of this process's TCP connections."""

from __future__ import annotations

import socket

from runner.tcp import Carried, TcpQueue, carried, spent_on_wire, tcp_queues


def test_the_queues_of_a_connection_are_seen_from_both_ends() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client, listening.accept()[0] as server:
            server.sendall(b"x" * 1000)
            client.recv(100)
            ours = tcp_queues(port, local=True)
            theirs = tcp_queues(port, local=False)

    assert ours is not None
    assert theirs is not None
    assert len(ours) == len(theirs) == 1  # the listening socket is nobody's connection
    assert ours[0].send_queue_bytes == 0
    assert theirs[0].receive_queue_bytes == 900
    assert theirs[0].received_bytes >= 1000


def test_what_connections_carried_counts_the_unacknowledged_and_the_unread() -> None:
    one = TcpQueue(send_queue_bytes=5, receive_queue_bytes=30, acked_bytes=100, received_bytes=400)
    other = TcpQueue(send_queue_bytes=0, receive_queue_bytes=0, acked_bytes=10, received_bytes=20)

    assert carried([one, other]) == Carried(connections=2, in_bytes=420, out_bytes=115, read_bytes=390)
    assert carried([]) == Carried(0, 0, 0, 0)
    assert carried(None) is None


def test_the_wire_of_a_window_is_the_difference_of_two_readings() -> None:
    before, after = Carried(2, 1000, 300, 900), Carried(2, 4500, 350, 4500)

    assert spent_on_wire(before, after) == {"wire_in_bytes": 3500, "wire_out_bytes": 50}


def test_counters_that_went_with_a_connection_are_not_made_up() -> None:
    assert spent_on_wire(Carried(2, 1000, 300, 900), Carried(1, 4500, 350, 4500)) == {}
    assert spent_on_wire(Carried(1, 1000, 300, 900), Carried(1, 20, 30, 20)) == {}  # another connection
    assert spent_on_wire(None, Carried(1, 1, 1, 1)) == {}
    assert spent_on_wire(Carried(1, 1, 1, 1), None) == {}
