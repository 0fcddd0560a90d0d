"""What a partition's log is opened with: the topic's own settings, and the broker's where it has none."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from brokers.replication.replica import Replica
from brokers.replication.store import Store
from coordinators.model import Broker, ClusterView, Topic, TopicSettings
from coordinators.placement import place
from tests.unit.brokers.log.batches import SMALL, batch
from tests.unit.brokers.replication.held import led

ME = Broker(1, "127.0.0.1", 9001, 9501)
NEVER = 10**15  # more than has passed since 1970


def filled(folder: Path, settings: TopicSettings, **brokers: int) -> Replica:
    """A partition with many segments, whose records are all as old as 1970."""
    store = Store(folder, replace(SMALL, **brokers), ME.id)  # type: ignore[arg-type] # they are whole numbers
    topic = Topic("t", place("t", 1, 1, [ME.id]), settings, life="1")
    asyncio.run(store.start(ClusterView(1, MappingProxyType({ME.id: ME}), MappingProxyType({"t": topic}))))
    held = store.partition("t", 0)
    assert held is not None
    for _ in range(30):
        held.append([batch(b"x" * 50)], led(held))
    return held


@pytest.mark.parametrize(
    ("settings", "brokers"),
    [
        (TopicSettings(), {"retention_bytes": 1}),
        (TopicSettings(), {"retention_ms": 1}),
        (TopicSettings(retention_ms=NEVER), {"retention_bytes": 1}),
        (TopicSettings(retention_bytes=10**9), {"retention_ms": 1}),
        (TopicSettings(retention_bytes=1), {"retention_bytes": 10**9}),
        (TopicSettings(retention_ms=1), {"retention_ms": NEVER, "retention_bytes": 10**9}),
    ],
)
def test_a_topic_that_sets_one_bound_of_retention_keeps_the_brokers_other_one(
    tmp_path: Path, settings: TopicSettings, brokers: dict[str, int]
) -> None:
    held = filled(tmp_path, settings, **brokers)
    assert held.log.retain(now_ms=1_000_000) > 0


@pytest.mark.parametrize(
    ("settings", "brokers"),
    [
        (TopicSettings(), {}),
        (TopicSettings(retention_ms=NEVER), {"retention_ms": 1}),
        (TopicSettings(retention_bytes=10**9), {"retention_bytes": 1}),
        (TopicSettings(retention_bytes=10**9, retention_ms=NEVER), {"retention_bytes": 1, "retention_ms": 1}),
    ],
)
def test_a_topics_own_bound_goes_before_the_brokers(
    tmp_path: Path, settings: TopicSettings, brokers: dict[str, int]
) -> None:
    held = filled(tmp_path, settings, **brokers)
    assert held.log.retain(now_ms=1_000_000) == 0
