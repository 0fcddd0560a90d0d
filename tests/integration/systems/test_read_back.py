"""A topic read back from its brokers: all of it, in order, up to where it is told, and no silence about what is not
there."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_INVALID, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from tests.integration.processes.running import RunningBroker, eventually
from workloads.clients.drivers.api import DriverError
from workloads.systems import read_back as module
from workloads.systems.read_back import NO_GROUP, read_back

NOTHING = 2**64 - 1  # the id of a message that has none


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """One with small segments, that looks often for what is to be thrown away."""
    made = RunningBroker(tmp_path_factory.mktemp("read-back"), log={"segment_bytes": 200})
    made.module = ("tests.integration.processes.slow_broker", json.dumps({"maintenance_s": 0.05}))
    made.start()
    yield made
    made.stop()


def address(broker: RunningBroker) -> str:
    return f"127.0.0.1:{broker.config['brokers'][0]['kafka_port']}"


def payload(number: int) -> bytes:
    return number.to_bytes(8, "big") + b"the rest of it"


def topic_of(broker: RunningBroker, name: str, values: Mapping[int, Sequence[bytes | None]], **config: str) -> str:
    """A topic with a message for each value, a batch each."""
    make(broker, name, len(values), config)
    producer = Producer({"bootstrap.servers": address(broker), "linger.ms": 0})
    for partition, each in values.items():
        for value in each:
            producer.produce(name, value, partition=partition)
            assert producer.flush(30) == 0
    return name


def make(broker: RunningBroker, name: str, partitions: int, config: Mapping[str, str]) -> None:
    admin = AdminClient({"bootstrap.servers": address(broker)})
    admin.create_topics([NewTopic(name, partitions, 1, config=dict(config))])[name].result(30)


def read(broker: RunningBroker, topic: str, ends: Mapping[int, int]) -> dict[int, list[int]]:
    return {partition: ids.tolist() for partition, ids in read_back([address(broker)], topic, ends).items()}


def test_ids_come_in_the_order_of_each_partitions_log_to_its_end(broker: RunningBroker) -> None:
    topic = topic_of(broker, "ordered", {0: [payload(7), payload(3), payload(2**63)], 1: [], 2: [payload(9)]})
    assert read(broker, topic, {0: 3, 1: 0, 2: 1}) == {0: [7, 3, 2**63], 1: [], 2: [9]}


def test_what_came_after_the_ends_were_asked_for_is_not_read_though_it_comes_with_the_rest(
    broker: RunningBroker,
) -> None:
    make(broker, "ends", 1, {})
    producer = Producer({"bootstrap.servers": address(broker), "linger.ms": 60_000, "batch.num.messages": 5})
    for number in range(5):
        producer.produce("ends", payload(number), partition=0)
    assert producer.flush(30) == 0
    assert len(written(broker, "ends")) == 1, "they are one batch"
    assert read(broker, "ends", {0: 3}) == {0: [0, 1, 2]}


def test_a_message_without_a_whole_id_keeps_its_place(broker: RunningBroker) -> None:
    topic = topic_of(broker, "short", {0: [payload(1), None, b"", b"\0\0\0\0\0\0\1", payload(2)]})
    short = 0x1FF  # seven bytes of an id, and one that stands for what is missing
    assert read(broker, topic, {0: 5}) == {0: [1, NOTHING, NOTHING, short, 2]}


def test_it_joins_no_group_and_commits_nothing(broker: RunningBroker) -> None:
    topic = topic_of(broker, "alone", {0: [payload(1)]})
    read(broker, topic, {0: 1})
    admin = AdminClient({"bootstrap.servers": address(broker)})
    assert [group.group_id for group in admin.list_consumer_groups().result(30).valid] == []
    asks = Consumer({"bootstrap.servers": address(broker), "group.id": NO_GROUP})
    (committed,) = asks.committed([TopicPartition(topic, 0)], 30)
    asks.close()
    assert committed.offset == OFFSET_INVALID


def test_an_end_that_nothing_reaches_is_given_up(broker: RunningBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = topic_of(broker, "missing", {0: [payload(1)], 1: [payload(2)]})
    monkeypatch.setattr(module, "NEXT_WITHIN_S", 0.3)
    with pytest.raises(DriverError, match="reading back 'missing': nothing came within 0 s"):
        read(broker, topic, {0: 1, 1: 2})


def test_a_beginning_that_was_thrown_away_is_missing_and_is_not_passed_over(broker: RunningBroker) -> None:
    topic = topic_of(broker, "old", {0: [payload(number) for number in range(9)]}, **{"retention.bytes": "1"})
    eventually(lambda: len(written(broker, topic)) == 1, "the older segments are thrown away")
    with pytest.raises(DriverError, match="reading back 'old': "):
        read(broker, topic, {0: 9})


def test_bytes_that_changed_on_the_disk_are_found_by_their_crc(broker: RunningBroker) -> None:
    topic = topic_of(broker, "changed", {0: [payload(1), payload(2)]})
    with written(broker, topic)[-1].open("r+b") as segment:
        segment.seek(segment.read().rindex(b"rest"))
        segment.write(b"rust")
    with pytest.raises(DriverError, match="reading back 'changed': "):
        read(broker, topic, {0: 2})


def written(broker: RunningBroker, topic: str) -> list[Path]:
    """The segments of partition 0, in order."""
    return sorted((broker.data / "logs" / topic).glob("*/0/*.log"))
