"""Records for clients that know nothing of this project: a generated gRPC stub, the standard library's HTTP, and a
WebSocket console.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.test_strangers import BOUND_S, ROOT, console, server

READING = {
    "deviceId": "sensor-000000",
    "value": 20.0,
    "timestamp": 1_772_000_000_000,
    "unit": "celsius",
    "location": "building-0/floor-0/room-000",
    "batteryLevel": 0,
    "status": "ACTIVE",
    "firmwareVersion": "2.14.3",
}
IDS = ["order-00000000", "order-00000001", "order-00000002"]

GRPC_CLIENT = """
import json, sys
import grpc
import records_pb2 as pb, records_pb2_grpc

seen = {}
reading = pb.SensorReading(**json.loads(sys.argv[2]))
with grpc.insecure_channel(f"127.0.0.1:{sys.argv[1]}") as channel:
    stub = records_pb2_grpc.RecordServiceStub(channel)
    got = stub.Readings(pb.Readings(items=[reading]))
    seen["one body"] = [got.records, got.messages, got.checksum]
    got = stub.ReadingsBatched(iter([pb.Readings(items=[reading, reading]), pb.Readings(items=[reading])]))
    seen["batches"] = [got.records, got.messages]
    got = stub.ReadingsEach(iter([reading] * 5))
    seen["each"] = [got.records, got.messages]
    asked = pb.OrdersRequest(count=3, batch=2)
    seen["orders"] = [order.orderId for order in stub.Orders(asked).items]
    seen["order batches"] = [[order.orderId for order in orders.items] for orders in stub.OrdersBatched(asked)]
    seen["each order"] = [order.orderId for order in stub.OrdersEach(asked)]
print(json.dumps(seen))
"""


def test_a_stub_generated_from_the_records_proto_sends_and_gets_records(tmp_path: Path) -> None:
    generate = ["-m", "grpc_tools.protoc", f"-I{ROOT / 'proto'}", "--python_out=.", "--grpc_python_out=."]
    subprocess.run([sys.executable, *generate, "records.proto"], cwd=tmp_path, check=True, timeout=BOUND_S)
    (tmp_path / "client.py").write_text(GRPC_CLIENT)

    with server("grpc") as port:
        done = subprocess.run(
            [sys.executable, "client.py", str(port), json.dumps(READING)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=BOUND_S,
            env={"GRPC_VERBOSITY": "NONE"},
        )

    assert done.stderr == ""
    assert json.loads(done.stdout) == {
        "one body": [1, 1, "81c16bf1"],
        "batches": [3, 2],
        "each": [5, 5],
        "orders": IDS,
        "order batches": [IDS[:2], IDS[2:]],
        "each order": IDS,
    }


def test_records_are_posted_and_fetched_as_json_over_http() -> None:
    def exchange(port: int, path: str, body: Any, chunked: bool = False) -> bytes:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=BOUND_S)
        try:
            connection.request("POST", path, body, encode_chunked=chunked)
            answer = connection.getresponse()
            assert answer.status == 200
            return answer.read()
        finally:
            connection.close()

    line = json.dumps({"items": [READING, READING]}) + "\n"
    with server("http") as port:
        body = exchange(port, "/readings", json.dumps({"items": [READING]}))
        lines = exchange(port, "/readings/batched", iter([line.encode(), line.encode()]))
        orders = exchange(port, "/orders", '{"count":3,"batch":1}')
        each = exchange(port, "/orders/each", '{"count":3,"batch":1}')

    assert json.loads(body) == {"records": 1, "messages": 1, "checksum": "81c16bf1"}
    receipt = json.loads(lines)
    assert (receipt["records"], receipt["messages"]) == (4, 2)
    assert [order["orderId"] for order in json.loads(orders)["items"]] == IDS
    assert [json.loads(order)["orderId"] for order in each.splitlines()] == IDS


async def test_records_are_typed_and_read_at_a_websocket_console() -> None:
    with server("websocket") as port:
        async with console(port) as ws:
            await ws.send("READINGS")
            await ws.send(json.dumps({"items": [READING]}))
            assert json.loads(await ws.recv()) == {"records": 1, "messages": 1, "checksum": "81c16bf1"}
            await ws.send("READINGS {}")
            assert await ws.recv() == "ERR invalid_argument: usage: READINGS, then one text frame"
            await ws.send("READINGS_EACH")
            await ws.send(json.dumps(READING))
            await ws.send("END 1")
            assert json.loads(await ws.recv())["records"] == 1
            await ws.send("ORDERS_BATCHED 3 2")
            batches = [json.loads(await ws.recv())["items"] for _ in range(2)]
            assert [[order["orderId"] for order in batch] for batch in batches] == [IDS[:2], IDS[2:]]
            assert await ws.recv() == "END 2"
