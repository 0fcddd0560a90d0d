"""kafka-python against a real broker."""

from __future__ import annotations

import gc
import io
import threading
import warnings
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import cramjam
import pytest

from tests.integration.kafka.cluster import Cluster

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import ConsumerRebalanceListener, KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.admin import NewTopic

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:kafka"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
PATIENCE_MS = 30_000
POLL_MS = 300


@pytest.fixture(autouse=True)
def sockets_left_open() -> Iterator[None]:
    """The library leaves socket pairs to the garbage collector, which complains of them; here and not elsewhere."""
    yield
    gc.collect()


def send(cluster: Cluster, topic: str, count: int, **options: Any) -> list[int]:
    """Produce numbered messages; their offsets."""
    client = KafkaProducer(bootstrap_servers=cluster.bootstrap, **options)
    futures = [client.send(topic, b"%d" % number, key=b"key", headers=[("h", b"v")]) for number in range(count)]
    offsets = [future.get(PATIENCE_MS / 1000).offset for future in futures]
    client.close()
    return offsets


def consumer(cluster: Cluster, **options: Any) -> Any:
    settings = {"auto_offset_reset": "earliest", "enable_auto_commit": False, "heartbeat_interval_ms": 100}
    return KafkaConsumer(bootstrap_servers=cluster.bootstrap, **(settings | options))


def receive(client: Any, count: int) -> list[Any]:
    messages: list[Any] = []
    while len(messages) < count:
        found = client.poll(timeout_ms=PATIENCE_MS, max_records=count - len(messages))
        assert found, f"{len(messages)} of {count} messages came"
        for part in found.values():
            messages += part
    return messages


class Zstandard:
    """What the library uses of the package `zstandard`, on cramjam."""

    class ZstdCompressor:
        compress = staticmethod(lambda data: bytes(cramjam.zstd.compress(data)))

    class ZstdDecompressor:
        @staticmethod
        def stream_reader(source: io.BytesIO, *, read_across_frames: bool) -> io.BytesIO:
            return io.BytesIO(bytes(cramjam.zstd.decompress(source.read())))


@pytest.fixture
def codecs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Packages that the library asks for, and nothing else here uses; how records are packed stays the library's."""
    packing = {
        "compress": lambda data: bytes(cramjam.snappy.compress_raw(data)),
        "decompress": lambda data: bytes(cramjam.snappy.decompress_raw(data)),
    }
    monkeypatch.setattr("kafka.codec.snappy", SimpleNamespace(**packing))
    monkeypatch.setattr("kafka.codec.zstd", Zstandard)
    monkeypatch.setattr("kafka.codec.lz4", cramjam.lz4)
    monkeypatch.setattr("kafka.record.default_records.lz4_encode", lambda data: bytes(cramjam.lz4.compress(data)))
    monkeypatch.setattr("kafka.record.default_records.lz4_decode", lambda data: bytes(cramjam.lz4.decompress(data)))


@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
def test_messages_come_back_as_they_were_sent(codec: str | None, codecs: None, cluster: Cluster, topic: str) -> None:
    assert send(cluster, topic, 200, compression_type=codec) == list(range(200))
    client = consumer(cluster)
    client.assign([TopicPartition(topic, 0)])
    messages = receive(client, 200)
    client.close()
    assert [message.value for message in messages] == [b"%d" % number for number in range(200)]
    assert {(message.key, tuple(message.headers)) for message in messages} == {(b"key", (("h", b"v"),))}


def test_an_idempotent_producer_stores_everything_once(cluster: Cluster, topic: str) -> None:
    assert send(cluster, topic, 300, enable_idempotence=True, acks="all") == list(range(300))


def test_reading_starts_where_it_is_told_to(cluster: Cluster, topic: str) -> None:
    send(cluster, topic, 10)
    client, part = consumer(cluster), TopicPartition(topic, 0)
    assert (client.beginning_offsets([part])[part], client.end_offsets([part])[part]) == (0, 10)
    assert client.offsets_for_times({part: 1})[part].offset == 0
    client.assign([part])
    client.seek(part, 8)
    assert [message.value for message in receive(client, 2)] == [b"8", b"9"]
    client.close()


class Member(ConsumerRebalanceListener):  # type: ignore[misc] # the library has no types
    """A member of a group, polled by a thread of its own.

    kafka-python drops a join that ends between two polls and joins anew, which for the leader starts the next round.
    Two members that are polled in turns can do that to each other for minutes, with any broker.
    """

    def __init__(self, cluster: Cluster, group: str, topic: str, agreed: threading.Condition) -> None:
        self.client = consumer(cluster, group_id=group)
        self.client.subscribe([topic], listener=self)
        self.share = 0
        self._agreed = agreed
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._poll)

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        self._takes(len(assigned))

    def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        self._takes(0)

    def _takes(self, share: int) -> None:
        with self._agreed:
            self.share = share
            self._agreed.notify_all()

    def _poll(self) -> None:
        while not self._stopped.is_set():
            self.client.poll(timeout_ms=POLL_MS)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()


def test_two_members_share_a_topic_and_one_takes_over(three: Cluster, spread: str) -> None:
    group, agreed = f"{spread}-group", threading.Condition()
    send(three, spread, 1)
    first = Member(three, group, spread, agreed)
    receive(first.client, 1)
    first.client.commit()
    assert first.share == 3
    second = Member(three, group, spread, agreed)
    first.start()
    second.start()
    with agreed:
        shared = agreed.wait_for(lambda: sorted((first.share, second.share)) == [1, 2], PATIENCE_MS / 1000)
    second.stop()
    second.client.close()
    with agreed:
        taken_over = agreed.wait_for(lambda: first.share == 3, PATIENCE_MS / 1000)
    first.stop()
    assert (shared, taken_over) == (True, True)
    assert sum(first.client.committed(TopicPartition(spread, number)) or 0 for number in range(3)) == 1
    first.client.close()


def test_topics_are_made_and_deleted(cluster: Cluster, topic: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    admin.create_topics([NewTopic(topic, num_partitions=2, replication_factor=1)])
    assert topic in admin.list_topics()
    admin.delete_topics([topic])
    assert topic not in admin.list_topics()
    admin.close()
