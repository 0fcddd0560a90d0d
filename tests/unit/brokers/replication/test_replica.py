"""When a leadership begins, how long it may be believed, and what ends it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from brokers.log.config import LogConfig
from brokers.log.log import Log
from brokers.replication.errors import NotLeader, TooFewInSync
from brokers.replication.replica import Replica, Role
from brokers.wire.batch import RecordToSend, encode_batch, parse_header
from coordinators.errors import Unavailable, UnknownTopic
from coordinators.model import Partition, Topic, TopicPartition, TopicSettings

ME, OTHER = 1, 2
LED = Partition((ME, OTHER), ME, 3, (ME,))
ELSEWHERE = replace(LED, leader=OTHER, epoch=4)


@pytest.fixture
def replica(tmp_path: Path) -> Iterator[Replica]:
    log = Log.open(tmp_path, LogConfig(), now_ms=0)
    yield Replica(TopicPartition("t", 0), log, Topic("t", (LED,), TopicSettings()), ME, fsync_always=False)
    log.close()


def believed() -> bool:
    return True


def append(replica: Replica, partition: Partition) -> list[object]:
    batch = bytearray(encode_batch([RecordToSend(b"v")]))
    return list(replica.append([(batch, parse_header(batch))], replica.lead(partition, believed)))


def test_a_leadership_lasts_while_the_same_is_answered(replica: Replica) -> None:
    leadership = replica.lead(LED, believed)
    shrunk = replace(LED, in_sync=(ME, OTHER))
    assert replica.lead(shrunk, believed) is leadership
    assert leadership.partition is shrunk
    assert (replica.role, replica.epoch, leadership.over) == (Role.LEADER, 3, False)


@pytest.mark.parametrize(
    ("now", "role"),
    [
        (ELSEWHERE, Role.FOLLOWER),
        (replace(ELSEWHERE, replicas=(OTHER,)), Role.NONE),
        (replace(LED, epoch=5), Role.LEADER),
        (replace(LED, leader=OTHER), Role.FOLLOWER),
    ],
)
def test_a_leadership_ends_when_another_or_a_higher_epoch_is_heard_of(
    replica: Replica, now: Partition, role: Role
) -> None:
    leadership, woken = replica.lead(LED, believed), []
    replica.waiters.add(lambda: woken.append(True))
    replica.hear(now)
    assert (leadership.over, replica.leadership, replica.role, woken) == (True, None, role, [True])
    with pytest.raises(NotLeader, match="epoch 3 no more"):
        leadership.check()


def test_a_lower_epoch_than_one_that_was_heard_is_never_believed(replica: Replica) -> None:
    replica.hear(ELSEWHERE)
    with pytest.raises(NotLeader):
        replica.lead(LED, believed)
    again = replace(LED, epoch=5)
    leadership = replica.lead(again, believed)
    replica.hear(ELSEWHERE)
    assert not leadership.over


def test_nothing_is_appended_behind_the_deadline(replica: Replica) -> None:
    leadership = replica.lead(LED, lambda: False)
    batch = bytearray(encode_batch([RecordToSend(b"v")]))
    with pytest.raises(Unavailable):
        replica.append([(batch, parse_header(batch))], leadership)
    assert replica.readable_end == 0


def test_a_log_that_holds_a_later_epoch_ends_the_leadership(replica: Replica) -> None:
    later = Replica(replica.at, replica.log, Topic("t", (replace(LED, epoch=9),)), ME, fsync_always=False)
    assert append(later, replace(LED, epoch=9)) == [0]
    leadership = replica.lead(LED, believed)
    with pytest.raises(NotLeader, match="epoch 3 is over"):
        append(replica, LED)
    assert leadership.over


def test_a_deleted_partition_ends_its_leadership_and_says_that_it_is_gone(replica: Replica) -> None:
    leadership = replica.lead(LED, believed)
    replica.abandon()
    with pytest.raises(UnknownTopic):
        leadership.check_goes_on()


def test_too_few_in_sync_are_refused_by_the_topics_own_bound_or_the_brokers(replica: Replica) -> None:
    leadership = replica.lead(LED, believed)
    leadership.check_in_sync(1)
    with pytest.raises(TooFewInSync):
        leadership.check_in_sync(2)


def test_who_waits_for_what_is_on_the_disk_by_then_waits_no_longer_than_that(tmp_path: Path) -> None:
    async def work() -> None:
        log = Log.open(tmp_path, LogConfig(), now_ms=0)
        durable = Replica(TopicPartition("t", 0), log, Topic("t", (LED,)), ME, fsync_always=True)
        append(durable, LED)
        first = durable.acknowledged()
        append(durable, LED)
        second = durable.acknowledged(timeout_ms=60_000)
        assert first is not None
        assert second is not None
        await asyncio.gather(first, second)
        assert log.syncing.synced_offset == 2
        await durable.acknowledgements.close()
        log.close()

    asyncio.run(work())
