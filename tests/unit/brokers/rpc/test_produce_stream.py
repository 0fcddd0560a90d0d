"""The produce stream where each request's leader is looked up elsewhere: order, bounds, and what is left of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from brokers.metrics import Metrics
from brokers.replication.store import Store
from brokers.rpc import brokerlab_pb2 as pb
from brokers.rpc.data import PIPELINED_MAX, TURN_RECORDS_MAX, DataService
from coordinators.api import FOR_EVER, Coordinator, Standing
from coordinators.errors import OutcomeUnknown, Unavailable, UnknownTopic
from coordinators.model import Broker, Partition, TopicPartition

ELSEWHERE = Partition(replicas=(2,), leader=2, epoch=0, in_sync=(2,))
CONTEXT: Any = None


class Lookups:
    """A coordinator that is asked who leads, and answers when the test says so."""

    me = Broker(1, "127.0.0.1", 1, 2)
    standing = FOR_EVER

    def confirmed(self, at: TopicPartition, found: Partition, standing: Standing) -> Partition:
        return found

    def serves(self) -> bool:
        return True

    def __init__(self) -> None:
        self.asked: list[asyncio.Future[Partition]] = []

    def known_leader(self, at: TopicPartition) -> Partition | None:
        if at.topic == "nosuch":
            raise UnknownTopic("nosuch")
        return None

    def leader(self, at: TopicPartition) -> Awaitable[Partition]:
        answer: asyncio.Future[Partition] = asyncio.get_running_loop().create_future()
        self.asked.append(answer)
        return answer


class NothingHeld:
    def partition(self, topic: str, number: int) -> None:
        return None

    def opening(self, at: TopicPartition) -> None:
        return None


@pytest.fixture
def lookups() -> Lookups:
    return Lookups()


@pytest.fixture
def service(lookups: Lookups) -> DataService:
    return DataService(cast("Store", NothingHeld()), cast("Coordinator", lookups), Metrics(), 1000)


async def requests(count: int, topic: str = "t") -> AsyncIterator[pb.ProduceRequest]:
    for number in range(count):
        yield pb.ProduceRequest(topic=topic, partition=number, acks=1)


async def others() -> set[asyncio.Task[Any]]:
    """Tasks besides this one, once all that is due has run."""
    for _ in range(20):
        await asyncio.sleep(0)
    return asyncio.all_tasks() - {asyncio.current_task()}


def test_answers_come_in_the_order_of_the_requests_whatever_the_order_of_the_lookups(
    service: DataService, lookups: Lookups
) -> None:
    async def run() -> list[str]:
        answers = service.ProduceStream(requests(3), CONTEXT)
        first = asyncio.ensure_future(anext(answers))
        await others()
        lookups.asked[2].set_exception(OutcomeUnknown("third"))
        lookups.asked[1].set_exception(Unavailable("second"))
        lookups.asked[0].set_result(ELSEWHERE)
        return [(await first).error.message, *[answer.error.message async for answer in answers]]

    assert asyncio.run(run()) == ["t-0 is led by broker 2", "second", "third"]


def test_no_more_is_read_than_can_be_waited_for(service: DataService, lookups: Lookups) -> None:
    async def run() -> int:
        answers = service.ProduceStream(requests(10_000), CONTEXT)
        first = asyncio.ensure_future(anext(answers))
        for _ in range(20):
            await others()
        asked = len(lookups.asked)
        first.cancel()
        await others()
        return asked

    assert asyncio.run(run()) == PIPELINED_MAX


class Disk:
    """A partition that says when it has been asked to sync, and is synced when the test says so."""

    def __init__(self) -> None:
        self.end_offset = 0
        self.asked: list[asyncio.Future[None]] = []

    def lead(self, *_: object) -> Any:
        return SimpleNamespace(replica=self)

    def append(self, batches: Any, leadership: object) -> list[int]:
        self.end_offset += 1
        return [self.end_offset - 1]

    def acknowledged(self) -> Awaitable[None] | None:
        self.asked.append(asyncio.get_running_loop().create_future())
        return self.asked[-1]

    def partition(self, topic: str, number: int) -> Disk:
        return self


class Here(Lookups):
    def known_leader(self, at: TopicPartition) -> Partition:
        return Partition(replicas=(1,), leader=1, epoch=0, in_sync=(1,))


def test_requests_of_a_stream_share_a_sync_and_are_answered_after_it_in_order() -> None:
    disk = Disk()
    service = DataService(cast("Store", disk), cast("Coordinator", Here()), Metrics(), 1000)

    async def numbered() -> AsyncIterator[pb.ProduceRequest]:
        for _ in range(3):
            yield pb.ProduceRequest(topic="t", partition=0, acks=1, records=[pb.Record(value=b"v")])

    async def run() -> list[int]:
        answers = service.ProduceStream(numbered(), CONTEXT)
        first = asyncio.ensure_future(anext(answers))
        await others()
        assert (disk.end_offset, len(disk.asked), first.done()) == (3, 3, False)
        for synced in reversed(disk.asked):
            synced.set_result(None)
        return [(await first).base_offset, *[answer.base_offset async for answer in answers]]

    assert asyncio.run(run()) == [0, 1, 2]


class Memory(Disk):
    """A partition that nobody waits for, and the number of records in each batch that it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[int] = []

    def append(self, batches: Any, leadership: object) -> list[int]:
        self.records += [header.records_count for _, header in batches]
        return super().append(batches, leadership)

    def acknowledged(self) -> None:
        return None


