"""Driver `grpc`: the broker's own data service, streamed, many batches in flight per partition."""

from __future__ import annotations

import asyncio
from collections import deque
from time import monotonic_ns
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import grpc
import grpc.aio

from brokers.rpc import brokerlab_pb2 as pb
from brokers.rpc.brokerlab_pb2_grpc import AdminStub, DataStub
from workloads.clients.drivers.api import (
    COUNTER_BITS,
    ID_BYTES,
    NO_ID,
    NS_PER_S,
    OK,
    Consumed,
    ConsumeJob,
    Deadline,
    DriverError,
    Produced,
    ProduceJob,
    RequestRow,
    Signals,
    payload_is_right,
    payloads,
)
from workloads.clients.history import FAIL, NO_OFFSET, SEND, UNKNOWN, Operation

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator, Mapping, Sequence

    from brokers.rpc.brokerlab_pb2_grpc import AdminAsyncStub, DataAsyncStub
    from workloads.clients.history import History

    _ProduceStream = grpc.aio.StreamStreamCall[pb.ProduceRequest, pb.ProduceResponse]

T = TypeVar("T")

# Batches of one partition on their way at once; the same for every architecture.
IN_FLIGHT_MAX: Final = 16
IN_FLIGHT_BYTES_MAX: Final = 64 * 1024 * 1024  # and one batch in any case
CONNECT_WITHIN_S: Final = 10.0
CALL_WITHIN_S: Final = 30.0
FETCH_WAIT_MS: Final = 100
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", 128 * 1024 * 1024),
    ("grpc.max_send_message_length", 128 * 1024 * 1024),
)


class _Sent(NamedTuple):
    """A batch on its way."""

    first: int
    messages: int
    sent_ns: int


class Connections:
    """Channels to brokers by address; opened when first used, closed together."""

    def __init__(self, proxy: str | None = None) -> None:
        self._channels: dict[str, grpc.aio.Channel] = {}
        self._options = _OPTIONS if proxy is None else (*_OPTIONS, ("grpc.http_proxy", proxy))

    def _channel(self, address: str) -> grpc.aio.Channel:
        if address not in self._channels:
            self._channels[address] = grpc.aio.insecure_channel(address, options=self._options)
        return self._channels[address]

    def admin(self, address: str) -> AdminAsyncStub:
        return AdminStub(self._channel(address))

    async def data(self, address: str) -> DataAsyncStub:
        """The data service of a broker, connected."""
        channel = self._channel(address)
        try:
            await asyncio.wait_for(channel.channel_ready(), CONNECT_WITHIN_S)
        except TimeoutError:
            raise DriverError(f"no answer from {address} within {CONNECT_WITHIN_S:.0f} s") from None
        return DataStub(channel)

    async def close(self) -> None:
        for channel in self._channels.values():
            await channel.close()


async def called(call: Awaitable[T]) -> T:
    """Await a call's answer. Raises `DriverError` where there is none."""
    try:
        return await call
    except grpc.aio.AioRpcError as error:
        raise DriverError(f"{error.code().name.lower()}: {error.details()}") from error


class Cluster:
    """The cluster as a client sees it: who leads what, at which address."""

    def __init__(self, bootstrap: Sequence[str], proxy: str | None = None) -> None:
        self._bootstrap = bootstrap
        self.connections = Connections(proxy)

    async def describe(self, group: str = "") -> pb.DescribeClusterResponse:
        address = self._bootstrap[0]
        request = pb.DescribeClusterRequest(group=group)
        answer = await called(self.connections.admin(address).DescribeCluster(request, timeout=CALL_WITHIN_S))
        refuse(answer.error, f"the cluster as {address} knows it")
        return answer

    async def addresses(self) -> dict[int, str]:
        return {broker.id: f"{broker.host}:{broker.rpc_port}" for broker in (await self.describe()).brokers}

    async def topic(self, name: str, address: str | None = None) -> pb.Topic:
        """A topic as one broker knows it. Raises `DriverError` where it does not."""
        stub = self.connections.admin(address or self._bootstrap[0])
        answer = await called(stub.DescribeTopics(pb.DescribeTopicsRequest(names=[name]), timeout=CALL_WITHIN_S))
        refuse(answer.error, f"topic {name!r}")
        return answer.topics[0]

    async def leaders(self, topic: str) -> dict[int, DataAsyncStub]:
        """Partition -> data service of its leader."""
        addresses = await self.addresses()
        partitions = (await self.topic(topic)).partitions
        for part in partitions:
            if part.leader not in addresses:
                raise DriverError(f"{topic}-{part.number} has no leader that lives: broker {part.leader} is not there")
        return {part.number: await self.connections.data(addresses[part.leader]) for part in partitions}

    async def group_home(self, group: str) -> DataAsyncStub:
        found = await self.describe(group)
        address = next(f"{b.host}:{b.rpc_port}" for b in found.brokers if b.id == found.group_coordinator)
        return await self.connections.data(address)


