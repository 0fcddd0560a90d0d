"""A client makes and deletes topics on a `static` cluster through one broker, and all three have them, or none."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from os import kill
from pathlib import Path

import grpc
import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from brokers.journal import FileJournal
from brokers.rpc import brokerlab_pb2 as pb
from brokers.rpc.brokerlab_pb2_grpc import AdminStub
from tests.integration.kafka.cluster import Cluster

PATIENCE_S = 60
PARTITIONS = 6
BROKERS = (0, 1, 2)
ALONE = {"name": "orders", "partitions": PARTITIONS, "replication_factor": 1, "settings": {}, "life": "1"}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path, 3).start()
    yield cluster
    cluster.stop()


def at(cluster: Cluster, broker: int) -> dict[str, str | int | float | bool]:
    return {"bootstrap.servers": f"127.0.0.1:{cluster.port(broker)}"}


def create(cluster: Cluster, topic: str, broker: int, partitions: int = PARTITIONS) -> None:
    admin = AdminClient(at(cluster, broker))
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(PATIENCE_S)


def refusal(cluster: Cluster, topic: str, broker: int) -> str:
    with pytest.raises(KafkaException) as caught:
        create(cluster, topic, broker)
    text: str = caught.value.args[0].str()
    return text


def partitions_at(cluster: Cluster, topic: str) -> list[int]:
    """At each broker that runs."""
    found = []
    for broker in sorted(cluster.processes):
        with grpc.insecure_channel(f"127.0.0.1:{cluster.rows[broker]['rpc_port']}") as channel:
            answer = AdminStub(channel).DescribeTopics(pb.DescribeTopicsRequest(), timeout=PATIENCE_S)
            found.append(sum(len(each.partitions) for each in answer.topics if each.name == topic))
    return found


@pytest.mark.parametrize("broker", BROKERS)
def test_a_topic_made_through_one_broker_is_written_and_read_through_every_one(cluster: Cluster, broker: int) -> None:
    create(cluster, "orders", broker)
    for bootstrap in BROKERS:
        producer = Producer(at(cluster, bootstrap))
        for partition in range(PARTITIONS):
            producer.produce("orders", b"%d through %d" % (partition, bootstrap), partition=partition)
        assert producer.flush(PATIENCE_S) == 0
    for bootstrap in BROKERS:
        consumer = Consumer({**at(cluster, bootstrap), "group.id": "readers", "auto.offset.reset": "earliest"})
        consumer.assign([TopicPartition("orders", number, 0) for number in range(PARTITIONS)])
        messages = consumer.consume(3 * PARTITIONS, PATIENCE_S)
        consumer.close()
        assert sorted(message.value() or b"" for message in messages) == sorted(
            b"%d through %d" % (partition, through) for partition in range(PARTITIONS) for through in BROKERS
        )
    admin = AdminClient(at(cluster, (broker + 1) % 3))
    admin.delete_topics(["orders"])["orders"].result(PATIENCE_S)
    assert partitions_at(cluster, "orders") == [0, 0, 0]


def test_a_topic_that_is_made_by_asking_for_it_is_on_all_brokers(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, 3, {"topics": {"auto_create": True, "partitions": 3}}).start()
    producer = Producer(at(cluster, 2))
    producer.produce("orders", b"asks for it")
    assert producer.flush(PATIENCE_S) == 0
    assert partitions_at(cluster, "orders") == [3, 3, 3]
    cluster.stop()


def test_without_one_broker_a_creation_is_refused_and_made_when_it_is_back(cluster: Cluster) -> None:
    cluster.kill(1)
    address = f"127.0.0.1:{cluster.rows[1]['rpc_port']}"
    assert f"broker 1: {address} cannot be reached" in refusal(cluster, "orders", 0)
    assert f"broker 1: {address} cannot be reached" in refusal(cluster, "orders", 2)
    assert partitions_at(cluster, "orders") == [0, 0]
    cluster.revive(1)
    create(cluster, "orders", 2)
    assert partitions_at(cluster, "orders") == [PARTITIONS] * 3


def test_a_broker_that_stands_still_makes_a_creation_fail_and_nothing_of_it_remains(cluster: Cluster) -> None:
    kill(cluster.pid(2), signal.SIGSTOP)
    said = refusal(cluster, "orders", 0)
    kill(cluster.pid(2), signal.SIGCONT)
    assert "broker 2: no answer from" in said
    assert partitions_at(cluster, "orders") == [0, 0, 0]
    create(cluster, "orders", 0)
    assert partitions_at(cluster, "orders") == [PARTITIONS] * 3


def test_a_topic_that_one_broker_has_alone_is_completed_by_creating_it_again(cluster: Cluster) -> None:
    """As a broker leaves it that was killed in the middle, or an earlier version that made topics on one broker."""
    cluster.kill(1)
    journal = FileJournal(cluster.folder / "broker-1" / "journals" / "topics.journal", durable=False)
    journal.append(json.dumps(ALONE).encode())
    journal.close()
    cluster.revive(1)
    assert partitions_at(cluster, "orders") == [0, PARTITIONS, 0]
    create(cluster, "orders", 1)
    assert partitions_at(cluster, "orders") == [PARTITIONS] * 3
    assert "exists" in refusal(cluster, "orders", 1)
