"""Gossip that no honest broker sends changes nothing, and is counted by its reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from coordinators.dsbs.machine import topics
from coordinators.dsbs.simulation.cluster import Cluster, address
from coordinators.dsbs.tables.messages import (
    MESSAGE_BYTES_MAX,
    ROWS_PER_MESSAGE_MAX,
    Envelope,
    Heartbeat,
    Push,
    Taken,
    encode,
)
from coordinators.dsbs.tables.rows import (
    COUNTER_FIRST_MAX,
    COUNTER_STEP_MAX,
    LeaderRow,
    MemberRow,
    Status,
    TableRow,
    TopicRow,
)
from coordinators.dsbs.tables.tables import MEMBERS_MAX, PARTITIONS_TOTAL_MAX
from coordinators.model import DEFAULT_SETTINGS
from tests.unit.coordinators.dsbs.clusters import agreed, created, forged, machine, row_of, told

HUGE = 2**63 - 1


@pytest.fixture
def cluster() -> Cluster:
    three = agreed(3)
    three.conditions.delay_ms = (1, 1)  # in order, so that nothing honest looks like a replay
    created(three, 1, "orders")
    three.run(1000)
    three.sent.clear()
    for number in three.nodes:
        machine(three, number).refused.clear()
    return three


def poison() -> dict[str, TableRow]:
    topic = TopicRow("orders", HUGE, 2, ((1, 2, 3),), DEFAULT_SETTINGS)
    leader = LeaderRow("orders", 0, 1, 1, 3, 0, 2, (2,))
    return {
        "huge incarnation": MemberRow(address(3), 7, HUGE, Status.DEAD),
        "incarnation that leaps": MemberRow(address(3), 7, COUNTER_STEP_MAX + 2, Status.DEAD),
        "unknown broker, huge incarnation": MemberRow(address(9), 7, COUNTER_FIRST_MAX + 1, Status.ALIVE),
        "huge generation": topic,
        "tombstone for good": replace(topic, replicas=(), deleted=True),
        "huge epoch": replace(leader, epoch=HUGE),
        "huge version": replace(leader, version=HUGE),
        "negative version": replace(leader, version=-1),
    }


@pytest.mark.parametrize("name", poison())
def test_a_row_whose_counter_leaps_is_refused_and_counted(cluster: Cluster, name: str) -> None:
    before = machine(cluster, 1).table.hash
    after = told(cluster, 1, forged(cluster, 2, Push((poison()[name],))))
    assert after.table.hash == before
    assert after.refused == {"leap": 1}


def test_a_broker_that_was_said_to_be_dead_in_a_huge_incarnation_can_still_refute(cluster: Cluster) -> None:
    dead = row_of(cluster, 1, incarnation=COUNTER_STEP_MAX, status=Status.DEAD)
    me = told(cluster, 1, forged(cluster, 2, Push((dead,)))).me
    assert (me.incarnation, me.status) == (COUNTER_STEP_MAX + 1, Status.ALIVE)
    assert cluster.run_until(cluster.agreed, 5000)


def test_who_claims_ones_own_id_is_refused_and_told_so(cluster: Cluster) -> None:
    sender = row_of(cluster, 1, broker=address(7, broker_id=1), session=9, incarnation=5)
    before = machine(cluster, 1).table.hash
    after = told(cluster, 1, encode(Envelope(cluster.settings.cluster, sender, 1, Heartbeat(0))))
    assert after.table.hash == before
    assert after.refused == {"own id": 1}
    assert cluster.sent["taken"][0] == 1


def test_a_forged_row_of_ones_own_id_is_refuted_and_counted(cluster: Cluster) -> None:
    row = row_of(cluster, 1, broker=address(7, broker_id=1), session=9, incarnation=5)
    told(cluster, 1, forged(cluster, 2, Push((row,))))
    cluster.run(100)
    assert machine(cluster, 1).refused["own id"] == 1
    for number in (1, 2, 3):
        held = machine(cluster, number).table.members[1]
        assert (held.incarnation, held.broker) == (6, address(1))


def test_another_clusters_messages_are_refused(cluster: Cluster) -> None:
    dead = row_of(cluster, 3, status=Status.DEAD)
    before = machine(cluster, 1).table.hash
    after = told(cluster, 1, forged(cluster, 2, Push((dead,)), name="elsewhere"))
    assert after.table.hash == before
    assert after.refused == {"foreign cluster": 1}


def test_an_old_full_table_changes_nothing_and_is_no_sign_of_life(cluster: Cluster) -> None:
    old = tuple(machine(cluster, 2).table.rows())
    replayed = forged(cluster, 2, Push(old), sequence=1)
    created(cluster, 1, "clicks")
    before = machine(cluster, 1).table.hash
    after = told(cluster, 1, replayed)
    assert after.table.hash == before
    assert after.refused == {"replayed": 1}


def test_replayed_heartbeats_do_not_keep_a_dead_broker_alive(cluster: Cluster) -> None:
    recorded = forged(cluster, 3, Heartbeat(0), sequence=1)
    cluster.crash(3)
    for _ in range(60):
        cluster.run(100)
        told(cluster, 1, recorded)
        told(cluster, 2, recorded)
    assert machine(cluster, 1).table.members[3].status is Status.DEAD


def test_a_message_with_too_many_rows_is_refused_whole(cluster: Cluster) -> None:
    row = row_of(cluster, 3, status=Status.DEAD)
    before = machine(cluster, 1).table.hash
    after = told(cluster, 1, forged(cluster, 2, Push((row,) * (ROWS_PER_MESSAGE_MAX + 1))))
    assert after.table.hash == before
    assert after.refused == {"malformed": 1}


def test_a_million_rows_are_refused_by_their_size(cluster: Cluster) -> None:
    content = forged(cluster, 2, Push((row_of(cluster, 3),) * 1_000_000))
    assert len(content) > MESSAGE_BYTES_MAX
    assert told(cluster, 1, content).refused == {"malformed": 1}


def test_brokers_beyond_the_bound_are_refused(cluster: Cluster) -> None:
    rows = tuple(MemberRow(address(100 + number), 1, 1, Status.DEAD) for number in range(MEMBERS_MAX + 5))
    after = told(cluster, 1, forged(cluster, 2, Push(rows)))
    assert len(after.table.members) == MEMBERS_MAX
    assert after.refused == {"no room": 8}


def test_partitions_beyond_the_bound_are_refused(cluster: Cluster) -> None:
    many = ((1,),) * 10_000
    rows = tuple(TopicRow(f"t{number}", 1, 2, many, DEFAULT_SETTINGS) for number in range(25))
    for row in rows:
        told(cluster, 1, forged(cluster, 2, Push((row,))))
    assert machine(cluster, 1).table.partitions_total <= PARTITIONS_TOTAL_MAX
    assert machine(cluster, 1).refused["no room"] == 6


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"null",
        b"[]",
        b"[" * 100_000,
        b'["brokerlab",["m",2,"h",1,1,1,1,0],1,"heartbeat"]',
        b'["brokerlab",["m",2,"h",1,1,1,1,0],1,"heartbeat",-1]',
        b'["brokerlab",["m",2,"h",1,1,1,1,0],1,"heartbeat",1e400]',
        b'["brokerlab",["m",2,"h",1,1,1,true,0],1,"heartbeat",1]',
        b'["brokerlab",["m",2,"h",1,1,1,1,9],1,"heartbeat",1]',
        b'["brokerlab",["t","x",1,1,1,[],0,null,null],1,"heartbeat",1]',
        b'["brokerlab",["m",2,"h",1,1,1,1,0],1,"digest",[1024,1]]',
        b'["brokerlab",["m",2,"h",1,1,1,1,0],1,"push",[["o","g","t",0,1,1,1,1,""]],0,0]',
        b'["brokerlab",["m",2,"h",1,1,1,1,0],1,"push",[["t","../x",1,1,0,[[1]],0,null,null]],0,0]',
        b'["brokerlab",["m",2,"h",1,1,1,1,0],1,"push",[["t","x",1,1,0,[[1,1]],0,null,null]],0,0]',
    ],
)
def test_bytes_that_are_no_message_are_refused(cluster: Cluster, content: bytes) -> None:
    before = machine(cluster, 1).table.hash
    after = told(cluster, 1, content)
    assert after.table.hash == before
    assert after.refused == {"malformed": 1}


def test_a_leader_that_is_no_replica_is_not_believed(cluster: Cluster) -> None:
    row = LeaderRow("orders", 0, 1, 1, 1, 0, 9, (9,))
    after = told(cluster, 1, forged(cluster, 2, Push((row,))))
    topic = after.table.topics["orders"]
    assert topics.recorded(after.table, topic, 0).leader in topic.replicas[0]


def test_one_broker_that_says_an_id_is_taken_does_not_end_a_member(cluster: Cluster) -> None:
    after = told(cluster, 1, forged(cluster, 2, Taken("go away", certain=True)))
    assert after.phase.value == "member"
