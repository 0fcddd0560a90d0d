"""A broker as a process: how it starts, what its ready line and exit codes say, and what survives its end."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from brokers.rpc import brokerlab_pb2 as pb
from tests.integration.processes.running import RunningBroker


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[RunningBroker]:
    made = RunningBroker(tmp_path / "broker")
    yield made
    made.stop()


def create(broker: RunningBroker, name: str = "t", partitions: int = 1) -> None:
    request = pb.CreateTopicRequest(name=name, partitions=partitions, replication_factor=1)
    assert broker.admin_stub().CreateTopic(request).error.code == pb.OK


def produce(broker: RunningBroker, *values: bytes, topic: str = "t", partition: int = 0) -> int:
    records = [pb.Record(value=value) for value in values]
    request = pb.ProduceRequest(topic=topic, partition=partition, acks=1, records=records)
    answer = broker.data_stub().Produce(request)
    assert answer.error.code == pb.OK, answer.error
    return answer.base_offset


def fetched(broker: RunningBroker, topic: str = "t", offset: int = 0) -> list[bytes]:
    """All that is stored from an offset on; an answer may hold less."""
    found: list[bytes] = []
    stub = broker.data_stub()
    while True:
        answer = stub.Fetch(pb.FetchRequest(topic=topic, offset=offset + len(found)))
        assert answer.error.code == pb.OK, answer.error
        found += [record.value for record in answer.records]
        if offset + len(found) == answer.end_offset:
            return found


def commit(broker: RunningBroker, offset: int) -> None:
    places = [pb.PartitionOffset(topic="t", partition=0, offset=offset)]
    assert broker.data_stub().CommitOffsets(pb.CommitOffsetsRequest(group="g", offsets=places)).error.code == pb.OK


def committed(broker: RunningBroker) -> list[int]:
    answer = broker.data_stub().CommittedOffsets(pb.CommittedOffsetsRequest(group="g"))
    return [place.offset for place in answer.offsets]


def test_the_ready_line_names_the_broker_and_its_process(broker: RunningBroker) -> None:
    said = broker.start()
    assert broker.process is not None
    assert said["ready"] == 1
    assert said["pid"] == broker.process.pid


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_broker_that_is_told_to_stop_ends_with_0_and_says_nothing(
    broker: RunningBroker, number: signal.Signals
) -> None:
    broker.start()
    create(broker)
    produce(broker, b"one")
    assert broker.end(number) == 0
    assert broker.log == ""


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_topics_messages_and_committed_offsets_survive_an_end(broker: RunningBroker, how: signal.Signals) -> None:
    broker.start()
    create(broker)
    assert produce(broker, b"one", b"two") == 0
    assert produce(broker, b"three") == 2
    commit(broker, 1)
    commit(broker, 2)
    broker.end(how)
    broker.start()
    assert fetched(broker) == [b"one", b"two", b"three"]
    assert committed(broker) == [2]
    assert produce(broker, b"four") == 3
    assert fetched(broker, offset=2) == [b"three", b"four"]


def test_a_deleted_topic_stays_deleted_and_its_name_starts_anew(broker: RunningBroker) -> None:
    broker.start()
    create(broker)
    produce(broker, b"old")
    commit(broker, 1)
    assert broker.admin_stub().DeleteTopic(pb.DeleteTopicRequest(name="t")).error.code == pb.OK
    broker.end(signal.SIGKILL)
    broker.start()
    assert not broker.admin_stub().DescribeTopics(pb.DescribeTopicsRequest()).topics
    create(broker)
    assert fetched(broker) == []
    assert committed(broker) == []


def test_a_config_that_is_refused_ends_with_2_and_one_line(broker: RunningBroker) -> None:
    broker.config["brokr"] = 1
    assert broker.spawn().wait() == 2
    config = broker.folder / "broker.json"
    assert broker.log == f"broker: {config}: unknown key 'brokr' in the config; did you mean 'broker'?\n"


def test_a_coordinator_that_is_not_there_ends_with_2(broker: RunningBroker) -> None:
    broker.config["coordinator"] = {"name": "nosuch"}
    assert broker.spawn().wait() == 2
    assert "coordinator must be one of " in broker.log
    assert "not 'nosuch'" in broker.log


def test_a_port_in_use_ends_with_98_and_says_which(broker: RunningBroker) -> None:
    with socket.create_server(("127.0.0.1", broker.rpc_port)):
        assert broker.spawn().wait() == 98
    last = broker.log.splitlines()[-1]  # before it the library speaks
    assert last == f"broker: cannot listen on 127.0.0.1:{broker.rpc_port}: it is in use"


def test_the_kafka_port_in_use_ends_with_98_and_says_which(broker: RunningBroker) -> None:
    port = broker.config["brokers"][0]["kafka_port"]
    with socket.create_server(("127.0.0.1", port)):
        assert broker.spawn().wait() == 98
    assert broker.log == f"broker: cannot listen on 127.0.0.1:{port}: it is in use\n"


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        ("no-such-host.invalid", "which cannot be resolved: "),
        ("x" * 64, "which cannot be resolved: "),
        ("192.0.2.1", "192.0.2.1 is no address of this machine"),
        ("::1", "a host is a name or an IPv4 address"),
    ],
)
def test_a_host_that_no_port_can_mend_ends_with_2_and_one_line_and_makes_nothing(
    broker: RunningBroker, host: str, reason: str
) -> None:
    broker.config["brokers"][0]["host"] = host
    assert broker.spawn().wait() == 2
    assert broker.log.startswith(f"broker: cannot listen on {host!r}")
    assert reason in broker.log
    assert broker.log.count("\n") == 1
    assert not broker.data.exists()


def test_a_second_broker_on_the_same_data_is_refused_and_the_first_is_unharmed(
    broker: RunningBroker, tmp_path: Path
) -> None:
    broker.start()
    create(broker)
    produce(broker, b"one")
    second = RunningBroker(tmp_path / "second", data_dir=str(broker.data))
    assert second.spawn().wait() == 2
    assert f"another process has {broker.data}" in second.log
    second.stop()
    produce(broker, b"two")
    create(broker, "u")
    broker.end(signal.SIGKILL)
    broker.start()
    assert fetched(broker) == [b"one", b"two"]
    assert len(broker.admin_stub().DescribeTopics(pb.DescribeTopicsRequest()).topics) == 2


def test_a_broker_with_another_id_is_refused_on_a_folder_and_leaves_it_as_it_was(tmp_path: Path) -> None:
    """It would find no partition of its own there, and what it acknowledged would be lost to who has the folder."""
    broker = RunningBroker(tmp_path / "broker", brokers=2)
    broker.start()
    broker.end()
    before = sorted(broker.data.rglob("*"))
    broker.config["broker"] = 2
    assert broker.spawn().wait() == 2
    broker.stop()
    assert broker.log == (
        f"broker: {broker.data} holds the data of broker 1, and this is broker 2: a broker's data_dir is its own\n"
    )
    assert sorted(broker.data.rglob("*")) == before
    broker.config["broker"] = 1
    broker.start()
    assert broker.end() == 0


def test_a_damaged_journal_ends_with_1_and_what_to_do(broker: RunningBroker) -> None:
    broker.start()
    create(broker, "t")
    create(broker, "u")
    broker.end()
    journal = broker.data / "journals" / "topics.journal"
    content = bytearray(journal.read_bytes())
    content[10] ^= 1
    journal.write_bytes(content)
    assert broker.spawn().wait() == 1
    assert f"{journal} is damaged at byte 0: restore it, or move it away" in broker.log


def test_a_torn_journal_and_a_torn_log_are_cut_at_the_next_start(broker: RunningBroker) -> None:
    broker.start()
    create(broker)
    produce(broker, b"one")
    produce(broker, b"two")
    broker.end(signal.SIGKILL)
    for path, torn in (
        (broker.data / "journals" / "topics.journal", b"\0\0\0\x40half a record"),
        (next((broker.data / "logs" / "t" / "1" / "0").glob("*.log")), b"\0" * 30),
    ):
        with path.open("ab") as file:
            file.write(torn)
    broker.start()
    assert fetched(broker) == [b"one", b"two"]
    assert produce(broker, b"three") == 2


def test_the_signals_are_heeded_while_a_client_waits(broker: RunningBroker) -> None:
    broker.start()
    create(broker)
    waiting = broker.data_stub().Fetch.future(pb.FetchRequest(topic="t", wait_max_ms=60_000))
    produce(broker, b"wakes it")
    assert [record.value for record in waiting.result().records] == [b"wakes it"]
    again = broker.data_stub().Fetch.future(pb.FetchRequest(topic="t", offset=1, wait_max_ms=60_000))
    assert not again.done()
    assert broker.end() == 0
