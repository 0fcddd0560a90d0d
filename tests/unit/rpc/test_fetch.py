"""Fetch over gRPC from a real log: what is stored as it came is answered, or refused, without harm to the broker."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from brokers.log.config import LogConfig
from brokers.metrics import Metrics
from brokers.rpc import brokerlab_pb2 as pb
from brokers.rpc.data import DataService
from brokers.store import Store
from brokers.wire.batch import RecordToSend, check_produced, encode_batch
from coordinators.api import Coordinator
from coordinators.model import Broker, ClusterView, Partition, Topic, TopicPartition
from tests.unit.wire.nonsense import record, signed

MESSAGE_BYTES_MAX = 16 * 1024 * 1024
CONTEXT: Any = None
PARTITION = Partition(replicas=(1,), leader=1, epoch=0, in_sync=(1,))


class Here:
    """A coordinator for whom this broker leads everything."""

    me = Broker(1, "127.0.0.1", 1, 2)

    def leader(self, at: TopicPartition) -> Partition:
        return PARTITION


class Stored:
    """One partition behind the service."""

    def __init__(self, folder: Path) -> None:
        self.store = Store(folder, LogConfig(), Here.me.id)
        self.store.follow(ClusterView(1, {1: Here.me}, {"t": Topic("t", (PARTITION,))}))
        self.metrics = Metrics()
        self.service = DataService(self.store, cast("Coordinator", Here()), self.metrics, MESSAGE_BYTES_MAX)

    def put(self, *batches: bytearray) -> None:
        """Store batches as they come, as the Kafka listener does."""
        held = self.store.partition("t", 0)
        assert held is not None
        for batch in batches:
            held.append([(batch, check_produced(batch, MESSAGE_BYTES_MAX))], 0)

    def fetch(self, offset: int = 0, **bounds: int) -> pb.FetchResponse:
        return asyncio.run(self.service.Fetch(pb.FetchRequest(topic="t", offset=offset, **bounds), CONTEXT))


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[Stored]:
    made = Stored(tmp_path)
    yield made
    made.store.close()


def good(*values: bytes) -> bytearray:
    return encode_batch([RecordToSend(value) for value in values or (b"v",)])


@pytest.mark.parametrize(
    ("batch", "words"),
    [
        (signed(record(timestamp_delta=2**62), timestamp=2**63 - 1), "the timestamp"),
        (signed(record(offset_delta=2**63 - 1)), "an offset delta of"),
        (signed(b"\0" * 7), "a record of 0 bytes"),
    ],
)
def test_a_batch_of_nonsense_is_an_error_in_the_answer(stored: Stored, batch: bytearray, words: str) -> None:
    stored.put(batch, good())
    answer = stored.fetch()
    assert (answer.error.code, answer.error.definite) == (pb.INVALID_REQUEST, True)
    assert words in answer.error.message
    assert [one.value for one in stored.fetch(1).records] == [b"v"]
