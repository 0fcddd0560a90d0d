"""Consumers of the driver `kafka` as members of a group: who comes when changes nothing about how they share it."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from threading import Event, Semaphore

import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from tests.integration.kafka.cluster import Cluster
from tests.unit.workloads.clients.jobs import consume_job
from workloads.clients.drivers.api import ConsumeJob
from workloads.clients.drivers.kafka import Consumer
from workloads.trial.jobs import share as fair

PATIENCE_S = 60


class Runner:
    """What members hear. All that there is has been read when they begin."""

    def __init__(self) -> None:
        self.joined = Semaphore(0)
        self.settled = Event()

    def working(self) -> None:
        """Nobody waits for it."""

    def stopped(self) -> bool:
        return False

    def all_joined(self) -> bool:
        return self.settled.is_set()

    def targets(self) -> Mapping[int, int]:
        return dict.fromkeys(range(10), 0)


def job(cluster: Cluster, topic: str, number: int) -> ConsumeJob:
    changes = {"bootstrap": (cluster.bootstrap,), "topic": topic, "partitions": (), "consumer": number}
    return consume_job(Path(), driver="kafka", group=f"group-{topic}", **changes)


def take_part(member: Consumer, runner: Runner) -> list[int]:
    """Join, and be polled until all have; the partitions that then are this member's."""
    try:
        member.join()
    finally:
        runner.joined.release()
    return list(member.settle(runner))


def joined_one_after_another(members: list[Consumer]) -> list[list[int]]:
    """The partitions of each member, where the first was alone in the group before the others came."""
    runner = Runner()
    with ThreadPoolExecutor(len(members)) as threads:
        try:
            settling = [threads.submit(take_part, members[0], runner)]
            assert runner.joined.acquire(timeout=PATIENCE_S)
            settling += [threads.submit(take_part, member, runner) for member in members[1:]]
            for _ in members[1:]:
                assert runner.joined.acquire(timeout=PATIENCE_S)
        finally:
            runner.settled.set()
        return [member.result(PATIENCE_S) for member in settling]


@pytest.mark.parametrize(("consumers", "partitions"), [(2, 3), (3, 3), (2, 5), (5, 3)])
def test_a_member_that_had_every_partition_gives_up_those_of_members_that_come_later(
    cluster: Cluster, topic: str, consumers: int, partitions: int
) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(PATIENCE_S)
    with ExitStack() as stack:
        members = [stack.enter_context(closing(Consumer(job(cluster, topic, n)))) for n in range(consumers)]
        shares = joined_one_after_another(members)
        assert sorted(number for share in shares for number in share) == list(range(partitions))
        assert sorted(map(len, shares)) == sorted(map(partial(fair, partitions, consumers), range(consumers)))
        seen = [member.run(Runner(), both=False) for member in members]
        assert [part.dry for part in seen] == [bool(share) for share in shares], "who has no partition is never dry"
