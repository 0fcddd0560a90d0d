"""A broker that deletes a topic, and is killed or slow meanwhile: the next topic of the name is one of its own."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import grpc
import pytest

from brokers.rpc import brokerlab_pb2 as pb
from tests.integration.processes.running import RunningBroker, eventually

CALLS_MIN = 12  # that a deletion makes with `fsync: always`


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[RunningBroker]:
    made = RunningBroker(tmp_path / "broker", log={"fsync": "always"})
    yield made
    made.stop()


def values(broker: RunningBroker) -> list[bytes]:
    return [record.value for record in broker.data_stub().Fetch(pb.FetchRequest(topic="t")).records]


def make(broker: RunningBroker, topic: str = "t") -> None:
    created = broker.admin_stub().CreateTopic(pb.CreateTopicRequest(name=topic, partitions=1, replication_factor=1))
    assert created.error.code == pb.OK


def start_offset(broker: RunningBroker, topic: str) -> int:
    described = broker.admin_stub().DescribeTopics(pb.DescribeTopicsRequest(names=[topic]))
    return described.topics[0].partitions[0].start_offset


def write(broker: RunningBroker, value: bytes, topic: str = "t") -> int:
    request = pb.ProduceRequest(topic=topic, acks=-1, records=[pb.Record(value=value)])
    answer = broker.data_stub().Produce(request)
    assert answer.error.code == pb.OK
    return answer.base_offset


def died_deleting(broker: RunningBroker) -> bool:
    """Delete the topic; whether that killed the broker, once it has or has removed all that was deleted."""
    process, deleted = broker.process, broker.data / "deleted"
    assert process is not None
    try:
        broker.admin_stub().DeleteTopic(pb.DeleteTopicRequest(name="t"))
    except grpc.RpcError:
        assert process.wait() == -signal.SIGKILL
        return True
    eventually(lambda: process.poll() is not None or not list(deleted.iterdir()), "it dies, or removes what it deleted")
    return process.poll() is not None


def test_kill_9_at_each_system_call_of_a_deletion_brings_no_message_into_the_next_topic(broker: RunningBroker) -> None:
    logs, deleted = broker.data / "logs", broker.data / "deleted"
    for call in count():
        broker.module = ("tests.integration.processes.dying_broker", str(call))
        broker.start()
        if deleted.exists():
            eventually(lambda: not list(deleted.iterdir()), "the start finishes what was begun")
        make(broker)
        assert values(broker) == []
        assert write(broker, b"of life %d" % call) == 0
        former = set(logs.glob("t/*"))
        if not died_deleting(broker):
            break
        broker.stop()
        # Killed before the rename, the deletion has not begun on this disk: the folder is told, and never served.
        left = set(logs.glob("t/*"))
        assert left in (former, former - {logs / "t" / str(call + 1)})
    assert call >= CALLS_MIN
    told = [path for path in logs.glob("t/*") if str(path) in broker.log]
    assert told == list(logs.glob("t/*"))
    assert broker.end(signal.SIGTERM) == 0


def test_logs_that_an_earlier_version_laid_out_are_refused_with_what_to_do(broker: RunningBroker) -> None:
    earlier = broker.data / "topics" / "t-0"
    earlier.mkdir(parents=True)
    (earlier / "life").write_text("1")
    assert broker.spawn().wait() == 2
    assert "as an earlier version laid them out" in broker.log
    assert "docs/broker.md" in broker.log
    assert (earlier / "life").read_text() == "1"


def test_the_commands_of_the_document_bring_the_logs_of_an_earlier_version_where_they_are_found(
    broker: RunningBroker,
) -> None:
    broker.start()
    make(broker)
    write(broker, b"kept")
    assert broker.end() == 0
    earlier = broker.data / "topics"
    earlier.mkdir()
    (broker.data / "logs" / "t" / "1" / "0").rename(earlier / "t-0")
    (earlier / "t-0" / "life").write_text("1")
    (earlier / "unreadable-0").mkdir()
    shutil.rmtree(broker.data / "logs")
    document = (Path(__file__).parents[3] / "docs" / "broker.md").read_text()
    (commands,) = (block for block in document.split("```") if "cd DATA_DIR" in block)
    moved = subprocess.run(
        ["bash", "-c", commands.replace("DATA_DIR", str(broker.data))], capture_output=True, text=True, check=False
    )
    assert "topics/unreadable-0: which life?" in moved.stderr
    assert [path.name for path in earlier.iterdir()] == ["unreadable-0"]
    broker.spawn().wait()
    assert broker.end() == 2
    (earlier / "unreadable-0").rmdir()
    broker.start()
    assert values(broker) == [b"kept"]
    assert not (broker.data / "logs" / "t" / "1" / "0" / "life").exists()


def test_maintenance_that_waits_for_a_slow_sync_spares_the_topic_that_was_made_meanwhile(
    broker: RunningBroker, tmp_path: Path
) -> None:
    """It unlinked the first segment of the new one: five messages that were acknowledged were gone."""
    held, waits = tmp_path / "held", tmp_path / "held.waits"
    broker.config["log"] = {"segment_bytes": 100, "retention_bytes": 1}
    broker.module = (
        "tests.integration.processes.slow_broker", json.dumps({"held": str(held), "maintenance_s": 0.05}),
    )  # fmt: skip
    held.touch()
    broker.start()
    make(broker)
    for number in range(5):
        write(broker, b"former %d" % number)
    eventually(waits.exists, "maintenance waits for a sync")
    broker.admin_stub().DeleteTopic(pb.DeleteTopicRequest(name="t"))
    make(broker)
    assert write(broker, b"kept") == 0
    held.unlink()
    make(broker, "other")
    for number in range(5):
        write(broker, b"other %d" % number, "other")
    eventually(lambda: start_offset(broker, "other") > 0, "maintenance has gone on")
    broker.end(signal.SIGKILL)
    broker.module = RunningBroker.module
    broker.start()
    assert values(broker) == [b"kept"]
