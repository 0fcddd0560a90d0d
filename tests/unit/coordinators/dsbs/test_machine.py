"""What brokers do together, each in the real machine on the simulated network."""

from __future__ import annotations

import pytest

from coordinators.dsbs.machine import topics
from coordinators.dsbs.machine.events import (
    ChangeInSync,
    Commit,
    CreateTopic,
    DeleteTopic,
    Gather,
    Hear,
    Leave,
    Received,
)
from coordinators.dsbs.machine.ledger import Phase
from coordinators.dsbs.machine.topics import own_epoch, topic_seen
from coordinators.dsbs.options import Settings
from coordinators.dsbs.simulation.cluster import Cluster, Node, address
from coordinators.dsbs.tables.messages import Here, Kept
from coordinators.dsbs.tables.rows import Status
from coordinators.dsbs.tables.tables import Table
from coordinators.errors import NotEnoughBrokers, TopicExists, Unavailable
from coordinators.model import DEFAULT_SETTINGS, Committed, Partition, TopicPartition
from coordinators.placement import group_succession, place
from tests.unit.coordinators.dsbs.clusters import agreed, create, created, forged, machine, told

SETTINGS = Settings()
DEAD_WITHIN_MS = SETTINGS.timeout_ms + SETTINGS.suspicion_ms + 2 * SETTINGS.heartbeat_ms
AT = TopicPartition("orders", 0)


def partition(cluster: Cluster, number: int, at: TopicPartition = AT) -> Partition:
    topic = topics.topic_seen(machine(cluster, number).table, at.topic)
    assert topic is not None
    return topic.partitions[at.partition]


def test_a_creation_is_finished_when_all_live_peers_know_it() -> None:
    cluster = agreed(4)
    token = create(cluster, 2, "orders")
    assert token not in cluster.nodes[2].finished
    cluster.run(100)
    assert cluster.nodes[2].finished[token].known_to == {1, 2, 3, 4}
    assert cluster.agreed()


def test_a_creation_says_who_has_not_acknowledged_it() -> None:
    cluster = agreed(3)
    cluster.split([[1, 2], [3]])
    token = create(cluster, 1, "orders", replicas=2)
    cluster.run(SETTINGS.acknowledge_ms)
    finished = cluster.nodes[1].finished[token]
    assert finished.known_to == {1, 2}
    assert finished.missing == {3}


def test_a_creation_is_said_again_until_it_is_acknowledged() -> None:
    cluster = agreed(3)
    cluster.conditions.cut = {(1, 3)}
    token = create(cluster, 1, "orders")
    cluster.run(100)
    cluster.heal()
    cluster.run(SETTINGS.heartbeat_ms + 100)
    assert cluster.nodes[1].finished[token].missing == frozenset()


def test_a_topic_is_placed_as_in_every_other_architecture() -> None:
    cluster = agreed(3)
    created(cluster, 1, "orders", partitions=3, replicas=2)
    found = topics.topic_seen(machine(cluster, 2).table, "orders")
    assert found is not None
    assert found.partitions == place("orders", 3, 2, [1, 2, 3])


@pytest.mark.parametrize("seed", range(10))
def test_brokers_that_make_one_topic_at_once_agree_on_one_placement(seed: int) -> None:
    cluster = agreed(3, seed)
    for number, partitions in ((1, 1), (2, 2), (3, 3)):
        create(cluster, number, "orders", partitions=partitions, replicas=2)
    assert cluster.run_until(cluster.agreed, 2000)
    row = machine(cluster, 1).table.topics["orders"]
    assert (row.creator, len(row.replicas)) == (3, 3)


@pytest.mark.parametrize(("creator", "deleter"), [(1, 3), (3, 1), (2, 2)])
def test_a_topic_is_deleted_for_all_whoever_made_it_and_whoever_deletes_it(creator: int, deleter: int) -> None:
    cluster = agreed(3)
    created(cluster, creator, "orders")
    cluster.do(deleter, DeleteTopic(cluster.token(), "orders"))
    assert cluster.run_until(cluster.agreed, 1_000)
    cluster.crash(creator)
    cluster.start(creator)
    assert cluster.run_until(cluster.agreed, DEAD_WITHIN_MS)
    assert [topics.topic_seen(machine(cluster, number).table, "orders") for number in (1, 2, 3)] == [None] * 3


