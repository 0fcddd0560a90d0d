"""A broker whose files were damaged, or that ran out of file handles: it says so, and keeps what it acknowledged."""

from __future__ import annotations

import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from brokers.rpc import brokerlab_pb2 as pb
from brokers.rpc.brokerlab_pb2_grpc import DataStub
from brokers.wire.batch import parse_header
from tests.integration.processes.running import RunningBroker

ACKNOWLEDGED = 300
DAMAGED = 11


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[RunningBroker]:
    made = RunningBroker(tmp_path / "broker", log={"fsync": "always", "segment_bytes": 1 << 20})
    made.start()
    request = pb.CreateTopicRequest(name="t", partitions=1, replication_factor=1)
    assert made.admin_stub().CreateTopic(request).error.code == pb.OK
    yield made
    made.stop()


def produce(data: DataStub, value: bytes) -> pb.ProduceResponse:
    return data.Produce(pb.ProduceRequest(topic="t", acks=-1, records=[pb.Record(value=value)]))


def fetch(broker: RunningBroker, offset: int) -> pb.FetchResponse:
    return broker.data_stub().Fetch(pb.FetchRequest(topic="t", offset=offset))


def storage(broker: RunningBroker) -> dict[str, int]:
    return dict(broker.admin_stub().Statistics(pb.StatisticsRequest()).storage)


def fill(broker: RunningBroker) -> None:
    """One message, one batch, one acknowledgement each."""
    data = broker.data_stub()
    requests = (
        pb.ProduceRequest(topic="t", acks=-1, records=[pb.Record(value=b"%05d" % n)]) for n in range(ACKNOWLEDGED)
    )
    offsets = [answer.base_offset for answer in data.ProduceStream(requests)]
    assert offsets == list(range(ACKNOWLEDGED))


def flip(path: Path, offset: int) -> int:
    """A bit in the batch with this offset; where that begins."""
    content, position = bytearray(path.read_bytes()), 0
    while (header := parse_header(bytes(content), position)).base_offset < offset:
        position += header.size
    content[position + 70] ^= 4
    path.write_bytes(content)
    return position


def test_after_kill_9_a_flipped_bit_costs_the_batch_that_it_hit_and_is_told(broker: RunningBroker) -> None:
    fill(broker)
    broker.end(signal.SIGKILL)
    folder = broker.data / "logs" / "t" / "1" / "0"
    (segment,) = folder.glob("*.log")
    size = segment.stat().st_size
    position = flip(segment, DAMAGED)
    for _ in range(2):
        broker.start()
        assert [record.value for record in fetch(broker, 0).records] == [b"%05d" % n for n in range(DAMAGED)]
        assert fetch(broker, DAMAGED).error.code == pb.STORAGE_FAILED
        assert f"reading goes on at {DAMAGED + 1}" in fetch(broker, DAMAGED).error.message
        behind = [record.value for record in fetch(broker, DAMAGED + 1).records]
        assert behind == [b"%05d" % n for n in range(DAMAGED + 1, ACKNOWLEDGED)]
        assert segment.stat().st_size == size
        where = f"({segment.name} at byte {position}); the bytes stay there"
        line = f"broker: {folder}: offsets {DAMAGED} to {DAMAGED} are damaged on disk {where}\n"
        assert broker.log == line
        assert storage(broker) == {"damaged_offsets": 1}
        broker.end(signal.SIGKILL)
        (broker.folder / "broker.log").unlink()
    broker.start()
    assert produce(broker.data_stub(), b"later").base_offset == ACKNOWLEDGED


def test_a_topic_that_goes_with_a_damaged_last_record_of_the_journal_is_told(broker: RunningBroker) -> None:
    assert produce(broker.data_stub(), b"old").error.code == pb.OK
    broker.end(signal.SIGKILL)
    journal = broker.data / "journals" / "topics.journal"
    content = bytearray(journal.read_bytes())
    content[-1] ^= 1
    journal.write_bytes(content)
    broker.start()
    aside = f"{journal.name}.0.cut"
    kept = f"kept in {aside}; a change that was made last may be missing"
    topic = broker.data / "logs" / "t" / "1"
    cut, stray = broker.log.splitlines()
    assert cut == f"broker: {journal}: {len(content)} bytes behind the last whole record were cut off ({kept})"
    assert "a damaged journal has lost" in stray, "nobody is told to remove what may be all that is left"
    assert stray.endswith(f"yours to keep or to remove: {topic}")
    assert list((topic / "0").glob("*.log"))
    assert (journal.parent / aside).read_bytes() == content
    assert storage(broker) == {"journal_cut_bytes": len(content)}
    request = pb.CreateTopicRequest(name="t", partitions=1, replication_factor=1)
    assert broker.admin_stub().CreateTopic(request).error.code == pb.OK
    assert produce(broker.data_stub(), b"new").base_offset == 0, "what is made again begins empty"
    assert [record.value for record in fetch(broker, 0).records] == [b"new"]


def limit_open_files(broker: RunningBroker, limit: int | None) -> None:
    """Let the broker open no file more, or as many as before."""
    assert broker.process is not None
    pid = broker.process.pid
    _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (hard if limit is None else limit, hard))


def test_running_out_of_file_handles_passes_without_a_restart(tmp_path: Path) -> None:
    broker = RunningBroker(tmp_path / "broker", log={"fsync": "always", "segment_bytes": 20_000})
    broker.start()
    try:
        request = pb.CreateTopicRequest(name="t", partitions=1, replication_factor=1)
        assert broker.admin_stub().CreateTopic(request).error.code == pb.OK
        data = broker.data_stub()
        assert produce(data, b"before").error.code == pb.OK
        limit_open_files(broker, 3)
        answers = [produce(data, b"x" * 1000) for _ in range(60)]
        refused = [answer.error for answer in answers if answer.error.code != pb.OK]
        assert {error.code for error in refused} == {pb.STORAGE_FAILED}
        assert all("Too many open files" in error.message for error in refused)
        limit_open_files(broker, None)
        after = produce(data, b"after")
        assert after.error.code == pb.OK, after.error.message
        last = fetch(broker, after.base_offset).records
        assert [record.value for record in last] == [b"after"]
        assert "Traceback" not in broker.log
    finally:
        broker.stop()


def test_running_out_of_file_handles_at_a_new_segment_is_definite_and_told_once(tmp_path: Path) -> None:
    """Without a sync, which needs handles itself."""
    broker = RunningBroker(tmp_path / "broker", log={"segment_bytes": 20_000})
    broker.start()
    try:
        request = pb.CreateTopicRequest(name="t", partitions=1, replication_factor=1)
        assert broker.admin_stub().CreateTopic(request).error.code == pb.OK
        data = broker.data_stub()
        assert produce(data, b"before").error.code == pb.OK
        limit_open_files(broker, 3)
        answers = [produce(data, b"x" * 1000) for _ in range(60)]
        stored = [answer.base_offset for answer in answers if answer.error.code == pb.OK]
        refused = [answer.error for answer in answers if answer.error.code != pb.OK]
        assert stored == list(range(1, len(stored) + 1))
        assert refused
        assert all(error.definite and error.code == pb.STORAGE_FAILED for error in refused)
        limit_open_files(broker, None)
        assert produce(data, b"after").base_offset == len(stored) + 1
        line = f"broker: {broker.data / 'logs' / 't' / '1' / '0'}: cannot begin a segment: Too many open files; "
        assert broker.log == line + "writes are refused as long as that lasts\n"
        assert storage(broker) == {"writes_refused_for_now": len(refused)}
    finally:
        broker.stop()
