"""What Kafka's nodes are told, without starting them."""

from __future__ import annotations

import uuid
from base64 import urlsafe_b64decode
from dataclasses import replace
from pathlib import Path

import pytest

from workloads.spec.settings import ClusterSettings
from workloads.systems import kafka_nodes
from workloads.systems.kafka_nodes import KafkaNode, java, properties, written

SETTINGS = ClusterSettings(brokers=3, partitions=6, replication_factor=2, acks=1, fsync="never", fsync_interval_ms=None)
NODES = [
    KafkaNode(number, "127.0.0.1", 100 + number, 200 + number, Path(f"data/broker-{number}"), Path(f"{number}.log"))
    for number in (1, 2, 3)
]


def test_in_kraft_each_node_is_a_broker_and_a_voter() -> None:
    told = properties(NODES[1], NODES, SETTINGS, None)
    assert told["process.roles"] == "broker,controller"
    assert told["node.id"] == "2"
    assert told["controller.quorum.voters"] == "1@127.0.0.1:201,2@127.0.0.1:202,3@127.0.0.1:203"
    assert told["listeners"] == "PLAINTEXT://127.0.0.1:102,CONTROLLER://127.0.0.1:202"
    assert "zookeeper.connect" not in told


def test_beside_a_zookeeper_a_node_is_told_where_it_is_and_nothing_of_kraft() -> None:
    told = properties(NODES[1], NODES, SETTINGS, "127.0.0.1:99")
    assert (told["broker.id"], told["zookeeper.connect"]) == ("2", "127.0.0.1:99")
    assert not {"process.roles", "node.id", "controller.quorum.voters"} & told.keys()


def test_settings_that_our_brokers_have_are_kafkas_too() -> None:
    told = properties(NODES[0], NODES, SETTINGS, None)
    assert (told["num.partitions"], told["default.replication.factor"]) == ("6", "2")
    assert told["message.max.bytes"] == str(16 * 1024**2)


@pytest.mark.parametrize(
    ("fsync", "interval_ms", "flush"),
    [
        ("never", None, {}),
        ("always", None, {"log.flush.interval.messages": "1"}),
        ("interval", 70, {"log.flush.interval.ms": "70", "log.flush.scheduler.interval.ms": "70"}),
    ],
)
def test_fsync_is_kafkas_flush(fsync: str, interval_ms: int | None, flush: dict[str, str]) -> None:
    settings = replace(SETTINGS, fsync=fsync, fsync_interval_ms=interval_ms)  # type: ignore[arg-type]
    told = properties(NODES[0], NODES, settings, None)
    assert {key: value for key, value in told.items() if key.startswith("log.flush")} == flush


def test_a_file_of_properties_holds_what_java_reads_back() -> None:
    assert written({"a": "b", "c": "d\\e\u00fc"}) == "a=b\nc=d\\\\e\\u00fc\n"


def test_the_heap_is_as_large_from_the_start_as_it_may_become() -> None:
    words = java("java", Path("jars"), 512, Path("logs/broker-1.log"))
    assert words[0] == "java"
    assert words[-2:] == ["-cp", "jars/*"]
    assert {"-Xms512m", "-Xmx512m", "-Xlog:gc:file=logs/broker-1.gc.log:uptime:filecount=0"} <= set(words)


def test_a_cluster_id_never_begins_with_a_hyphen(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = [uuid.UUID(bytes=bytes([first, *range(15)])) for first in (0xF8, 0xFB, 0x00)]
    assert urlsafe_b64decode("-A==")[0] == drawn[0].bytes[0]
    monkeypatch.setattr(uuid, "uuid4", lambda: drawn.pop(0))
    assert kafka_nodes.cluster_id() == "AAABAgMEBQYHCAkKCwwNDg"