def test_what_cannot_be_done_is_refused_and_changes_nothing() -> None:
    cluster = agreed(3)
    created(cluster, 1, "orders")
    before = machine(cluster, 2).table.hash
    with pytest.raises(TopicExists):
        create(cluster, 2, "orders")
    with pytest.raises(NotEnoughBrokers):
        create(cluster, 2, "clicks", replicas=4)
    assert machine(cluster, 2).table.hash == before


def test_a_broker_that_is_no_member_yet_changes_nothing() -> None:
    cluster = Cluster(3, 1)
    cluster.start(1)
    assert machine(cluster, 1).phase is Phase.JOINING
    with pytest.raises(Unavailable):
        cluster.do(1, CreateTopic(1, "orders", 1, 1, DEFAULT_SETTINGS))


def test_a_dead_broker_is_known_to_be_dead_within_heartbeat_timeout_and_suspicion() -> None:
    cluster = agreed(5)
    cluster.crash(4)
    cluster.run(DEAD_WITHIN_MS)
    assert {machine(cluster, number).table.members[4].status for number in (1, 2, 3, 5)} == {Status.DEAD}


def test_the_first_live_in_sync_replica_in_placement_order_inherits_at_a_higher_epoch() -> None:
    cluster = agreed(3)
    first, second, third = _all_in_sync(cluster)
    cluster.crash(first)
    cluster.run(DEAD_WITHIN_MS + 100)
    after = partition(cluster, third)
    assert (after.leader, after.in_sync) == (second, (second, third))
    assert after.epoch > 0
    assert partition(cluster, second) == after


def test_nobody_leads_where_no_replica_in_sync_lives_until_one_returns() -> None:
    cluster = agreed(3)
    created(cluster, 1, "orders", partitions=1, replicas=1)
    (only,) = partition(cluster, 1).replicas
    other = next(number for number in (1, 2, 3) if number != only)
    cluster.crash(only)
    cluster.run(DEAD_WITHIN_MS + 100)
    assert partition(cluster, other).leader == -1
    cluster.start(only)
    assert cluster.run_until(cluster.agreed, 5000)
    assert (partition(cluster, other).leader, partition(cluster, other).epoch) == (only, 1)


@pytest.mark.parametrize("replicas", [1, 2, 3, 5])
def test_an_epoch_belongs_to_one_replica_alone(replicas: int) -> None:
    for after in range(20):
        epochs = [own_epoch(after, place_, replicas) for place_ in range(replicas)]
        assert len(set(epochs)) == replicas
        assert all(after < epoch <= after + replicas for epoch in epochs)


def test_a_false_death_is_refuted_with_a_higher_incarnation() -> None:
    cluster = agreed(3)
    cluster.split([[1, 2], [3]])
    cluster.run(DEAD_WITHIN_MS)
    assert machine(cluster, 1).table.members[3].status is Status.DEAD
    cluster.heal()
    cluster.run(2 * SETTINGS.heartbeat_ms)
    row = machine(cluster, 1).table.members[3]
    assert (row.status, row.incarnation) == (Status.ALIVE, 2)
    assert cluster.agreed()


def test_a_broker_that_leaves_is_inherited_from_at_once() -> None:
    cluster = agreed(3)
    first, second, third = _all_in_sync(cluster)
    token = cluster.token()
    cluster.do(first, Leave(token))
    cluster.run(50)
    assert cluster.nodes[first].finished[token].missing == frozenset()
    assert machine(cluster, first).phase is Phase.OUT
    assert partition(cluster, third).leader == second


def test_a_broker_that_returns_empty_erases_nothing() -> None:
    cluster = agreed(3)
    created(cluster, 1, "orders")
    before = dict(machine(cluster, 1).table.topics)
    cluster.crash(2, wiped=True)
    cluster.start(2)
    assert cluster.run_until(cluster.agreed, 5000)
    assert machine(cluster, 2).table.topics == before


