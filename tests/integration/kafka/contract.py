"""What must hold for any bad input (and for the fuzzer): the broker lives, its log is as it was, nothing leaks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

from tests.integration.kafka.cluster import Cluster
from tests.integration.kafka.raw import RawClient, batch

MEMORY_GROWTH_BYTES_MAX = 64 * 1024 * 1024
SETTLE_S_MAX = 10


@contextmanager
def unharmed(cluster: Cluster, topic: str) -> Iterator[None]:
    """Fails unless, after the body, the topic's log is unchanged, and neither files nor memory stay taken."""
    with RawClient(cluster.port()) as canary:
        make_topic(canary, topic)
        end, files, memory = canary.end_offset(topic), cluster.open_files(), cluster.resident_bytes()
        yield
        assert cluster.alive()
        assert cluster.complaints() == ""
        assert canary.end_offset(topic) == end
        assert settles(lambda: cluster.open_files() <= files)
        assert cluster.resident_bytes() - memory < MEMORY_GROWTH_BYTES_MAX
        assert canary.produce(topic, batch(b"canary")) == (0, end)
        assert canary.fetch(topic, end)[2].endswith(b"canary\0")


def make_topic(client: RawClient, topic: str) -> None:
    """On a broker that makes topics on first use."""
    from brokers.wire.apis.metadata import MetadataRequest, MetadataTopicName
    from brokers.wire.apis.table import ApiKey

    answer = client.call(ApiKey.METADATA, 5, MetadataRequest(topics=(MetadataTopicName(name=topic),)))
    assert answer.topics[0].error_code == 0


def settles(holds: object) -> bool:
    """Whether `holds()` becomes true within a bound: the broker closes sockets in its own time."""
    assert callable(holds)
    end = monotonic() + SETTLE_S_MAX
    while monotonic() < end:
        if holds():
            return True
    return False
