"""The producer of the driver `grpc`: a stream of batches for each partition."""

from __future__ import annotations

import asyncio
from collections import deque
from time import monotonic_ns
from typing import TYPE_CHECKING, Final, NamedTuple

import grpc
import grpc.aio

from brokers.rpc import brokerlab_pb2 as pb
from workloads.clients.drivers.api import (
    COUNTER_BITS,
    NS_PER_S,
    OK,
    Produced,
    ProduceJob,
    RequestRow,
    Signals,
    WindowOrder,
)
from workloads.clients.drivers.grpc.cluster import Cluster
from workloads.clients.drivers.payloads import payloads
from workloads.clients.history import FAIL, NO_OFFSET, SEND, UNKNOWN, Operation

if TYPE_CHECKING:
    from brokers.rpc.brokerlab_pb2_grpc import DataAsyncStub
    from workloads.clients.history import History

    _ProduceStream = grpc.aio.StreamStreamCall[pb.ProduceRequest, pb.ProduceResponse]

NAP_S_MAX: Final = 0.02  # the runner's word is heard between two naps


class _Sent(NamedTuple):
    """A batch on its way."""

    first: int
    messages: int
    sent_ns: int


class Allotment:
    """Which messages of a window go to which partition, as whole batches: the next ones to whichever partition has
    room, or, at a fixed rate, in turn and each at its time."""

    def __init__(self, job: ProduceJob, order: WindowOrder, first: int) -> None:
        """`first` is the counter of the first message."""
        self._job, self._order, self._first = job, order, first
        self._batches = 0  # given to anybody
        self._turns = {number: (number - job.producer) % job.partitions for number in range(job.partitions)}
        self.end = first  # beyond all counters that were given

    def next(self, partition: int) -> tuple[range, int | None] | None:
        """The counters of a batch and, at a fixed rate, when it is due, in nanoseconds from the window's start; None
        where there are no more."""
        job, order = self._job, self._order
        batch = self._batches if order.rate is None else self._turns[partition]
        messages = job.batch_size
        if order.messages is not None:
            messages = min(messages, order.messages - batch * job.batch_size)
        if messages <= 0:
            return None
        self._batches += 1
        self._turns[partition] += job.partitions
        counters = range(self._first + batch * job.batch_size, self._first + batch * job.batch_size + messages)
        self.end = max(self.end, counters.stop)
        return counters, None if order.rate is None else int(batch * job.batch_size / order.rate * NS_PER_S)


class Producer:
    def __init__(self, job: ProduceJob, history: History | None = None) -> None:
        self._job = job
        self._history = history
        self._runner = asyncio.Runner()
        self._cluster = Cluster(job.bootstrap)
        self._addresses: dict[int, str] = {}  # partition -> address of its leader
        self._leaders: dict[int, DataAsyncStub] = {}
        self._order = WindowOrder(0)
        self._counter = 0  # of the next window's first message
        self._produced = Produced()

    def connect(self) -> None:
        self._runner.run(self._connect())

    async def _connect(self) -> None:
        self._addresses = await self._cluster.leader_addresses(self._job.topic)
        self._leaders = {n: await self._cluster.connections.data(at) for n, at in self._addresses.items()}

    def prepare(self, order: WindowOrder) -> None:
        """Nothing: making a payload costs little beside making the request around it."""
        self._order = order

    def run(self, signals: Signals) -> Produced:
        self._produced = Produced()
        self._runner.run(self._run(signals))
        return self._produced

    def close(self) -> None:
        self._runner.run(self._cluster.connections.close())
        self._runner.close()

    async def _run(self, signals: Signals) -> None:
        allotment, started_ns = Allotment(self._job, self._order, self._counter), monotonic_ns()
        rooms = {address: asyncio.Semaphore(self._job.in_flight) for address in self._addresses.values()}
        async with asyncio.TaskGroup() as tasks:
            for number, leader in self._leaders.items():
                room = rooms[self._addresses[number]]
                tasks.create_task(self._partition(number, leader, room, allotment, started_ns, signals))
        self._counter = allotment.end

    async def _partition(
        self,
        partition: int,
        leader: DataAsyncStub,
        room: asyncio.Semaphore,
        allotment: Allotment,
        started_ns: int,
        signals: Signals,
    ) -> None:
        """Send this partition's batches through one stream, as many unanswered as its connection has room for."""
        stream = leader.ProduceStream()
        waiting: deque[_Sent] = deque()
        reader = asyncio.create_task(self._answers(stream, partition, waiting, room, signals))
        try:
            while not (signals.stopped() or reader.done()) and (batch := allotment.next(partition)) is not None:
                counters, due_ns = batch
                intended_ns = None if due_ns is None else started_ns + due_ns
                if not await _until(intended_ns, signals):
                    break
                await room.acquire()
                if signals.stopped() or reader.done():
                    room.release()
                    break
                sent = _Sent(counters.start, len(counters), intended_ns or monotonic_ns())
                if self._job.acks != 0:
                    waiting.append(sent)
                await stream.write(self._request(partition, sent))
                if self._job.acks == 0:
                    self._row(partition, sent, monotonic_ns(), OK)
                    signals.working()
                    room.release()
            await stream.done_writing()
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            pass  # the stream broke, and the reader has the reason
        await reader

    def _request(self, partition: int, sent: _Sent) -> pb.ProduceRequest:
        records = [pb.Record(value=payload) for payload in payloads(self._job, sent.first, sent.messages)]
        return pb.ProduceRequest(topic=self._job.topic, partition=partition, acks=self._job.acks, records=records)

    async def _answers(
        self,
        stream: _ProduceStream,
        partition: int,
        waiting: deque[_Sent],
        room: asyncio.Semaphore,
        signals: Signals,
    ) -> None:
        """Turn answers into rows, in the order of the requests, until the stream ends; what has none then has
        failed."""
        status = "UNANSWERED"
        try:
            async for answer in stream:
                code = OK if answer.error.code == pb.OK else pb.ErrorCode.Name(answer.error.code)
                self._row(partition, waiting.popleft(), monotonic_ns(), code, answer)
                room.release()
                signals.working()
        except grpc.aio.AioRpcError as error:
            status = error.code().name
        while waiting:
            self._row(partition, waiting.popleft(), monotonic_ns(), status)
            room.release()

    def _row(
        self, partition: int, sent: _Sent, done_ns: int, status: str, answer: pb.ProduceResponse | None = None
    ) -> None:
        size = sent.messages * self._job.message_size
        times = (sent.sent_ns, done_ns)
        number = self._order.number
        row = RequestRow(partition, 1, sent.messages, size, *times, status, window_number=number)
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


async def _until(moment_ns: int | None, signals: Signals) -> bool:
    """Wait for a moment of the monotonic clock; not at all where there is none or it has passed. False where the
    runner says stop before."""
    while not signals.stopped():
        wait_ns = 0 if moment_ns is None else moment_ns - monotonic_ns()
        if wait_ns <= 0:
            return True
        await asyncio.sleep(min(wait_ns / NS_PER_S, NAP_S_MAX))
    return False