@pytest.mark.parametrize("seed", range(8))
def test_a_leader_that_lost_its_disk_leads_nothing_that_it_held_however_soon_it_is_back(seed: int) -> None:
    cluster = agreed(3, seed)
    created(cluster, 1, "orders", partitions=3)
    leader = partition(cluster, 1).leader
    for pause_ms in (0, DEAD_WITHIN_MS + 100):
        cluster.crash(leader, wiped=pause_ms == 0)
        cluster.run(pause_ms)
        cluster.start(leader)
        assert cluster.run_until(cluster.agreed, 5000)
        for number in cluster.nodes:
            found = partition(cluster, number)
            assert (found.leader, found.in_sync) == (-1, ())
    assert sorted(at.leader for at in _orders(cluster)) == sorted({-1, 1, 2, 3} - {leader})


def test_a_broker_that_is_ended_while_it_joins_for_the_first_time_is_new_once_more() -> None:
    cluster = agreed(3)
    created(cluster, 1, "orders", partitions=1)
    leader = partition(cluster, 1).leader
    cluster.crash(leader, wiped=True)
    cluster.start(leader)
    cluster.run(10)
    assert machine(cluster, leader).phase is Phase.JOINING
    cluster.crash(leader)
    cluster.start(leader)
    assert cluster.run_until(cluster.agreed, 5000)
    assert partition(cluster, leader).leader == -1


def test_a_new_broker_leads_what_is_made_from_then_on() -> None:
    cluster = agreed(3)
    cluster.crash(2, wiped=True)
    cluster.start(2)
    assert cluster.run_until(cluster.agreed, 5000)
    created(cluster, 1, "orders", partitions=3)
    assert {at.leader for at in _orders(cluster)} == {1, 2, 3}


def test_who_was_away_is_sure_when_a_peer_has_its_tables_and_not_by_what_was_said_before() -> None:
    cluster = agreed(3)
    created(cluster, 1, "orders", partitions=1)
    sleeper = machine(cluster, 3)
    stale = forged(cluster, 1, Here(sleeper.table.hash))
    cluster.split([[1, 2], [3]])
    token = cluster.token()
    cluster.do(1, DeleteTopic(token, "orders"))
    cluster.run(10)
    heard: list[int] = []
    cluster.observe = lambda node: heard.append(cluster.now_ms) if node.heard else None
    cluster.do(3, Hear())
    cluster.do(3, Received(stale))
    assert not heard, "its tables were the same before it asked"
    assert "orders" in live_topics(sleeper.table)
    cluster.heal()
    assert cluster.run_until(lambda: bool(heard), 5000)
    assert "orders" not in live_topics(sleeper.table)


def test_who_was_away_and_has_nobody_left_to_hear_serves() -> None:
    cluster = agreed(3)
    cluster.crash(1)
    cluster.crash(2)
    cluster.do(3, Hear())
    assert not cluster.nodes[3].heard, "they may live"
    assert cluster.run_until(lambda: cluster.nodes[3].heard > 0, DEAD_WITHIN_MS + 500)


def _orders(cluster: Cluster) -> tuple[Partition, ...]:
    topic = topic_seen(machine(cluster, 1).table, "orders")
    assert topic is not None
    return topic.partitions


def live_topics(table: Table) -> set[str]:
    return {name for name, row in table.topics.items() if not row.deleted}


def test_a_broker_that_returns_with_an_old_table_does_not_lead_by_it() -> None:
    cluster = agreed(3)
    first, second, third = _all_in_sync(cluster)
    cluster.crash(first)
    cluster.run(DEAD_WITHIN_MS + 100)
    cluster.do(second, ChangeInSync(AT, frozenset({second}), partition(cluster, second).epoch))
    cluster.run(100)
    led = partition(cluster, third)
    cluster.start(first)
    assert cluster.run_until(cluster.agreed, 5000)
    assert {partition(cluster, number) for number in (first, second, third)} == {led}


def test_a_restart_of_all_brokers_forgets_nothing() -> None:
    cluster = agreed(3)
    created(cluster, 1, "orders")
    before = dict(machine(cluster, 1).table.topics)
    for number in cluster.nodes:
        cluster.crash(number)
    cluster.start_all()
    assert cluster.run_until(cluster.agreed, 5000)
    assert machine(cluster, 3).table.topics == before


def test_brokers_that_all_said_goodbye_find_each_other_again() -> None:
    """Each has heard that the others left, so by its own table it is alone."""
    cluster = agreed(3)
    created(cluster, 1, "orders")
    before = dict(machine(cluster, 1).table.topics)
    _stop_all(cluster)
    cluster.start_all()
    assert cluster.run_until(cluster.agreed, 5000)
    assert [row.status for row in machine(cluster, 1).table.members.values()] == [Status.ALIVE] * 3
    assert machine(cluster, 3).table.topics == before


