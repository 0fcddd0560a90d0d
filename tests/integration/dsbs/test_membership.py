"""Real brokers come, go, are replaced and restarted; topics made through any of them serve through all."""

from __future__ import annotations

import shutil
import signal
from itertools import permutations
from pathlib import Path

from brokers.rpc import brokerlab_pb2 as pb
from tests.integration.dsbs.cluster import brokers
from tests.integration.processes.running import eventually


def test_a_topic_made_through_any_broker_serves_through_every_other_at_once(tmp_path: Path) -> None:
    """Nothing here waits: when the creation has returned, all of them know."""
    with brokers(tmp_path, 5) as cluster:
        for maker in cluster:
            name = f"made-by-{maker.id}"
            made = maker.create(name, partitions=5)
            assert set(made.known_to) == cluster.members.keys()
            for other in cluster:
                known = other.topic(name)
                assert known is not None
                assert [at.leader for at in known.partitions] == [at.leader for at in made.topic.partitions]
            for at in made.topic.partitions:
                request = pb.ProduceRequest(topic=name, partition=at.number, acks=1, records=[pb.Record(value=b"x")])
                for broker in cluster:
                    answer = broker.data_stub().Produce(request)
                    assert answer.error.code == (pb.OK if broker.id == at.leader else pb.NOT_LEADER)
                assert cluster.values(name, at.number) == [b"x"]
        assert len({broker.tables().hash for broker in cluster}) == 1


def test_a_broker_that_is_added_is_given_partitions_which_nobody_leads_when_it_is_removed(
    tmp_path: Path,
) -> None:
    with brokers(tmp_path, 3) as cluster:
        cluster.members[1].create("before")
        cluster.start(cluster.made(4))
        assert cluster.members[4].leader("before", 0) == cluster.members[2].leader("before", 0) != -1
        made = cluster.members[4].create("after", partitions=4)
        assert set(made.known_to) == {1, 2, 3, 4}
        (led,) = [at for at in made.topic.partitions if at.leader == 4]
        cluster.produce("after", led.number, [b"x"])
        assert cluster.members.pop(4).end() == 0
        for broker in cluster:  # it has told them before it ended, and nobody else holds what it led
            assert broker.leader("after", led.number) == -1
        cluster.agree()
        assert {row.broker: row.status for row in cluster.members[1].tables().brokers}[4] == "left"


def test_a_dead_broker_is_replaced_by_another_machine_with_its_id(tmp_path: Path) -> None:
    with brokers(tmp_path, 3) as cluster:
        cluster.members[1].create("orders", partitions=3, replicas=3)
        cluster.lose(3)
        eventually(lambda: all(one.live() == {1, 2} for one in cluster), "its death is noticed")
        cluster.start(cluster.made(3, elsewhere="-new"))
        assert cluster.members[3].topic("orders") is not None
        assert cluster.members[3].leader("orders", 0) == cluster.members[1].leader("orders", 0)
        cluster.members[3].create("clicks", partitions=3)
        cluster.produce("clicks", 0, [b"x"])


def test_a_broker_that_is_killed_and_started_again_is_the_same_with_all_it_had(tmp_path: Path) -> None:
    with brokers(tmp_path, 3) as cluster:
        made = cluster.members[1].create("orders", partitions=3, replicas=1)
        (led,) = [at for at in made.topic.partitions if at.leader == 2]
        cluster.produce("orders", led.number, [b"before"])
        cluster.start(cluster.lose(2))
        eventually(lambda: cluster.members[1].leader("orders", led.number) == 2, "it leads again")
        cluster.produce("orders", led.number, [b"after"])
        assert cluster.values("orders", led.number) == [b"before", b"after"]
        assert cluster.members[1].epoch("orders", led.number) > led.epoch


def test_of_two_brokers_with_one_id_the_second_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    with brokers(tmp_path, 3) as cluster:
        cluster.members[1].create("orders", partitions=3)
        first = cluster.members[2]
        second = cluster.made(2, elsewhere="-again")
        second.spawn()
        assert second.wait() == 1
        assert f"broker: broker id 2 is taken by a live broker at 127.0.0.1:{first.rpc_port}\n" in second.log
        cluster.agree()
        assert cluster.members[1].leader("orders", 0) == first.leader("orders", 0)
        for number in range(3):
            cluster.produce("orders", number, [b"x"])