def refuse(error: pb.Error, what: str) -> None:
    """Raise where an answer carries an error."""
    if error.code != pb.OK:
        raise DriverError(f"{what}: {error.message} ({pb.ErrorCode.Name(error.code)})")


class Producer:
    def __init__(self, job: ProduceJob, history: History | None = None) -> None:
        self._job = job
        self._history = history
        self._runner = asyncio.Runner()
        self._cluster = Cluster(job.bootstrap)
        self._leaders: dict[int, DataAsyncStub] = {}
        self._produced = Produced()

    def connect(self) -> None:
        self._leaders = self._runner.run(self._cluster.leaders(self._job.topic))

    def run(self) -> Produced:
        self._runner.run(self._run())
        return self._produced

    def close(self) -> None:
        self._runner.run(self._cluster.connections.close())
        self._runner.close()

    async def _run(self) -> None:
        started = monotonic_ns()
        async with asyncio.TaskGroup() as tasks:
            for partition, leader in self._leaders.items():
                tasks.create_task(self._partition(partition, leader, started))

    async def _partition(self, partition: int, leader: DataAsyncStub, started_ns: int) -> None:
        """Send this partition's batches through one stream, few of them unanswered at once."""
        stream = leader.ProduceStream()
        waiting: deque[_Sent] = deque()
        batch_bytes = self._job.batch_size * self._job.message_size
        room = asyncio.Semaphore(max(1, min(IN_FLIGHT_MAX, IN_FLIGHT_BYTES_MAX // batch_bytes)))
        reader = asyncio.create_task(self._answers(stream, partition, waiting, room))
        try:
            for first, count, intended_ns in self._batches(partition, started_ns):
                await room.acquire()
                if reader.done():
                    break
                await _until(intended_ns)
                sent = _Sent(first, count, intended_ns or monotonic_ns())
                if self._job.acks != 0:
                    waiting.append(sent)
                await stream.write(self._request(partition, first, count))
                if self._job.acks == 0:
                    self._row(partition, sent, monotonic_ns(), OK)
                    room.release()
            await stream.done_writing()
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            pass  # the stream broke, and the reader has the reason
        status = await reader
        while waiting:
            self._row(partition, waiting.popleft(), monotonic_ns(), status)

    def _batches(self, partition: int, started_ns: int) -> Iterator[tuple[int, int, int | None]]:
        """First counter, number of messages and (with a fixed rate) intended send time of each batch of a partition."""
        job = self._job
        batch = (partition - job.producer) % job.partitions
        while True:
            first = batch * job.batch_size
            if job.messages is not None and first >= job.messages:
                return
            if job.duration_s is not None and monotonic_ns() - started_ns > job.duration_s * NS_PER_S:
                return
            count = job.batch_size if job.messages is None else min(job.batch_size, job.messages - first)
            intended_ns = None if job.rate is None else started_ns + int(first / job.rate * NS_PER_S)
            yield first, count, intended_ns
            batch += job.partitions

    def _request(self, partition: int, first: int, count: int) -> pb.ProduceRequest:
        records = [pb.Record(value=payload) for payload in payloads(self._job, first, count)]
        return pb.ProduceRequest(topic=self._job.topic, partition=partition, acks=self._job.acks, records=records)

    async def _answers(
        self, stream: _ProduceStream, partition: int, waiting: deque[_Sent], room: asyncio.Semaphore
    ) -> str:
        """Turn answers into rows, in the order of the requests. Returns what to say of those that got none."""
        status = "UNANSWERED"
        try:
            async for answer in stream:
                code = OK if answer.error.code == pb.OK else pb.ErrorCode.Name(answer.error.code)
                self._row(partition, waiting.popleft(), monotonic_ns(), code, answer)
                room.release()
        except grpc.aio.AioRpcError as error:
            status = error.code().name
        room.release()
        return status

    def _row(
        self, partition: int, sent: _Sent, done_ns: int, status: str, answer: pb.ProduceResponse | None = None
    ) -> None:
        size = sent.messages * self._job.message_size
        row = RequestRow(partition, 1, sent.messages, size, sent.sent_ns, done_ns, status)
        self._produced.rows.append(row)
        self._produced.sends.append((sent.first, sent.sent_ns))
        self._produced.sent += sent.messages
        self._produced.note(partition, range(sent.first, sent.first + sent.messages), status)
        if self._history is not None:
            self._history.note(self._operation(partition, sent, done_ns, status, answer))

    def _operation(
        self, partition: int, sent: _Sent, done_ns: int, status: str, answer: pb.ProduceResponse | None
    ) -> Operation:
        place = (partition, (self._job.producer << COUNTER_BITS) + sent.first, sent.messages)
        if answer is not None and status == OK:
            return Operation(SEND, *place, answer.base_offset, sent.sent_ns, done_ns)
        outcome = FAIL if answer is not None and answer.error.definite else UNKNOWN
        return Operation(SEND, *place, NO_OFFSET, sent.sent_ns, done_ns, outcome, status)


async def _until(moment_ns: int | None) -> None:
    """Wait for a moment of the monotonic clock; not at all where there is none or it has passed."""
    if moment_ns is not None and (wait_ns := moment_ns - monotonic_ns()) > 0:
        await asyncio.sleep(wait_ns / NS_PER_S)


class Consumer:
    def __init__(self, job: ConsumeJob, history: History | None = None) -> None:
        self._job = job
        self._history = history
        self._runner = asyncio.Runner()
        self._cluster = Cluster(job.bootstrap)
        self._leaders: dict[int, DataAsyncStub] = {}
        self._home: DataAsyncStub | None = None
        self._seen = Consumed()
        self._next: dict[int, int] = {}
        self._deadline = Deadline(job.duration_s)

    def join(self) -> None:
        self._runner.run(self._join())

    async def _join(self) -> None:
        leaders = await self._cluster.leaders(self._job.topic)
        self._leaders = {partition: leaders[partition] for partition in self._job.partitions}
        self._home = await self._cluster.group_home(self._job.group)
        self._seen.ids = {partition: bytearray() for partition in self._leaders}
        self._next = dict.fromkeys(self._leaders, 0)

    def settle(self, signals: Signals) -> Sequence[int]:
        """At once: nobody else's coming or going changes what this one reads."""
        return self._job.partitions

    def run(self, signals: Signals) -> Consumed:
        self._runner.run(self._run(signals))
        return self._seen

    def close(self) -> None:
        self._runner.run(self._cluster.connections.close())
        self._runner.close()

    async def _run(self, signals: Signals) -> None:
        signals.started()
        interval_ms = self._job.commit_interval_ms
        async with asyncio.TaskGroup() as committing:
            committer = None if interval_ms is None else committing.create_task(self._commit_every(interval_ms))
            async with asyncio.TaskGroup() as reading:
                for partition, leader in self._leaders.items():
                    reading.create_task(self._partition(partition, leader, signals))
            if committer is not None:
                committer.cancel()
        if self._job.commit != "every_batch":
            await self._commit(self._next)

    async def _partition(self, partition: int, leader: DataAsyncStub, signals: Signals) -> None:
        job = self._job
        request = pb.FetchRequest(topic=job.topic, partition=partition, wait_max_ms=FETCH_WAIT_MS)
        while not self._reached(partition, signals):
            request.offset = self._next[partition]
            sent_ns = monotonic_ns()
            answer = await called(leader.Fetch(request, timeout=CALL_WITHIN_S))
            done_ns = monotonic_ns()
            refuse(answer.error, f"fetch of {job.topic}-{partition} at {request.offset}")
            self._take(partition, answer.records, sent_ns, done_ns)
            if answer.records and job.commit == "every_batch":
                await self._commit({partition: self._next[partition]})

    def _reached(self, partition: int, signals: Signals) -> bool:
        targets = signals.targets()
        return self._deadline.over or (targets is not None and self._next[partition] >= targets.get(partition, 0))

    def _take(self, partition: int, records: Sequence[pb.Record], sent_ns: int, done_ns: int) -> None:
        size = 0
        ids = self._seen.ids[partition]
        for record in records:
            ids += record.value[:ID_BYTES].ljust(ID_BYTES, NO_ID)
            size += len(record.value)
            if not payload_is_right(record.value, self._job):
                self._seen.wrong_payloads += 1
        if self._history is not None:
            values, offsets = [record.value for record in records], [record.offset for record in records]
            self._history.read([partition] * len(records), values, offsets, sent_ns, done_ns)
        if records:
            self._deadline.begin()
            self._next[partition] = records[-1].offset + 1
            if self._job.end_to_end:
                self._seen.note_receipt(partition, len(records), done_ns)
        self._seen.rows.append(RequestRow(partition, 1, len(records), size, sent_ns, done_ns, OK))

    async def _commit_every(self, interval_ms: int) -> None:
        while True:
            await asyncio.sleep(interval_ms / 1000)
            await self._commit(self._next)

    async def _commit(self, places: Mapping[int, int]) -> None:
        assert self._home is not None, "a consumer joins before it commits"
        offsets = [pb.PartitionOffset(topic=self._job.topic, partition=p, offset=o) for p, o in places.items()]
        request = pb.CommitOffsetsRequest(group=self._job.group, offsets=offsets)
        answer = await called(self._home.CommitOffsets(request, timeout=CALL_WITHIN_S))
        refuse(answer.error, f"commit of group {self._job.group!r}")
        self._seen.commits += 1
