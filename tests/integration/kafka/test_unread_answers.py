"""A real broker and clients that ask for much and do not read it: each costs little, and gets all when it reads."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.integration.kafka.cluster import Cluster
from tests.integration.kafka.contract import make_topic
from tests.integration.kafka.raw import ANSWER_S_MAX, RawClient, batch, fetch_request, fetched, framed, head
from tests.unit.brokers.log.batches import split

MIB = 1024 * 1024
# Of the topic `large`, one partition holds nearly all that an answer takes; of `wide`, each less than what is lent.
BATCH_BYTES = 400 * 1024
BATCHES = 120
PARTITIONS = 100
CLIENTS = 40
# More small answers than a socket takes, and a large one behind them.
SMALL_ANSWERS = 20
BYTES_EACH_MAX = 2 * MIB
ALL = 55 * MIB


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("unread"), 1, {"topics": {"auto_create": True, "partitions": PARTITIONS}})
    with RawClient(cluster.start().port()) as client:
        for topic in ("large", "wide"):
            make_topic(client, topic)
        for number in range(BATCHES):
            assert client.produce("large", batch(bytes(BATCH_BYTES))) == (0, number)
        for number in range(PARTITIONS):
            assert client.produce("wide", batch(bytes(BATCH_BYTES)), partition=number) == (0, 0)
    yield cluster
    cluster.stop()


def large_behind_small() -> list[bytes]:
    small = [fetch_request("large", n, bytes_max=BATCH_BYTES, correlation_id=n) for n in range(SMALL_ANSWERS)]
    return [*small, fetch_request("large", 0, bytes_max=ALL, correlation_id=SMALL_ANSWERS)]


def of_many_partitions() -> list[bytes]:
    body = head(1, 11) + struct.pack(">iiiibiiih", -1, 0, 1, ALL, 0, 0, -1, 1, 4) + b"wide"
    body += struct.pack(">i", PARTITIONS)
    body += b"".join(struct.pack(">iiqqi", number, -1, 0, -1, MIB) for number in range(PARTITIONS))
    return [framed(body + struct.pack(">ih", 0, 0))]


@pytest.mark.parametrize(
    "asked", [large_behind_small(), of_many_partitions()], ids=["one behind another", "many at once"]
)
def test_a_client_that_does_not_read_costs_little(broker: Cluster, asked: list[bytes]) -> None:
    before = broker.resident_bytes()
    with ExitStack() as stack:
        clients = [stack.enter_context(RawClient(broker.port())) for _ in range(CLIENTS)]
        for client in clients:
            client.send(b"".join(asked))
        assert all(client.hears(ANSWER_S_MAX) for client in clients)
        with RawClient(broker.port()) as other:  # whose requests come behind what the others asked for
            make_topic(other, "other")
            for _ in range(CLIENTS):
                assert other.produce("other", batch(b"v"))[0] == 0
        assert broker.resident_bytes() - before < CLIENTS * BYTES_EACH_MAX


def test_whoever_reads_late_gets_every_answer_whole(broker: Cluster) -> None:
    asked = large_behind_small()
    with RawClient(broker.port()) as client:
        client.send(b"".join(asked))
        answers = [client.receive() for _ in asked]
    assert [struct.unpack_from(">i", answer)[0] for answer in answers] == list(range(len(asked)))
    assert [len(split(fetched(answer)[2])) for answer in answers[:-1]] == [1] * SMALL_ANSWERS
    assert len(split(fetched(answers[-1])[2])) == BATCHES
