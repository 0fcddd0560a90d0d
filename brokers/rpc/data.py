"""The gRPC data service: produce, fetch and commit for clients without a Kafka library, on the same partitions."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from brokers.replication.leaderships import Leaderships
from brokers.rpc import brokerlab_pb2 as pb
from brokers.rpc.answers import REFUSALS, error_of, to_send
from brokers.rpc.brokerlab_pb2_grpc import DataServicer
from brokers.rpc.unpacking import UNPACKED_BYTES_MAX, Unpacking, unpacked_bytes_max
from brokers.slices import Slices
from brokers.wire.batch import check_produced, encode_batch
from coordinators.errors import InvalidRequest
from coordinators.model import Committed, TopicPartition

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Sequence

    import grpc.aio

    from brokers.metrics import Metrics
    from brokers.replication.replica import Leadership, Replica
    from brokers.replication.store import Store
    from coordinators.api import Coordinator, Standing
    from coordinators.model import Partition

# Requests of one stream that are looked up at once, where the architecture looks each of them up.
PIPELINED_MAX: Final = 64
# More in one request, and a thread encodes them while others have their turn.
TURN_RECORDS_MAX: Final = 1000
# An answer's records are taken apart one by one, and nobody else is served during that. One batch may have more.
FETCH_RECORDS_MAX: Final = 10_000
FETCH_WAIT_MS_MAX: Final = 60_000
# Each is a line in a journal, a message or a write to ZooKeeper.
COMMIT_OFFSETS_MAX: Final = 10_000

ACKS_ALL: Final = -1


class _Asked(NamedTuple):
    """This broker's leadership, the question under way who leads, or why it cannot be asked; and what the answer rests
    on."""

    answer: Leadership | asyncio.Future[Partition] | Exception
    standing: Standing


_Synced = asyncio.Future[pb.ProduceResponse]
# The outcome of a request, the task that makes it, or the reason that there is none.
_Outcome = pb.ProduceResponse | _Synced | Exception
_State = TypeVar("_State", bound="_Asked | _Outcome")
# Requests of a stream in their order; None ends it.
_Queue = asyncio.Queue[tuple[pb.ProduceRequest, _State] | None]


class DataService(DataServicer):
    def __init__(
        self,
        store: Store,
        coordinator: Coordinator,
        metrics: Metrics,
        message_bytes_max: int,
        min_insync_replicas: int = 1,
    ) -> None:
        self._leaderships = Leaderships(coordinator, store)
        self._coordinator = coordinator
        self._metrics = metrics
        self._message_bytes_max = message_bytes_max
        self._slices = Slices()
        self._min_insync_replicas = min_insync_replicas

    async def Produce(  # noqa: N802 - the service's name
        self, request: pb.ProduceRequest, context: grpc.aio.ServicerContext[pb.ProduceRequest, pb.ProduceResponse]
    ) -> pb.ProduceResponse:
        try:
            return await _acknowledged(await self._appended(request, self._asked(request)))
        except REFUSALS as error:
            return pb.ProduceResponse(base_offset=-1, error=error_of(error))

    async def ProduceStream(  # noqa: N802 - the service's name
        self,
        requests: AsyncIterator[pb.ProduceRequest],
        context: grpc.aio.ServicerContext[pb.ProduceRequest, pb.ProduceResponse],
    ) -> AsyncIterator[pb.ProduceResponse]:
        """Ask who leads as requests come in; append and answer in their order. While some wait for the disk the next
        are appended, so that they share a sync."""
        asked: _Queue[_Asked] = asyncio.Queue()
        appended: _Queue[_Outcome] = asyncio.Queue()
        room = asyncio.Semaphore(PIPELINED_MAX)
        work = (
            asyncio.create_task(self._read(requests, asked, room)),
            asyncio.create_task(self._append_all(asked, appended)),
        )
        try:
            while (next_one := await appended.get()) is not None:
                request, outcome = next_one
                try:
                    answer = await _acknowledged(outcome)
                except REFUSALS as error:
                    answer = pb.ProduceResponse(base_offset=-1, error=error_of(error))
                room.release()
                if request.acks != 0:
                    yield answer
            await asyncio.gather(*work)  # what cannot be read ends the stream with a status of its own
        finally:
            for task in work:
                task.cancel()
            _forget(asked)
            _forget(appended)

    async def _read(
        self, requests: AsyncIterator[pb.ProduceRequest], asked: _Queue[_Asked], room: asyncio.Semaphore
    ) -> None:
        try:
            async for request in requests:
                await room.acquire()
                asked.put_nowait((request, self._asked(request)))
        finally:
            asked.put_nowait(None)

    async def _append_all(self, asked: _Queue[_Asked], appended: _Queue[_Outcome]) -> None:
        try:
            while (next_one := await asked.get()) is not None:
                request, leader = next_one
                outcome: _Outcome
                try:
                    outcome = await self._appended(request, leader)
                except REFUSALS as error:
                    outcome = error
                appended.put_nowait((request, outcome))
        finally:
            appended.put_nowait(None)

    def _asked(self, request: pb.ProduceRequest | pb.FetchRequest) -> _Asked:
        """The leadership, or the question under way; a refusal waits for the request's turn."""
        standing = self._coordinator.standing
        try:
            at = _at(request)
            known = self._leaderships.known(at)
        except REFUSALS as error:
            return _Asked(error, standing)
        return _Asked(known or asyncio.ensure_future(self._leaderships.find(at)), standing)

    async def _leadership(self, request: pb.ProduceRequest | pb.FetchRequest, asked: _Asked) -> Leadership:
        """The former answer, if it still holds when the request has its turn; otherwise a new one. Raises as
        `Leaderships` does."""
        found, standing = asked
        if isinstance(found, Exception):
            raise found
        at = _at(request)
        if isinstance(found, asyncio.Future):
            now = self._leaderships.confirmed(at, await found, standing)
        else:
            now = self._leaderships.known(at)
        return now or await self._leaderships.now(at)

    async def _appended(self, request: pb.ProduceRequest, asked: _Asked) -> pb.ProduceResponse | _Synced:
        """The answer; where it promises what is not on the disk yet, what gives it once it is."""
        leadership = await self._leadership(request, asked)
        if not -1 <= request.acks <= 1:
            raise InvalidRequest(f"acks must be 0, 1 or -1 (all), not {request.acks}")
        if not request.records:
            raise InvalidRequest("a produce request carries at least one record")
        if len(request.records) > TURN_RECORDS_MAX:
            batch = await asyncio.get_running_loop().run_in_executor(None, _encoded, request)
            leadership = await self._leadership(request, self._asked(request))  # it may have moved during the wait
        else:
            batch = _encoded(request)
        if request.acks == ACKS_ALL:
            leadership.check_in_sync(self._min_insync_replicas)
        header = check_produced(batch, self._message_bytes_max)
        replica = leadership.replica
        (base_offset,) = replica.append([(batch, header)], leadership)
        if isinstance(base_offset, Exception):
            raise base_offset
        count = self._metrics.produce
        count.requests += 1
        count.messages += len(request.records)
        count.bytes += len(batch)
        answer = pb.ProduceResponse(base_offset=base_offset)
        if request.acks != 0 and (acknowledged := replica.acknowledged()) is not None:
            return asyncio.ensure_future(_after(acknowledged, answer))
        return answer

    async def Fetch(  # noqa: N802 - the service's name
        self, request: pb.FetchRequest, context: grpc.aio.ServicerContext[pb.FetchRequest, pb.FetchResponse]
    ) -> pb.FetchResponse:
        try:
            _check_bounds(request)
            leadership = await self._leadership(request, self._asked(request))
            tenure = self._coordinator.standing.tenure
            wait_s = min(request.wait_max_ms, FETCH_WAIT_MS_MAX) / 1000
            await _data_behind(leadership.replica, request.offset, wait_s)
            async with self._slices:
                self._leaderships.check(leadership, tenure)
                return await self._fetched(request, leadership.replica)
        except REFUSALS as error:
            return pb.FetchResponse(error=error_of(error))

    async def _fetched(self, request: pb.FetchRequest, replica: Replica) -> pb.FetchResponse:
        bytes_max = min(request.bytes_max or UNPACKED_BYTES_MAX, UNPACKED_BYTES_MAX)
        records_max = min(request.records_max or FETCH_RECORDS_MAX, FETCH_RECORDS_MAX)
        answer = Unpacking(request.offset, bytes_max, unpacked_bytes_max(self._message_bytes_max))
        await answer.take(replica.read(request.offset, bytes_max, records_max))
        if answer.records:
            count = self._metrics.fetch
            count.requests += 1
            count.messages += len(answer.records)
            count.bytes += answer.stored_bytes
        return pb.FetchResponse(records=answer.records, end_offset=replica.readable_end)

    async def CommitOffsets(  # noqa: N802 - the service's name
        self,
        request: pb.CommitOffsetsRequest,
        context: grpc.aio.ServicerContext[pb.CommitOffsetsRequest, pb.CommitOffsetsResponse],
    ) -> pb.CommitOffsetsResponse:
        try:
            await self._coordinator.commit_offsets(request.group, _places(request.offsets))
        except REFUSALS as error:
            return pb.CommitOffsetsResponse(error=error_of(error))
        return pb.CommitOffsetsResponse()

    async def CommittedOffsets(  # noqa: N802 - the service's name
        self,
        request: pb.CommittedOffsetsRequest,
        context: grpc.aio.ServicerContext[pb.CommittedOffsetsRequest, pb.CommittedOffsetsResponse],
    ) -> pb.CommittedOffsetsResponse:
        try:
            found = await self._coordinator.committed_offsets(request.group)
        except REFUSALS as error:
            return pb.CommittedOffsetsResponse(error=error_of(error))
        offsets = [
            pb.PartitionOffset(topic=at.topic, partition=at.partition, offset=place.offset)
            for at, place in sorted(found.items())
        ]
        return pb.CommittedOffsetsResponse(offsets=offsets)


