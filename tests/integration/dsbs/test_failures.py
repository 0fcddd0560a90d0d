"""Real brokers die in the middle of their work, and their disks refuse."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from brokers.rpc import brokerlab_pb2 as pb
from tests.integration.dsbs.cluster import Member, brokers
from tests.integration.processes.running import eventually, fill, small_disk


def test_nobody_leads_without_the_data_of_a_leader_that_is_killed_and_it_is_there_when_that_returns(
    tmp_path: Path,
) -> None:
    with brokers(tmp_path, 4) as cluster:
        made = cluster.members[1].create("orders", partitions=4, replicas=3)
        before = {at.number: at for at in made.topic.partitions}
        assert all(at.in_sync == [at.leader] for at in before.values())
        sent = {number: [f"{number}-{n}".encode() for n in range(50)] for number in before}
        for number, values in sent.items():
            cluster.produce("orders", number, values)
        (left,) = [number for number, at in before.items() if at.leader == 2]
        killed = cluster.lose(2)
        eventually(lambda: all(one.leader("orders", left) == -1 for one in cluster), "all know that nobody leads")
        for number in before.keys() - {left}:
            assert cluster.values("orders", number) == sent[number]
            assert cluster.members[1].epoch("orders", number) == before[number].epoch
        cluster.start(killed)
        eventually(lambda: all(one.leader("orders", left) == 2 for one in cluster), "all know that it leads again")
        base = cluster.produce("orders", left, [b"after"])
        assert base == 50
        assert cluster.values("orders", left) == [*sent[left], b"after"]
        for broker in cluster:
            assert broker.epoch("orders", left) > before[left].epoch
        cluster.agree()


def test_groups_of_a_broker_that_is_killed_begin_where_they_were_or_earlier_and_never_later(tmp_path: Path) -> None:
    with brokers(tmp_path, 3) as cluster:
        cluster.members[1].create("orders", partitions=1, replicas=3)
        groups = [f"readers-{number}" for number in range(9)]
        homes = {group: cluster.commit(group, "orders", 1) for group in groups}
        assert set(homes.values()) == {1, 2, 3}, "each broker serves some"
        for group in groups:
            for offset in range(2, 12):
                cluster.commit(group, "orders", offset)
        cluster.lose(2)
        eventually(lambda: all(one.live() == {1, 3} for one in cluster), "its death is noticed")
        for group in groups:
            found = cluster.committed(group)
            assert -1 <= found <= 11 if homes[group] == 2 else found == 11, "a group never skips"
        for group in groups:
            cluster.commit(group, "orders", 20)
            assert cluster.committed(group) == 20


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    try:
        with small_disk(tmp_path / "disk") as folder:
            yield folder
    except PermissionError as refused:
        pytest.skip(f"a small file system cannot be mounted here: {refused}")


def test_a_commit_on_a_full_disk_is_refused_and_ends_nobody(tmp_path: Path, disk: Path) -> None:
    with brokers(tmp_path / "cluster", 2) as cluster:
        full = cluster.made(3, data=disk / "data")
        cluster.start(full)
        cluster.members[1].create("orders", partitions=3, replicas=1)
        (led,) = [number for number in range(3) if full.leader("orders", number) == 3]
        cluster.produce("orders", led, [b"before"])
        group = next(f"readers-{number}" for number in range(1000) if full.home(f"readers-{number}") == 3)
        cluster.commit(group, "orders", 7)
        ballast = fill(disk)
        answers = [commit(full, group, 8 + number) for number in range(300)]  # the last page has room for some
        refused = answers.index(pb.STORAGE_FAILED)
        assert set(answers[refused:]) == {pb.STORAGE_FAILED}
        assert cluster.committed(group) == 7 + refused
        assert cluster.values("orders", led) == [b"before"]
        ballast.unlink()
        assert commit(full, group, 500) == pb.OK
        assert full.end(signal.SIGKILL) == -signal.SIGKILL
        cluster.start(cluster.members.pop(3))
        assert cluster.committed(group) == 500
        assert cluster.values("orders", led) == [b"before"]
        assert "Traceback" not in full.log


def commit(member: Member, group: str, offset: int) -> pb.ErrorCode.ValueType:
    places = [pb.PartitionOffset(topic="orders", offset=offset)]
    answer = member.data_stub().CommitOffsets(pb.CommitOffsetsRequest(group=group, offsets=places))
    assert answer.error.definite or answer.error.code == pb.OK
    return answer.error.code


def test_a_broker_whose_tables_cannot_be_written_serves_on_and_takes_changes_when_they_can(
    tmp_path: Path, disk: Path
) -> None:
    with brokers(tmp_path / "cluster", 2) as cluster:
        full = cluster.made(3, data=disk / "data")
        cluster.start(full)
        made = cluster.members[1].create("orders", partitions=3, replicas=2)
        led = next(at.number for at in made.topic.partitions if at.replicas == [3, 1])
        cluster.produce("orders", led, [b"before"])
        ballast = fill(disk)
        names = count()
        eventually(lambda: created(full, next(names)) == pb.STORAGE_FAILED, "its tables find no room")
        cluster.lose(2)
        eventually(lambda: full.live() == {1, 3}, "the death is noticed")
        assert cluster.values("orders", led) == [b"before"]
        ballast.unlink()
        eventually(lambda: created(full, next(names)) == pb.OK, "there is room again")
        cluster.produce("orders", led, [b"after"])
        cluster.agree()
        assert "broker 3: its tables cannot be written to the disk: cannot write tables.journal" in full.log
        eventually(lambda: "broker 3: its tables are written to the disk again" in full.log, "it says so")
        assert "Traceback" not in full.log


def created(member: Member, number: int) -> pb.ErrorCode.ValueType:
    return member.create(f"more-{number}", partitions=1, replicas=1).error.code


def test_a_topic_that_is_made_again_after_its_journals_are_gone_begins_empty(tmp_path: Path) -> None:
    with brokers(tmp_path, 1) as cluster:
        cluster.members[1].create("orders", partitions=1, replicas=1)
        cluster.produce("orders", 0, [b"old"])
        only = cluster.lose(1)
        journals = only.data / "journals"
        journals.rename(only.data / "journals-of-before")
        cluster.start(only)
        assert only.topic("orders") is None
        only.create("orders", partitions=1, replicas=1)
        assert cluster.produce("orders", 0, [b"new"]) == 0
        assert cluster.values("orders", 0) == [b"new"]
        lives = sorted(folder.name for folder in (only.data / "logs" / "orders").iterdir())
        assert lives == ["1.1", "2.1"], "the former one's messages are there"
