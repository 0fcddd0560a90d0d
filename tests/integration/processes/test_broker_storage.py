"""A broker whose disk refuses: writes say so, reads go on, and space makes it whole again."""

from __future__ import annotations

import signal
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


def remount(disk: Path, how: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{how}", str(disk)], check=True)


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


def test_with_space_again_writing_comes_back_without_a_restart(broker: RunningBroker, disk: Path) -> None:
    produce(broker, b"before")
    ballast = fill(disk)
    assert produce(broker, b"x" * 65_536).error.code == pb.STORAGE_FAILED
    assert pb.STORAGE_FAILED in {create(broker, f"another-{n}") for n in range(60)}, "a journal's last page has room"
    ballast.unlink()
    assert produce(broker, b"after").base_offset == 1
    assert values(broker) == [b"before", b"after"]
    assert create(broker, "another") == pb.OK
    assert commit(broker) == pb.OK


def test_with_space_again_a_broker_takes_commits_topics_and_deletions_without_a_restart(
    broker: RunningBroker, disk: Path
) -> None:
    assert commit(broker) == pb.OK
    ballast = fill(disk)
    assert pb.STORAGE_FAILED in {commit(broker) for _ in range(300)}
    assert pb.STORAGE_FAILED in {create(broker, f"another-{n}") for n in range(60)}
    refused = broker.admin_stub().DeleteTopic(pb.DeleteTopicRequest(name="t")).error
    assert (refused.code, refused.definite) == (pb.STORAGE_FAILED, True)
    placed = broker.data_stub().CommittedOffsets(pb.CommittedOffsetsRequest(group="g"))
    assert [place.offset for place in placed.offsets] == [1]
    ballast.unlink()
    assert commit(broker) == pb.OK
    assert create(broker, "later") == pb.OK
    assert broker.admin_stub().DeleteTopic(pb.DeleteTopicRequest(name="t")).error.code == pb.OK
    assert create(broker, "t") == pb.OK
    broker.end(signal.SIGKILL)
    broker.start()
    assert not broker.data_stub().CommittedOffsets(pb.CommittedOffsetsRequest(group="g")).offsets


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


def test_a_broker_starts_on_a_read_only_file_system_serves_reads_and_refuses_writes(
    broker: RunningBroker, disk: Path
) -> None:
    assert produce(broker, b"before").error.code == pb.OK
    assert commit(broker) == pb.OK
    assert create(broker, "deleted") == pb.OK
    assert broker.admin_stub().DeleteTopic(pb.DeleteTopicRequest(name="deleted")).error.code == pb.OK
    broker.end(signal.SIGKILL)
    remount(disk, "ro")
    broker.start()
    assert values(broker) == [b"before"]
    placed = broker.data_stub().CommittedOffsets(pb.CommittedOffsetsRequest(group="g"))
    assert [place.offset for place in placed.offsets] == [1]
    refused = produce(broker, b"after")
    assert (refused.error.code, refused.error.definite) == (pb.STORAGE_FAILED, True)
    assert "Read-only file system" in refused.error.message
    assert create(broker, "another") == pb.STORAGE_FAILED
    assert broker.admin_stub().DeleteTopic(pb.DeleteTopicRequest(name="t")).error.code == pb.STORAGE_FAILED
    assert commit(broker) == pb.STORAGE_FAILED
    assert values(broker) == [b"before"]
    assert broker.end() == 0
    data = broker.config["data_dir"]
    assert broker.log == f"broker: what is in {data} can be read, and nothing written: Read-only file system\n"
    remount(disk, "rw")
    broker.start()
    assert values(broker) == [b"before"]
    assert produce(broker, b"after").base_offset == 1


def test_two_brokers_do_not_start_on_one_folder_of_a_read_only_file_system(
    broker: RunningBroker, disk: Path, tmp_path: Path
) -> None:
    broker.end()
    remount(disk, "ro")
    broker.start()
    second = RunningBroker(tmp_path / "second", data_dir=broker.config["data_dir"])
    assert second.spawn().wait() == 2
    assert "another process has" in second.log
    second.stop()


def test_a_broker_that_must_write_to_join_ends_on_a_read_only_file_system_with_1_and_one_line(
    disk: Path, tmp_path: Path
) -> None:
    broker = RunningBroker(tmp_path / "broker", data_dir=str(disk / "data"), coordinator={"name": "dsbs"})
    broker.start()
    broker.end()
    remount(disk, "ro")
    assert broker.spawn().wait() == 1
    assert broker.log == (
        f"broker: what is in {disk / 'data'} can be read, and nothing written: Read-only file system\n"
        "broker: cannot write tables.journal: [Errno 30] Read-only file system: "
        f"'{disk / 'data' / 'journals' / 'tables.journal'}'\n"
    )
    broker.stop()


def test_a_data_folder_that_cannot_be_made_ends_the_start_with_1_and_the_reason(
    broker: RunningBroker, disk: Path
) -> None:
    broker.end()
    broker.config["data_dir"] = str(disk / "fresh")
    remount(disk, "ro")
    assert broker.spawn().wait() == 1
    assert "Read-only file system" in broker.log
    assert "Traceback" not in broker.log
