"""Over gRPC as on the Kafka wire: a leadership that was answered is confirmed when the request has its turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from brokers.log.config import FsyncPolicy, LogConfig
from brokers.log.files import OS_FILES, Files
from brokers.metrics import Metrics
from brokers.replication.replica import Replica
from brokers.rpc import brokerlab_pb2 as pb
from brokers.rpc.data import DataService
from coordinators.api import Standing
from coordinators.model import Partition, TopicPartition
from coordinators.waits.look_ups import SeparateLookUps
from tests.contract.backend import addressed, asynchronous
from tests.contract.memory import MemoryCluster, MemoryCoordinator
from tests.unit.brokers.listeners.harness import until
from tests.unit.brokers.log.slow_files import SlowFiles
from tests.unit.brokers.replication.held import found, holding

CONTEXT: Any = None
OTHER = 2


class HeldBack(MemoryCoordinator):
    """Looks each leader up while `looks_up`; the answer is the one of its release. `tenure` is what it rests on."""

    looks_up = True
    leads = True
    stopped = False
    tenure = 0

    def __init__(self) -> None:
        super().__init__(addressed(1), MemoryCluster(), look_ups=SeparateLookUps)
        self.asked: list[asyncio.Future[Partition]] = []

    @property
    def standing(self) -> Standing:
        return Standing(self.tenure, 0)

    def serves(self) -> bool:
        return not self.stopped

    def release(self, number: int) -> None:
        self.asked[number].set_result(self._answer())

    def _answer(self) -> Partition:
        partition = self.view().topics["t"].partitions[0]
        return partition if self.leads else replace(partition, leader=OTHER, epoch=1)

    def _known_leader(self, at: TopicPartition) -> Partition | None:  # type: ignore[override] # as the contract allows
        return None if self.looks_up else self._answer()

    async def _find_leader(self, at: TopicPartition) -> Partition:
        self.asked.append(asyncio.get_running_loop().create_future())
        return await self.asked[-1]


class Served(NamedTuple):
    service: DataService
    coordinator: HeldBack
    held: Replica


@asynccontextmanager
async def served(
    folder: Path,
    config: LogConfig = LogConfig(),  # noqa: B008 # frozen
    files: Files = OS_FILES,
) -> AsyncIterator[Served]:
    coordinator = HeldBack()
    await coordinator.start()
    await coordinator.create_topic("t", 1, 1)
    async with holding(folder, coordinator.view(), coordinator.me.id, config, files) as store:
        yield Served(DataService(store, coordinator, Metrics(), 1_000_000), coordinator, found(store, "t"))
    await coordinator.stop()


def produce(value: bytes) -> pb.ProduceRequest:
    return pb.ProduceRequest(topic="t", acks=1, records=[pb.Record(value=value)])


async def stream(*values: bytes) -> AsyncIterator[pb.ProduceRequest]:
    for value in values:
        yield produce(value)


async def codes(answers: AsyncIterator[pb.ProduceResponse]) -> list[pb.ErrorCode.ValueType]:
    return [answer.error.code async for answer in answers]


@asynchronous
async def test_a_look_up_that_waited_behind_another_request_is_made_again_where_the_leadership_may_have_passed(
    tmp_path: Path,
) -> None:
    async with served(tmp_path) as one:
        answering = asyncio.ensure_future(codes(one.service.ProduceStream(stream(b"first", b"second"), CONTEXT)))
        await until(lambda: len(one.coordinator.asked) == 2)
        one.coordinator.release(1)
        one.coordinator.tenure += 1  # as after another session, in which another may have been elected
        one.coordinator.leads = False
        one.coordinator.release(0)
        await until(lambda: len(one.coordinator.asked) == 3 or answering.done())
        one.coordinator.release(2)
        await until(lambda: len(one.coordinator.asked) == 4 or answering.done())
        one.coordinator.release(3)
        assert await answering == [pb.NOT_LEADER] * 2
        assert one.held.log.end_offset == 0, "nothing is appended by the answer of before"


@asynchronous
async def test_a_process_that_was_stopped_between_look_and_append_appends_nothing(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        one.coordinator.looks_up, one.coordinator.stopped = False, True
        refused = await one.service.Produce(produce(b"v"), CONTEXT)
        assert (refused.error.code, refused.error.definite) == (pb.COORDINATOR_UNAVAILABLE, True)
        assert one.held.log.end_offset == 0
        one.coordinator.stopped = False
        assert (await one.service.Produce(produce(b"v"), CONTEXT)).base_offset == 0


@asynchronous
async def test_a_fetch_that_waited_until_another_leads_gives_nothing(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        one.coordinator.looks_up = False
        request = pb.FetchRequest(topic="t", wait_max_ms=20_000)
        fetching = asyncio.ensure_future(one.service.Fetch(request, CONTEXT))
        await until(lambda: one.held.waiters)
        assert (await one.service.Produce(produce(b"the last as leader"), CONTEXT)).base_offset == 0
        one.coordinator.leads = False
        fetched = await fetching
        assert (fetched.error.code, list(fetched.records)) == (pb.NOT_LEADER, [])


@asynchronous
async def test_a_leadership_that_ends_ends_the_wait_for_its_acknowledgements_and_nobody_knows_whether_they_are_kept(
    tmp_path: Path,
) -> None:
    disk = SlowFiles(lambda call, _: call == "fdatasync")
    async with served(tmp_path, LogConfig(fsync=FsyncPolicy.ALWAYS), disk) as one:
        one.coordinator.looks_up = False
        producing = asyncio.ensure_future(one.service.Produce(produce(b"v"), CONTEXT))
        await asyncio.to_thread(disk.reached.acquire)
        one.coordinator.leads = False
        refused = await one.service.Produce(produce(b"of who asks next, and hears of it"), CONTEXT)
        ended = await producing
        disk.let_go()
        assert (refused.error.code, refused.error.definite) == (pb.NOT_LEADER, True)
        assert (ended.error.code, ended.error.definite) == (pb.NOT_LEADER, False)
        assert one.held.log.end_offset == 1
