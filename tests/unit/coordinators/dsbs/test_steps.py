"""What one broker does in one step, whatever the others do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from coordinators.dsbs.machine import topics
from coordinators.dsbs.machine.events import ChangeInSync, CreateTopic, DeleteTopic, Event, Persist, Resign, Send, Wake
from coordinators.dsbs.machine.topics import inheritance
from coordinators.dsbs.options import Settings
from coordinators.dsbs.simulation.cluster import Cluster
from coordinators.dsbs.tables.rows import Status
from coordinators.model import DEFAULT_SETTINGS, Partition, TopicPartition
from tests.unit.coordinators.dsbs.clusters import agreed, created, machine

SETTINGS = Settings()
AT = TopicPartition("orders", 0)


def partition_of(cluster: Cluster) -> Partition:
    topic = topics.topic_seen(machine(cluster, 1).table, AT.topic)
    assert topic is not None
    return topic.partitions[0]


def all_in_sync() -> tuple[Cluster, Partition]:
    """A topic of which all three brokers are replicas in sync."""
    cluster = agreed(3)
    created(cluster, 1, "orders", partitions=1)
    made = partition_of(cluster)
    cluster.do(made.leader, ChangeInSync(AT, frozenset({1, 2, 3}), made.epoch))
    assert cluster.run_until(cluster.agreed, 1_000)
    return cluster, partition_of(cluster)


def test_of_all_who_see_a_leader_dead_the_heir_alone_takes_over() -> None:
    """Each partition's row has one writer at a time: who wrote in the heir's name would write at the heir's epoch."""
    cluster, before = all_in_sync()
    leader, heir, other = before.replicas
    table = machine(cluster, heir).table.copy()
    row = table.topics["orders"]
    assert inheritance(table, row, 0, heir) is None
    table.merge([replace(table.members[leader], status=Status.DEAD)])
    taken = inheritance(table, row, 0, heir)
    assert taken is not None
    assert (taken.leader, set(taken.in_sync)) == (heir, {heir, other})
    assert taken.epoch > before.epoch
    assert inheritance(table, row, 0, other) is None
    table.merge([replace(table.members[heir], status=Status.DEAD)])
    inherited = inheritance(table, row, 0, other)
    assert inherited is not None
    assert inherited.leader == other


def test_a_broker_that_slept_calls_nobody_dead_for_what_it_did_not_hear_meanwhile() -> None:
    cluster = agreed(3)
    cluster.conditions.dropped = 1.0
    cluster.run(SETTINGS.heartbeat_ms + 1)  # so that it has asked, and not been answered
    sleeper = machine(cluster, 1)
    woken_ms = cluster.now_ms + 10 * (SETTINGS.timeout_ms + SETTINGS.suspicion_ms)
    sleeper.step(Wake(), woken_ms)
    assert {row.status for row in sleeper.table.members.values()} == {Status.ALIVE}
    while sleeper.wake_ms < woken_ms + SETTINGS.timeout_ms + SETTINGS.heartbeat_ms:
        sleeper.step(Wake(), sleeper.wake_ms)
    assert {row.status for number, row in sleeper.table.members.items() if number != 1} == {Status.SUSPECT}


@pytest.mark.parametrize("what", ["creation", "deletion", "in sync", "resignation"])
def test_what_others_are_told_is_on_the_disk_before(what: str) -> None:
    """Else a broker that dies between the two comes back without what it has promised."""
    cluster, partition = all_in_sync()
    events: dict[str, tuple[int, Event]] = {
        "creation": (1, CreateTopic(cluster.token(), "more", 1, 1, DEFAULT_SETTINGS)),
        "deletion": (1, DeleteTopic(cluster.token(), "orders")),
        "in sync": (partition.leader, ChangeInSync(AT, frozenset({partition.leader}), partition.epoch)),
        "resignation": (partition.leader, Resign(AT, partition.epoch)),
    }
    number, event = events[what]
    actions = [type(action) for action in machine(cluster, number).step(event, cluster.now_ms)]
    assert actions.count(Persist) == 1
    assert actions.index(Persist) < actions.index(Send)
