"""Commits of one partition each go side by side on a connection; what depends on them waits."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Mapping
from pathlib import Path

import pytest

from brokers.wire.apis.metadata import MetadataRequest
from brokers.wire.apis.offsets import OffsetCommitPartition, OffsetCommitRequest, OffsetCommitTopic, OffsetFetchRequest
from brokers.wire.apis.table import ApiKey
from coordinators.errors import JournalFailed, Unavailable
from coordinators.model import Committed, TopicPartition
from coordinators.offsets import OffsetStore
from coordinators.registry import CoordinatorSetup
from coordinators.static.coordinator import StaticCoordinator
from tests.integration.kafka.raw import batch, fetch_request, produce_request, request
from tests.unit.brokers.listeners.harness import Client, Harness, listening, run, turn, until

GROUP = "readers"
NONE, OUT_OF_RANGE, UNKNOWN_TOPIC, NOT_AVAILABLE = 0, 1, 3, 15


class HoldsCommits(StaticCoordinator):
    """Each commit waits for the test, while it `holds` them."""

    def __init__(self, setup: CoordinatorSetup) -> None:
        super().__init__(setup)
        self.holds = True
        self.begun: list[tuple[int, asyncio.Future[None]]] = []

    async def start(self) -> None:
        await super().start()
        self._kept = Held(self._kept, self)

    def offsets(self) -> list[int]:
        return [offset for offset, _ in self.begun]


class Held:
    def __init__(self, kept: OffsetStore, coordinator: HoldsCommits) -> None:
        self._kept = kept
        self._coordinator = coordinator
        self.committed, self.stamps, self.stamp, self.forget = kept.committed, kept.stamps, kept.stamp, kept.forget

    async def begin_commit(self, group: str, offsets: Mapping[TopicPartition, Committed]) -> None:
        held: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._coordinator.begun.append((next(iter(offsets.values())).offset, held))
        if self._coordinator.holds:
            await held
        self._kept.begin_commit(group, offsets)


def commits_of(harness: Harness) -> HoldsCommits:
    assert isinstance(harness.coordinator, HoldsCommits)
    return harness.coordinator


def commit(offset: int, *partitions: int, topic: str = "two", correlation_id: int | None = None) -> bytes:
    parts = tuple(
        OffsetCommitPartition(partition_index=number, committed_offset=offset, committed_metadata=None)
        for number in partitions or (0,)
    )
    message = OffsetCommitRequest(
        group_id=GROUP, generation_id=-1, member_id="", topics=(OffsetCommitTopic(name=topic, partitions=parts),)
    )
    return request(ApiKey.OFFSET_COMMIT, 7, message, offset if correlation_id is None else correlation_id)


async def correlations(client: Client, count: int) -> list[int]:
    return [struct.unpack_from(">i", answer)[0] for answer in await client.receive_all(count)]


def test_commits_of_one_partition_are_begun_in_order_before_any_is_over_and_answered_in_order(tmp_path: Path) -> None:
    async def work() -> None:
        async with listening(tmp_path, kind=HoldsCommits) as harness:
            commits, client = commits_of(harness), await harness.connect()
            client.send(*(commit(offset, offset % 2) for offset in range(5)))
            await until(lambda: len(commits.begun) == 5)
            assert commits.offsets() == [0, 1, 2, 3, 4]
            for number in (3, 1, 4, 2, 0):
                commits.begun[number][1].set_result(None)
                await turn()
            assert await correlations(client, 5) == [0, 1, 2, 3, 4]

    run(work())


@pytest.mark.parametrize(
    "dependent",
    [
        request(ApiKey.OFFSET_FETCH, 5, OffsetFetchRequest(group_id=GROUP, topics=None), 9),
        request(ApiKey.METADATA, 5, MetadataRequest(topics=()), 9),
        commit(7, 0, 1, correlation_id=9),
    ],
    ids=["a question for them", "any other", "a commit of several"],
)
def test_what_follows_commits_waits_until_all_are_over(tmp_path: Path, dependent: bytes) -> None:
    async def work() -> None:
        async with listening(tmp_path, kind=HoldsCommits) as harness:
            commits, client = commits_of(harness), await harness.connect()
            client.send(commit(1), commit(2), dependent, commit(3))
            await until(lambda: len(commits.begun) == 2)
            commits.begun[0][1].set_result(None)
            assert await correlations(client, 1) == [1]
            for _ in range(5):
                await turn()
            assert commits.offsets() == [1, 2]
            assert harness.metrics.kafka.requests == {"OFFSET_COMMIT": 2}
            commits.holds = False
            commits.begun[1][1].set_result(None)
            assert await correlations(client, 3) == [2, 9, 3]
            assert sum(harness.metrics.kafka.requests.values()) == 4

    run(work())


def test_messages_pass_beside_commits_and_are_answered_after_them(tmp_path: Path) -> None:
    async def work() -> None:
        async with listening(tmp_path, kind=HoldsCommits) as harness:
            commits, client = commits_of(harness), await harness.connect()
            client.send(commit(1), produce_request("one", batch(b"v"), correlation_id=2))
            client.send(fetch_request("one", 0, correlation_id=3))
            await until(lambda: harness.metrics.fetch.requests == 1 and commits.begun)
            assert harness.metrics.produce.requests == 1
            commits.begun[0][1].set_result(None)
            assert await correlations(client, 3) == [1, 2, 3]

    run(work())


def test_what_is_kept_at_once_is_answered_at_once(tmp_path: Path) -> None:
    """Where the offsets are this broker's own, a commit needs no task; a request that depends on it sees it."""

    async def work() -> None:
        async with listening(tmp_path) as harness:
            client = await harness.connect()
            question = request(ApiKey.OFFSET_FETCH, 5, OffsetFetchRequest(group_id=GROUP, topics=None), 9)
            client.send(commit(1), commit(2, 1), commit(3), question)
            assert await correlations(client, 4) == [1, 2, 3, 9]
            assert harness.coordinator.meter.calls()["commit"] == 3
            kept = await harness.coordinator.committed_offsets(GROUP)
            assert kept == {TopicPartition("two", 0): Committed(3), TopicPartition("two", 1): Committed(2)}

    run(work())