def test_brokers_that_said_goodbye_and_start_in_a_split_network_find_each_other_when_it_heals() -> None:
    cluster = agreed(3)
    _stop_all(cluster)
    cluster.split([[1], [2, 3]])
    cluster.start_all()
    cluster.run(2 * SETTINGS.join_ms)
    assert machine(cluster, 1).phase is machine(cluster, 2).phase is Phase.MEMBER
    cluster.heal()
    assert cluster.run_until(cluster.agreed, 2 * SETTINGS.heartbeat_ms + 100)


def test_a_broker_that_starts_alone_waits_for_those_who_left_before_it() -> None:
    """It may not be the one that knows best."""
    cluster = agreed(3)
    _stop_all(cluster)
    cluster.start(1)
    cluster.run(SETTINGS.join_ms - 100)
    assert machine(cluster, 1).phase is Phase.JOINING
    cluster.run(200)
    assert machine(cluster, 1).phase is Phase.MEMBER


def test_a_broker_does_not_wait_for_one_that_left_where_others_say_so_too() -> None:
    cluster = agreed(3)
    _stop(cluster, 3)
    cluster.crash(1)
    cluster.start(1)
    cluster.run(100)
    assert machine(cluster, 1).phase is Phase.MEMBER


def _all_in_sync(cluster: Cluster) -> tuple[int, ...]:
    """The replicas of orders-0, all of which hold what the leader does."""
    created(cluster, 1, "orders", partitions=1)
    at = partition(cluster, 1)
    cluster.do(at.leader, ChangeInSync(AT, frozenset(at.replicas), at.epoch))
    cluster.run(100)
    return at.replicas


def _stop_all(cluster: Cluster) -> None:
    _stop(cluster, *cluster.nodes)


def _stop(cluster: Cluster, *numbers: int) -> None:
    for number in numbers:
        cluster.do(number, Leave(cluster.token()))
    cluster.run(100)
    for number in numbers:
        cluster.crash(number)


def test_a_broker_from_another_address_takes_a_dead_ones_place_and_not_a_live_ones() -> None:
    cluster = agreed(3)
    cluster.nodes[4] = Node(4, address(4, broker_id=2))
    cluster.start(4)
    cluster.run(200)
    assert cluster.nodes[4].refused == "broker id 2 is taken by a live broker at place-2:9001"
    cluster.crash(2)
    cluster.run(DEAD_WITHIN_MS)
    cluster.crash(4)
    cluster.start(4)
    assert cluster.run_until(cluster.agreed, 5000)
    assert machine(cluster, 1).table.members[2].broker == address(4, broker_id=2)


def test_two_halves_with_one_id_each_do_not_fight_for_it_for_ever() -> None:
    cluster = Cluster(5, 3)
    cluster.nodes[6] = Node(6, address(6, broker_id=1))
    cluster.split([[1, 2, 3], [4, 5, 6]])
    cluster.start_all()
    cluster.run(8000)
    assert cluster.nodes[1].member is not None
    assert cluster.nodes[6].member is not None
    cluster.heal()
    cluster.run(20_000)
    assert (cluster.nodes[1].refused is None) + (cluster.nodes[6].refused is None) <= 1
    loser = 1 if cluster.nodes[1].refused else 6
    cluster.crash(loser)
    assert cluster.run_until(cluster.agreed, 10_000)


def test_an_idle_cluster_sends_heartbeats_and_nothing_else() -> None:
    cluster = agreed(4)
    cluster.run(2000)
    cluster.sent.clear()
    cluster.run(10_000)
    assert set(cluster.sent) == {"heartbeat", "here"}


def test_in_a_crowd_a_broker_speaks_to_a_few_and_all_agree_all_the_same() -> None:
    cluster = agreed(20, settings=Settings(push_all_max=5, fanout=3))
    cluster.run(3000)
    cluster.sent.clear()
    created(cluster, 1, "orders")
    assert cluster.run_until(cluster.agreed, 2 * SETTINGS.heartbeat_ms)
    cluster.sent.clear()
    cluster.run(SETTINGS.heartbeat_ms * 10)
    assert cluster.sent["heartbeat"][0] <= 20 * 3 * 11


