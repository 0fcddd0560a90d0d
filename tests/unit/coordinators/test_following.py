"""What a broker's store makes of the views that its coordinator hands it: above all, what it does not delete."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from brokers.log.config import LogConfig
from brokers.store import Store
from coordinators.model import Broker, ClusterView, Topic
from coordinators.placement import place

ME = Broker(1, "127.0.0.1", 9001, 9501)
OTHER = Broker(2, "127.0.0.1", 9002, 9502)
TOPICS = {name: Topic(name, place(name, 1, 1, [1])) for name in ("clicks", "orders")}
FULL = ClusterView(1, MappingProxyType({1: ME, 2: OTHER}), MappingProxyType(TOPICS))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path, LogConfig(), ME.id)
    made.follow(FULL)
    return made


def held(store: Store) -> set[str]:
    return {partition.at.topic for partition in store.partitions}


def test_a_topic_that_was_deleted_is_deleted_here(store: Store, tmp_path: Path) -> None:
    store.follow(replace(FULL, topics=MappingProxyType({"orders": TOPICS["orders"]})))
    assert held(store) == {"orders"}
    assert [path.name for path in (tmp_path / "topics").iterdir()] == ["orders-0"]


def test_the_last_topic_can_be_deleted(store: Store) -> None:
    store.follow(replace(FULL, topics=MappingProxyType({})))
    assert held(store) == set()


@pytest.mark.parametrize("brokers", [{}, {2: OTHER}])
def test_a_view_without_this_broker_deletes_nothing(store: Store, brokers: dict[int, Broker]) -> None:
    store.follow(replace(FULL, brokers=MappingProxyType(brokers), topics=MappingProxyType({})))
    assert held(store) == {"clicks", "orders"}


def test_what_was_deleted_meanwhile_is_deleted_when_this_broker_is_there_again(store: Store) -> None:
    without = MappingProxyType({"orders": TOPICS["orders"]})
    store.follow(replace(FULL, brokers=MappingProxyType({2: OTHER}), topics=without))
    store.follow(replace(FULL, topics=without))
    assert held(store) == {"orders"}
