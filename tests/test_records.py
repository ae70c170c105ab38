"""The records of bulk transfer, and the tally that tells whether they arrived."""

from __future__ import annotations

import msgspec
import pytest

from adapters.messages import OrderResponse, SensorReading
from runner.records import Record, Tally, batches, order, orders_of, reading, readings_of


def checksum(*messages: list[Record]) -> str:
    tally = Tally()
    for records in messages:
        tally.add(records)
    return tally.checksum


def test_records_are_the_same_in_every_process() -> None:
    assert reading(1234) == SensorReading(
        "sensor-000234", 22.34, 1_772_000_001_234, "celsius", "building-4/floor-6/room-034", 22, "ACTIVE", "2.14.3"
    )
    assert order(1234) == OrderResponse(
        "order-00001234",
        246.34,
        "EUR",
        "CONFIRMED",
        1_772_000_001_234,
        "customer-000234",
        2,
        "134 Harbour Street, 20457 Hamburg, Germany",
    )
    assert checksum(list(readings_of(range(5000)).items)) == "de85610f"
    assert checksum(list(orders_of(range(5000)).items)) == "5a2224d4"


def test_no_two_records_are_equal() -> None:
    assert len({reading(number) for number in range(20_000)}) == 20_000
    assert len({order(number) for number in range(20_000)}) == 20_000


@pytest.mark.parametrize(
    ("count", "batch", "sizes"),
    [(10, 4, [4, 4, 2]), (8, 4, [4, 4]), (3, 4, [3]), (0, 4, [])],
)
def test_batches_hold_every_number_once_and_in_order(count: int, batch: int, sizes: list[int]) -> None:
    cut = list(batches(count, batch))

    assert [len(numbers) for numbers in cut] == sizes
    assert [number for numbers in cut for number in numbers] == list(range(count))


@pytest.mark.parametrize("batch", [1, 15, 16, 17, 1000, 1001, 2500])
def test_the_checksum_does_not_depend_on_how_records_are_put_into_messages(batch: int) -> None:
    whole, cut, single = Tally(), Tally(), Tally()
    whole.add(readings_of(range(2500)).items)
    for numbers in batches(2500, batch):
        cut.add(readings_of(numbers).items)
    for number in range(2500):
        single.add_one(reading(number))

    assert whole.checksum == cut.checksum == single.checksum
    assert whole.records == cut.records == single.records == 2500
    assert (whole.messages, cut.messages, single.messages) == (1, -(-2500 // batch), 2500)


def test_loss_repetition_order_and_any_other_content_change_the_checksum() -> None:
    good: list[Record] = [order(number) for number in range(100)]
    other = msgspec.structs.replace(order(50), amount=0.01)
    found = {
        checksum(good),
        checksum(good[:-1]),
        checksum(good[1:]),
        checksum([*good, good[-1]]),
        checksum([*good[:50], good[51], good[50], *good[52:]]),
        checksum([*good[:50], other, *good[51:]]),
        checksum([]),
    }

    assert len(found) == 7
