"""A broker process that holds batches which unpack to far more than they are: its memory and its other readers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from brokers.rpc import brokerlab_pb2 as pb
from brokers.wire.compression import Codec
from tests.integration.kafka.raw import RawClient, batch
from tests.integration.processes.running import PATIENCE_S, PROC, RunningBroker

MIB = 1024 * 1024
BOMBS = 12
BOMB_BYTES = 60 * MIB
# Of one answer: unpacked, as records, in the answer, as its message, on its way.
COPIES_MAX = 8


@pytest.fixture
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    made = RunningBroker(tmp_path_factory.mktemp("bombs"), limits={"request_bytes_max": 2 * MIB})
    made.start()
    created = made.admin_stub().CreateTopic(pb.CreateTopicRequest(name="t", partitions=1, replication_factor=1))
    assert created.error.code == pb.OK
    yield made
    made.stop()


def peak_bytes(broker: RunningBroker) -> int:
    """The most that the process has ever held."""
    assert broker.process is not None
    lines = (PROC / str(broker.process.pid) / "status").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


def test_bombs_take_the_memory_of_one_and_all_can_be_read(broker: RunningBroker) -> None:
    packed = batch(bytes(BOMB_BYTES), codec=Codec.ZSTD)
    with RawClient(broker.config["brokers"][0]["kafka_port"]) as kafka:
        assert [kafka.produce("t", packed) for _ in range(BOMBS)] == [(0, number) for number in range(BOMBS)]
    before = peak_bytes(broker)
    data = broker.data_stub()
    for offset in range(BOMBS):
        answer = data.Fetch(pb.FetchRequest(topic="t", offset=offset), timeout=PATIENCE_S)
        assert [(one.offset, len(one.value)) for one in answer.records] == [(offset, BOMB_BYTES)]
    assert peak_bytes(broker) - before < COPIES_MAX * BOMB_BYTES