# --- offsets ----------------------------------------------------------------------------------------------


def commit(cluster: Cluster, group: str, offset: int) -> int:
    """The home, which has committed."""
    home = group_succession(group, cluster.nodes)[0]
    token = cluster.token()
    cluster.do(home, Gather(token, group))
    cluster.run_until(lambda: token in cluster.nodes[home].finished, 2000)
    cluster.do(home, Commit(group, {AT: Committed(offset)}, cluster.token()))
    return home


def taken_over(cluster: Cluster, group: str, home: int) -> dict[TopicPartition, Committed]:
    """What the next home of the group answers when the present one has died."""
    heir = group_succession(group, [number for number in cluster.nodes if number != home])[0]
    cluster.crash(home)
    cluster.run(DEAD_WITHIN_MS)
    token = cluster.token()
    cluster.do(heir, Gather(token, group))
    cluster.run_until(lambda: token in cluster.nodes[heir].finished, 2000)
    return machine(cluster, heir).offsets.committed(group)


def test_a_commit_is_on_the_homes_disk_before_anything_is_sent() -> None:
    cluster = agreed(4)
    home = commit(cluster, "readers", 10)
    assert ("offset", "readers", *AT) in cluster.nodes[home].disk
    assert machine(cluster, home).offsets.committed("readers") == {AT: Committed(10)}


def test_the_heir_begins_where_the_group_had_committed_or_earlier() -> None:
    cluster = agreed(4)
    home = commit(cluster, "readers", 10)
    cluster.run(SETTINGS.copy_ms)
    cluster.do(home, Commit("readers", {AT: Committed(20)}))
    cluster.run(SETTINGS.copy_ms + 20)
    cluster.do(home, Commit("readers", {AT: Committed(30)}))
    assert taken_over(cluster, "readers", home) == {AT: Committed(20)}


def test_a_first_commit_is_copied_at_once() -> None:
    cluster = agreed(4)
    home = commit(cluster, "readers", 10)
    cluster.run(10)
    assert taken_over(cluster, "readers", home) == {AT: Committed(10)}


def test_a_copy_that_was_lost_is_sent_again() -> None:
    cluster = agreed(4)
    cluster.conditions.dropped = 1.0
    home = commit(cluster, "readers", 10)
    cluster.heal()
    cluster.run(SETTINGS.timeout_ms + 2 * SETTINGS.copy_ms)
    assert taken_over(cluster, "readers", home) == {AT: Committed(10)}


def test_a_copy_counts_as_kept_when_the_answer_is_to_it_and_to_no_other() -> None:
    cluster = agreed(4)
    home = commit(cluster, "readers", 10)
    cluster.run(2 * SETTINGS.copy_ms)
    commit(cluster, "readers", 20)
    cluster.conditions.dropped = 1.0
    cluster.run(2 * SETTINGS.copy_ms)
    for other in cluster.nodes.keys() - {home}:
        told(cluster, home, forged(cluster, other, Kept(token=1_000), sequence=0))
    cluster.heal()
    cluster.run(SETTINGS.timeout_ms + 2 * SETTINGS.copy_ms)
    assert taken_over(cluster, "readers", home) == {AT: Committed(20)}


def test_a_group_follows_its_home_when_a_broker_is_added() -> None:
    cluster = agreed(3)
    group = next(f"g{n}" for n in range(100) if group_succession(f"g{n}", [1, 2, 3, 4])[0] == 4)
    commit(cluster, group, 10)
    cluster.nodes[4] = Node(4, address(4))
    cluster.start(4)
    cluster.run(1000)
    assert machine(cluster, 4).offsets.committed(group) == {AT: Committed(10)}


def test_a_topic_that_is_made_again_has_no_old_offsets() -> None:
    cluster = agreed(3)
    created(cluster, 1, "orders")
    home = commit(cluster, "readers", 10)
    cluster.run(500)
    token = cluster.token()
    cluster.do(1, DeleteTopic(token, "orders"))
    cluster.run(100)
    created(cluster, 2, "orders")
    cluster.run(1000)
    assert machine(cluster, home).offsets.committed("readers") == {}
