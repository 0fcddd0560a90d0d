"""Clusters that the tests of one run share: each test uses topics and groups of its own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from tests.integration.kafka.cluster import Cluster
from tests.integration.kafka.contract import make_topic
from tests.integration.kafka.raw import RawClient

_numbers = itertools.count()
LIMITS = {"message_bytes_max": 1_000_000, "request_bytes_max": 4_000_000}


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One broker that makes topics on first use."""
    options = {"topics": {"auto_create": True}, "limits": LIMITS}
    cluster = Cluster(tmp_path_factory.mktemp("one"), 1, options).start()
    yield cluster
    cluster.stop()


@pytest.fixture(scope="session")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three brokers; topics have three partitions, which `static` places alike on each."""
    cluster = Cluster(tmp_path_factory.mktemp("three"), 3, {"topics": {"auto_create": True, "partitions": 3}}).start()
    yield cluster
    cluster.stop()


@pytest.fixture
def spread(three: Cluster, topic: str) -> str:
    """A topic of three partitions, on all three brokers."""
    with RawClient(three.port(2)) as client:
        make_topic(client, topic)
    return topic


@pytest.fixture
def batched(three: Cluster, topic: str) -> str:
    """A topic of three partitions, of which a fetch brings ten messages at most."""
    made = NewTopic(topic, 3, 1, config={"fetch_records_max": "10"})
    admin = AdminClient({"bootstrap.servers": three.bootstrap})
    admin.create_topics([made])[topic].result(30)
    return topic


@pytest.fixture
def topic() -> str:
    """A name that no other test has."""
    return f"topic-{next(_numbers)}"