def test_a_refusal_is_its_own_commits(tmp_path: Path) -> None:
    """Though the commits before and after it have all but the partition in common with it."""

    async def work() -> None:
        async with listening(tmp_path) as harness:
            client = await harness.connect()
            client.send(commit(1), commit(2, 9), commit(-3, correlation_id=3), commit(4, topic="none"), commit(5))
            errors = [struct.unpack(">h", answer[-2:])[0] for answer in await client.receive_all(5)]
            assert errors == [NONE, UNKNOWN_TOPIC, OUT_OF_RANGE, UNKNOWN_TOPIC, NONE]
            assert await harness.coordinator.committed_offsets(GROUP) == {TopicPartition("two", 0): Committed(5)}

    run(work())


def test_a_commit_that_fails_is_answered_with_its_own_error(tmp_path: Path) -> None:
    async def work() -> None:
        async with listening(tmp_path, kind=HoldsCommits) as harness:
            commits, client = commits_of(harness), await harness.connect()
            client.send(commit(1), commit(2))
            await until(lambda: len(commits.begun) == 2)
            commits.begun[0][1].set_exception(Unavailable("away"))
            commits.begun[1][1].set_result(None)
            errors = [struct.unpack(">h", answer[-2:])[0] for answer in await client.receive_all(2)]
            assert errors == [NOT_AVAILABLE, NONE]

    run(work())


def test_a_commit_that_the_disk_refuses_is_answered_with_an_error_after_which_clients_try_again(tmp_path: Path) -> None:
    async def work() -> None:
        async with listening(tmp_path, kind=HoldsCommits) as harness:
            commits, client = commits_of(harness), await harness.connect()
            client.send(commit(1), commit(2, 0, 1))
            await until(lambda: len(commits.begun) == 1)
            commits.begun[0][1].set_exception(JournalFailed("no room"))
            await until(lambda: len(commits.begun) == 2)
            commits.begun[1][1].set_exception(JournalFailed("no room"))
            errors = [struct.unpack(">h", answer[-2:])[0] for answer in await client.receive_all(2)]
            assert errors == [NOT_AVAILABLE, NOT_AVAILABLE]
            assert await commits.committed_offsets(GROUP) == {}

    run(work())


def test_commits_of_a_client_that_has_left_are_kept_and_it_is_forgotten(tmp_path: Path) -> None:
    async def work() -> None:
        async with listening(tmp_path, kind=HoldsCommits) as harness:
            commits, client = commits_of(harness), await harness.connect()
            client.send(commit(1), commit(2))
            await until(lambda: len(commits.begun) == 2)
            client.writer.close()
            for _, held in commits.begun:
                held.set_result(None)
            await until(lambda: not harness.listener._connections._open)
            assert await commits.committed_offsets(GROUP) == {TopicPartition("two", 0): Committed(2)}

    run(work())
