"""What a broker's store keeps: whatever it is told while it does not belong to the cluster, and the next life of a
topic that is deleted while it is being looked after."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from brokers.log.config import FsyncPolicy
from brokers.replication.replica import Replica
from coordinators.model import Broker, ClusterView, Topic
from coordinators.placement import place
from tests.contract.backend import asynchronous
from tests.unit.brokers.log.batches import SMALL
from tests.unit.brokers.replication.held import follow, found, holding, write

ME = Broker(1, "127.0.0.1", 9001, 9501)
OTHER = Broker(2, "127.0.0.1", 9002, 9502)
TOPICS = {name: Topic(name, place(name, 1, 1, [1]), life="1") for name in ("clicks", "orders")}


def view(brokers: list[Broker], *topics: Topic) -> ClusterView:
    named = {topic.name: topic for topic in topics}
    return ClusterView(1, MappingProxyType({broker.id: broker for broker in brokers}), MappingProxyType(named))


def next_life(topic: Topic) -> Topic:
    return replace(topic, life=f"{topic.life}0")


FULL = view([ME, OTHER], *TOPICS.values())


@pytest.mark.parametrize("topics", [(), (TOPICS["clicks"],), (TOPICS["clicks"], next_life(TOPICS["orders"]))])
@pytest.mark.parametrize("brokers", [[], [OTHER]])
@asynchronous
async def test_who_is_shut_out_keeps_what_was_acknowledged(
    tmp_path: Path, brokers: list[Broker], topics: tuple[Topic, ...]
) -> None:
    """On the disk too, and for the next start: who does not belong to the cluster does not know what exists."""
    async with holding(tmp_path, FULL, ME.id) as store:
        write(found(store, "orders"), b"acknowledged")
        await follow(store, view(brokers, *topics))
        assert found(store, "orders").log.end_offset == 1
    async with holding(tmp_path, FULL, ME.id) as store:
        assert b"acknowledged" in found(store, "orders").read(0, 1_000)


@pytest.mark.parametrize("fsync", list(FsyncPolicy))
@asynchronous
async def test_maintenance_leaves_alone_what_was_deleted_since_it_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fsync: FsyncPolicy
) -> None:
    """To look after a partition may take a sync. What is deleted and made again meanwhile is another topic, and nothing
    of it may go with what retention thinks of the former one."""
    maintained, maintain = [], Replica.maintain
    async with holding(tmp_path, FULL, ME.id, replace(SMALL, fsync=fsync, retention_bytes=1)) as store:
        first, second = store.partitions
        name = second.at.topic

        async def remade_meanwhile(held: Replica, *, sync_sealed: bool) -> None:
            maintained.append((held.at.topic, held.deleted))
            if held is first:
                await follow(store, view([ME, OTHER], TOPICS[first.at.topic], next_life(TOPICS[name])))
                fill(found(store, name))
            await maintain(held, sync_sealed=sync_sealed)

        fill(first)
        fill(second)
        monkeypatch.setattr(Replica, "maintain", remade_meanwhile)
        await store.maintain()
        assert maintained == [(first.at.topic, False)]
        assert (found(store, name).start_offset, found(store, name).log.end_offset) == (0, 30)
        assert b"%050d" % 0 in found(store, name).read(0, 1_000)


def fill(held: Replica) -> None:
    """With many segments."""
    for number in range(30):
        write(held, b"%050d" % number)