def _encoded(request: pb.ProduceRequest) -> bytearray:
    """Raises `InvalidRequest`."""
    return encode_batch(to_send(request.records, time.time_ns() // 1_000_000))


def _at(request: pb.ProduceRequest | pb.FetchRequest | pb.PartitionOffset) -> TopicPartition:
    if request.partition < 0:
        raise InvalidRequest(f"partition must not be negative, and is {request.partition}")
    return TopicPartition(request.topic, request.partition)


def _places(offsets: Sequence[pb.PartitionOffset]) -> dict[TopicPartition, Committed]:
    """The offsets that a commit is to keep. Raises `InvalidRequest`."""
    if len(offsets) > COMMIT_OFFSETS_MAX:
        raise InvalidRequest(f"a commit has at most {COMMIT_OFFSETS_MAX} offsets, not {len(offsets)}")
    return {_at(place): Committed(place.offset) for place in offsets}


def _check_bounds(request: pb.FetchRequest) -> None:
    for name in ("records_max", "bytes_max", "wait_max_ms"):
        if getattr(request, name) < 0:
            raise InvalidRequest(f"{name} must not be negative, and is {getattr(request, name)}")


async def _after(synced: Awaitable[None], answer: pb.ProduceResponse) -> pb.ProduceResponse:
    await synced
    return answer


async def _acknowledged(outcome: _Outcome) -> pb.ProduceResponse:
    """The answer, once it may be given. Raises why there is none."""
    if isinstance(outcome, Exception):
        raise outcome
    return await outcome if isinstance(outcome, asyncio.Future) else outcome


def _forget(waiting: _Queue[_State]) -> None:
    """Drop what nobody will answer any more, and what is under way."""
    while not waiting.empty():
        _, state = waiting.get_nowait() or (None, None)
        under_way = state.answer if isinstance(state, _Asked) else state
        if isinstance(under_way, asyncio.Future):
            under_way.cancel()


async def _data_behind(replica: Replica, offset: int, wait_s: float) -> None:
    """Return when there is something at `offset`, or the time is over."""
    if offset != replica.readable_end or wait_s <= 0:
        return
    arrived = asyncio.Event()
    replica.waiters.add(arrived.set)
    try:
        async with asyncio.timeout(wait_s):
            await arrived.wait()
    except TimeoutError:
        return
    finally:
        replica.waiters.discard(arrived.set)
