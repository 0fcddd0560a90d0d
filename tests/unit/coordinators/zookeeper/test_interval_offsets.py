"""Offsets that are written to ZooKeeper at an interval: what a flush or a read that takes long makes of newer ones."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from coordinators.model import Committed, TopicPartition
from coordinators.zookeeper.offsets import IntervalOffsets
from coordinators.zookeeper.requests import IN_FLIGHT_MAX, Node, Operation, Write
from coordinators.zookeeper.session import Session
from coordinators.zookeeper.znodes import Tree, encode_committed
from tests.contract.backend import asynchronous, eventually

TREE = Tree("")
FILLERS = [TopicPartition("orders", number) for number in range(IN_FLIGHT_MAX)]
LAST = TopicPartition("orders", IN_FLIGHT_MAX)


class Slow:
    """A ZooKeeper that has all rows, and whose answers the test can hold back."""

    def __init__(self) -> None:
        self.rows: dict[str, bytes] = {}
        self.under_way = 0
        self.answers = asyncio.Event()
        self.answers.set()
        self.reading = 0
        self.reads = asyncio.Event()
        self.reads.set()

    async def commit(self, kind: str, *operations: Operation) -> None:
        for operation in operations:
            assert isinstance(operation, Write)
            self.rows[operation.path] = operation.data
        self.under_way += 1
        await self.answers.wait()
        self.under_way -= 1

    async def children(self, kind: str, path: str) -> list[str]:
        below = {row.removeprefix(f"{path}/") for row in self.rows if row.startswith(f"{path}/")}
        return sorted({name.partition("/")[0] for name in below})

    async def get(self, kind: str, path: str) -> Node:
        data = self.rows[path]
        self.reading += 1
        await self.reads.wait()
        return Node(data, 0, 0, 0, 0)


class Kept:
    def __init__(self) -> None:
        self.zookeeper = Slow()
        self.serves = True
        self.offsets = IntervalOffsets(
            cast("Session", self.zookeeper), TREE, lambda _: True, self._checked, lambda _: self.serves
        )

    async def _checked(self, at: TopicPartition) -> None:
        """It exists."""

    async def commit(self, at: TopicPartition, offset: int) -> None:
        rest = self.offsets.begin_commit("group", {at: Committed(offset)})
        if rest is not None:
            await rest

    def written(self, at: TopicPartition) -> bytes:
        return self.zookeeper.rows[TREE.offset("group", at)]

    async def flushing(self) -> asyncio.Task[None]:
        """A flush of which all but `LAST` has left, and nothing been answered."""
        for offset in (1, 2):
            for at in (*FILLERS, LAST):
                await self.commit(at, offset)
        self.zookeeper.answers.clear()
        flush = asyncio.create_task(self.offsets.flush())
        await eventually(lambda: self.zookeeper.under_way == IN_FLIGHT_MAX)
        return flush


@pytest.mark.parametrize("passes_back", [False, True])
@asynchronous
async def test_a_flush_that_takes_long_puts_nothing_old_over_what_was_written_meanwhile(passes_back: bool) -> None:
    kept = Kept()
    flush = await kept.flushing()
    kept.serves = False
    kept.offsets.groups_unwritten()
    newer = encode_committed(Committed(3))
    if passes_back:
        kept.serves = True
        commit = asyncio.create_task(kept.commit(LAST, 3))
        await eventually(lambda: kept.written(LAST) == newer)
    else:
        kept.zookeeper.rows[TREE.offset("group", LAST)] = newer  # by the broker that serves the group now
        commit = asyncio.create_task(asyncio.sleep(0))
    kept.zookeeper.answers.set()
    await asyncio.gather(flush, commit)
    assert kept.written(LAST) == newer


@asynchronous
async def test_a_read_that_takes_long_misses_nothing_that_a_flush_writes_meanwhile() -> None:
    kept = Kept()
    for offset in (1, 2):
        await kept.commit(LAST, offset)
    kept.zookeeper.reads.clear()
    read = asyncio.create_task(kept.offsets.committed("group"))
    await eventually(lambda: kept.zookeeper.reading == 1)
    await kept.offsets.flush()
    assert kept.written(LAST) == encode_committed(Committed(2))
    kept.zookeeper.reads.set()
    assert await read == {LAST: Committed(2)}


@asynchronous
async def test_what_waited_when_its_group_passed_on_is_not_told_when_the_group_comes_back() -> None:
    kept = Kept()
    for offset in (1, 2):
        await kept.commit(LAST, offset)
    kept.serves = False
    await kept.offsets.flush()
    kept.zookeeper.rows[TREE.offset("group", LAST)] = encode_committed(Committed(3))  # by the group's other home
    kept.serves = True
    assert await kept.offsets.committed("group") == {LAST: Committed(3)}
    await kept.offsets.flush()
    assert kept.written(LAST) == encode_committed(Committed(3))