def test_after_a_restart_of_all_brokers_nothing_is_forgotten(tmp_path: Path) -> None:
    with brokers(tmp_path, 3) as cluster:
        cluster.members[1].create("orders", partitions=3, replicas=2)
        cluster.members[2].create("gone")
        cluster.members[3].admin_stub().DeleteTopic(pb.DeleteTopicRequest(name="gone"))
        for number in range(3):
            cluster.produce("orders", number, [b"a", b"b"])
        cluster.commit("readers", "orders", 2)
        before = cluster.members[1].topic("orders")
        assert before is not None
        all_of_them = [cluster.lose(number) for number in (1, 2, 3)]
        cluster.start(*all_of_them)
        for broker in cluster:
            assert broker.topic("gone") is None
            after = broker.topic("orders")
            assert after is not None
            assert [at.replicas for at in after.partitions] == [at.replicas for at in before.partitions]
            assert [at.leader for at in after.partitions] == [at.leader for at in before.partitions]
        for number in range(3):
            assert cluster.values("orders", number) == [b"a", b"b"]
            cluster.produce("orders", number, [b"c"])
        assert cluster.committed("readers") == 2


def test_an_orderly_stop_of_all_brokers_in_any_order_loses_nothing(tmp_path: Path) -> None:
    """Nobody leads what it does not hold, however many replicas a topic has."""
    with brokers(tmp_path, 3) as cluster:
        cluster.members[1].create("orders", partitions=3, replicas=3)
        sent: dict[int, list[bytes]] = {number: [] for number in range(3)}
        for order in permutations((1, 2, 3)):
            for number, values in sent.items():
                more = [b"%d of %r" % (message, order) for message in range(10)]
                cluster.produce("orders", number, more)
                values.extend(more)
            stopped = [cluster.members.pop(number) for number in order]
            for member in stopped:
                assert member.end() == 0
            cluster.start(*stopped)
            eventually(lambda: -1 not in cluster.members[1].leaders("orders"), "all are led")
            for number, values in sent.items():
                assert cluster.values("orders", number) == values, f"after a stop in the order {order}"


def test_a_leader_that_lost_its_disk_does_not_lead_what_it_held_and_says_so(tmp_path: Path) -> None:
    with brokers(tmp_path, 3) as cluster:
        made = cluster.members[1].create("orders", partitions=3, replicas=3)
        (lost,) = [at.number for at in made.topic.partitions if at.leader == 3]
        for number in range(3):
            cluster.produce("orders", number, [b"x"])
        broken = cluster.lose(3)
        shutil.rmtree(broken.data)
        for _ in range(2):  # nor does it when it is started once more
            cluster.start(broken)
            eventually(lambda: all(one.leader("orders", lost) == -1 for one in cluster), "nobody leads what is gone")
            answer = broken.data_stub().Produce(
                pb.ProduceRequest(topic="orders", partition=lost, acks=-1, records=[pb.Record(value=b"y")])
            )
            assert answer.error.code == pb.NOT_LEADER
            for number in {0, 1, 2} - {lost}:
                assert cluster.values("orders", number) == [b"x"]
            cluster.lose(3)
        assert f"broker 3 has lost its disk, and with it what was in 1 partitions: orders-{lost}; nobody" in broken.log
        cluster.start(broken)
        cluster.members[1].admin_stub().DeleteTopic(pb.DeleteTopicRequest(name="orders"))
        cluster.members[1].create("orders", partitions=3, replicas=3)
        cluster.produce("orders", lost, [b"z"])
        assert cluster.values("orders", lost) == [b"z"]


def test_a_stopped_broker_that_was_replaced_ends_itself_and_says_why(tmp_path: Path) -> None:
    """It was taken for dead, and another machine has its id by now: it must not stay and refuse everything."""
    with brokers(tmp_path, 3) as cluster:
        paused = cluster.members.pop(3)
        assert paused.process is not None
        paused.process.send_signal(signal.SIGSTOP)
        eventually(lambda: all(one.live() == {1, 2} for one in cluster), "its death is noticed")
        replacement = cluster.made(3, elsewhere="-new")
        cluster.start(replacement)
        paused.process.send_signal(signal.SIGCONT)
        assert paused.wait() == 1
        assert f"broker: broker id 3 is taken by a live broker at 127.0.0.1:{replacement.rpc_port}\n" in paused.log
        cluster.agree()
