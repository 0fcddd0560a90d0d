"""A broker whose disk refuses: writes say so, reads go on, and space makes it whole again."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from brokers.rpc import brokerlab_pb2 as pb
from tests.integration.processes.running import RunningBroker, fill, small_disk


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    try:
        with small_disk(tmp_path / "disk") as folder:
            yield folder
    except PermissionError as refused:
        pytest.skip(f"a small file system cannot be mounted here: {refused}")


@pytest.fixture
def broker(disk: Path, tmp_path: Path) -> Iterator[RunningBroker]:
    made = RunningBroker(tmp_path / "broker", data_dir=str(disk / "data"))
    made.start()
    assert create(made, "t") == pb.OK
    yield made
    made.stop()


def create(broker: RunningBroker, name: str) -> pb.ErrorCode.ValueType:
    request = pb.CreateTopicRequest(name=name, partitions=1, replication_factor=1)
    return broker.admin_stub().CreateTopic(request).error.code


def produce(broker: RunningBroker, value: bytes) -> pb.ProduceResponse:
    return broker.data_stub().Produce(pb.ProduceRequest(topic="t", acks=1, records=[pb.Record(value=value)]))


def values(broker: RunningBroker) -> list[bytes]:
    return [record.value for record in broker.data_stub().Fetch(pb.FetchRequest(topic="t")).records]


def commit(broker: RunningBroker) -> pb.ErrorCode.ValueType:
    places = [pb.PartitionOffset(topic="t", offset=1)]
    return broker.data_stub().CommitOffsets(pb.CommitOffsetsRequest(group="g", offsets=places)).error.code


def test_on_a_full_disk_writes_are_refused_with_the_reason_and_reads_go_on(broker: RunningBroker, disk: Path) -> None:
    assert produce(broker, b"before").error.code == pb.OK
    fill(disk)
    refused = produce(broker, b"x" * 65_536)
    assert refused.error.code == pb.STORAGE_FAILED
    assert refused.error.definite
    assert "short write" in refused.error.message or "No space left on device" in refused.error.message
    assert pb.STORAGE_FAILED in {create(broker, f"another-{n}") for n in range(60)}, "a journal's last page has room"
    assert values(broker) == [b"before"]
    described = broker.admin_stub().DescribeTopics(pb.DescribeTopicsRequest(names=["t"]))
    assert described.topics[0].partitions[0].end_offset == 1


def test_a_commit_that_cannot_be_kept_is_refused_and_not_half_made(broker: RunningBroker, disk: Path) -> None:
    fill(disk)
    answers = {commit(broker) for _ in range(300)}  # the journal's last page has room for some
    assert answers <= {pb.OK, pb.STORAGE_FAILED}
    assert pb.STORAGE_FAILED in answers
    assert commit(broker) == pb.STORAGE_FAILED


def test_with_space_again_the_next_start_takes_writes_and_has_lost_nothing(broker: RunningBroker, disk: Path) -> None:
    produce(broker, b"before")
    ballast = fill(disk)
    assert produce(broker, b"x" * 65_536).error.code == pb.STORAGE_FAILED
    ballast.unlink()
    assert broker.end() == 0
    broker.start()
    assert values(broker) == [b"before"]
    assert produce(broker, b"after").base_offset == 1
    assert create(broker, "another") == pb.OK


def test_a_disk_that_is_full_does_not_keep_a_broker_from_stopping_and_starting(
    broker: RunningBroker, disk: Path
) -> None:
    produce(broker, b"before")
    ballast = fill(disk)
    assert broker.end() == 0
    broker.start()
    assert values(broker) == [b"before"]
    ballast.unlink()
    assert broker.end() == 0
    broker.start()
    assert values(broker) == [b"before"]


def test_a_data_folder_that_cannot_be_written_ends_the_start_with_1_and_the_reason(
    broker: RunningBroker, disk: Path
) -> None:
    broker.end()
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    assert broker.spawn().wait() == 1
    assert "Read-only file system" in broker.log
    assert "Traceback" not in broker.log
