"""Answers that a real broker sends from its files."""

from __future__ import annotations

from tests.integration.kafka.cluster import Cluster
from tests.integration.kafka.contract import make_topic
from tests.integration.kafka.raw import RawClient, batch, fetch_request, fetched
from tests.unit.brokers.log.batches import split

# Together more than a socket takes from a client that does not read.
VALUES = [bytes([number]) * 900_000 for number in range(12)]
ALL = 1 << 26


def fill(client: RawClient, topic: str) -> list[bytes]:
    """A batch for each of `VALUES`: what they look like from the attributes on, which no broker changes."""
    make_topic(client, topic)
    made = [batch(value) for value in VALUES]
    assert [client.produce(topic, data)[1] for data in made] == list(range(len(made)))
    return [data[16:] for data in made]


def contents(records: bytes) -> list[bytes]:
    return [data[16:] for data in split(records)]


def test_a_large_answer_holds_what_was_produced(cluster: Cluster, topic: str) -> None:
    with RawClient(cluster.port(0)) as client:
        made = fill(client, topic)
        for _ in range(3):
            error, high, records = client.fetch(topic, 0, bytes_max=ALL)
            assert (error, high, contents(records)) == (0, len(VALUES), made)
        assert contents(client.fetch(topic, 9, bytes_max=ALL)[2]) == made[9:]


def test_whoever_does_not_read_a_large_answer_holds_up_nobody_else(cluster: Cluster, topic: str) -> None:
    with RawClient(cluster.port(0)) as slow, RawClient(cluster.port(0)) as other:
        made = fill(other, topic)
        slow.send(fetch_request(topic, 0, bytes_max=ALL))
        for number in range(100):
            assert other.produce(topic, batch(b"more"))[1] == len(VALUES) + number
        assert contents(other.fetch(topic, 0, bytes_max=ALL)[2])[: len(made)] == made
        assert contents(fetched(slow.receive())[2])[: len(made)] == made