def test_requests_that_a_thread_encodes_are_appended_in_the_order_of_the_stream() -> None:
    memory = Memory()
    service = DataService(cast("Store", memory), cast("Coordinator", Here()), Metrics(), 1_000_000)
    sizes = [TURN_RECORDS_MAX + 1, 1, TURN_RECORDS_MAX + 2, 2]

    async def mixed() -> AsyncIterator[pb.ProduceRequest]:
        for size in sizes:
            yield pb.ProduceRequest(topic="t", acks=1, records=[pb.Record()] * size)

    async def run() -> list[int]:
        return [answer.base_offset async for answer in service.ProduceStream(mixed(), CONTEXT)]

    assert asyncio.run(run()) == [0, 1, 2, 3]
    assert memory.records == sizes


@pytest.mark.parametrize("topic", ["t", "nosuch"])
@pytest.mark.parametrize("count", [3, 10_000])
def test_a_stream_that_is_left_leaves_no_task_and_no_question(
    service: DataService, lookups: Lookups, topic: str, count: int
) -> None:
    """A full queue too, behind whose reader nobody would come any more."""

    async def run() -> None:
        answers = service.ProduceStream(requests(count, topic), CONTEXT)
        first = asyncio.ensure_future(anext(answers))
        for _ in range(20):
            await others()
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await answers.aclose()  # type: ignore[attr-defined] # a generator, which its type does not say
        assert await others() == set()
        assert all(answer.done() for answer in lookups.asked)

    asyncio.run(run())


def test_what_cannot_be_read_ends_the_stream_with_an_error(service: DataService) -> None:
    class NoMessage(Exception):
        """What the library raises for bytes that are no request."""

    async def broken() -> AsyncIterator[pb.ProduceRequest]:
        async for request in requests(2, "nosuch"):
            yield request
        raise NoMessage

    async def run() -> list[pb.ProduceResponse]:
        stream = service.ProduceStream(broken(), CONTEXT)
        answers = [await anext(stream), await anext(stream)]
        with pytest.raises(NoMessage):
            await anext(stream)
        assert await others() == set()
        return answers

    assert [answer.error.code for answer in asyncio.run(run())] == [pb.UNKNOWN_TOPIC, pb.UNKNOWN_TOPIC]
