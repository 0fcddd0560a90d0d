"""The consumer of the driver `grpc`: one fetch after the other for each partition, and commits beside them."""

from __future__ import annotations

import asyncio
from time import monotonic_ns
from typing import TYPE_CHECKING, Final

from brokers.rpc import brokerlab_pb2 as pb
from workloads.clients.drivers.api import OK, Consumed, ConsumeJob, RequestRow, Signals, WindowOrder
from workloads.clients.drivers.grpc.cluster import CALL_WITHIN_S, Cluster, called, refuse
from workloads.clients.drivers.payloads import look_through

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from brokers.rpc.brokerlab_pb2_grpc import DataAsyncStub
    from workloads.clients.history import History

FETCH_WAIT_MS: Final = 100


class Consumer:
    def __init__(self, job: ConsumeJob, history: History | None = None) -> None:
        self._job = job
        self._history = history
        self._runner = asyncio.Runner()
        self._cluster = Cluster(job.bootstrap)
        self._leaders: dict[int, DataAsyncStub] = {}
        self._home: DataAsyncStub | None = None
        self._number = 0  # the window's
        self._seen = Consumed()
        self._next: dict[int, int] = {}
        self._committed: dict[int, int] = {}

    def join(self) -> None:
        self._runner.run(self._join())

    async def _join(self) -> None:
        leaders = await self._cluster.leaders(self._job.topic)
        self._leaders = {partition: leaders[partition] for partition in self._job.partitions}
        self._home = await self._cluster.group_home(self._job.group)
        self._next = dict.fromkeys(self._leaders, 0)

    def settle(self, signals: Signals) -> Sequence[int]:
        """At once: nobody else's coming or going changes what this one reads."""
        return self._job.partitions

    def prepare(self, order: WindowOrder) -> None:
        self._number = order.number

    def run(self, signals: Signals, *, both: bool) -> Consumed:
        self._seen = Consumed(ids={partition: bytearray() for partition in self._leaders})
        if both or not self._leaders:
            signals.working()
        self._runner.run(self._run(signals))
        return self._seen

    def close(self) -> None:
        self._runner.run(self._cluster.connections.close())
        self._runner.close()

    async def _run(self, signals: Signals) -> None:
        """Fetch until the end, with commits beside it; those are all answered when this returns."""
        interval_ms = self._job.commit_interval_ms
        async with asyncio.TaskGroup() as committing:
            room = asyncio.Semaphore(self._job.in_flight)
            committer = None if interval_ms is None else committing.create_task(self._commit_every(interval_ms))
            async with asyncio.TaskGroup() as reading:
                for partition, leader in self._leaders.items():
                    reading.create_task(self._partition(partition, leader, signals, committing, room))
            self._seen.dry = bool(self._leaders) and all(self._reached(number, signals) for number in self._leaders)
            if committer is not None:
                committer.cancel()
        if moved := {
            number: offset for number, offset in self._next.items() if offset > self._committed.get(number, 0)
        }:
            await self._commit(moved)

    async def _partition(
        self,
        partition: int,
        leader: DataAsyncStub,
        signals: Signals,
        committing: asyncio.TaskGroup,
        room: asyncio.Semaphore,
    ) -> None:
        """Fetch batch after batch. Commits are under way beside it, as many of all partitions as there is room for;
        one connection carries them in their order."""
        job = self._job
        request = pb.FetchRequest(topic=job.topic, partition=partition, wait_max_ms=FETCH_WAIT_MS)
        while not (signals.stopped() or self._reached(partition, signals)):
            request.offset = self._next[partition]
            sent_ns = monotonic_ns()
            answer = await called(leader.Fetch(request, timeout=CALL_WITHIN_S))
            done_ns = monotonic_ns()
            refuse(answer.error, f"fetch of {job.topic}-{partition} at {request.offset}")
            self._take(partition, self._wanted(partition, answer.records, signals), sent_ns, done_ns)
            if not answer.records:
                continue
            signals.working()
            if job.commit == "every_batch":
                await room.acquire()
                commit = committing.create_task(self._commit({partition: self._next[partition]}))
                commit.add_done_callback(lambda _: room.release())

    def _wanted(self, partition: int, records: Sequence[pb.Record], signals: Signals) -> Sequence[pb.Record]:
        """Those up to the target."""
        if (targets := signals.targets()) is None:
            return records
        return records[: max(0, targets.get(partition, 0) - self._next[partition])]

    def _reached(self, partition: int, signals: Signals) -> bool:
        targets = signals.targets()
        return targets is not None and self._next[partition] >= targets.get(partition, 0)

    def _take(self, partition: int, records: Sequence[pb.Record], sent_ns: int, done_ns: int) -> None:
        values = [record.value for record in records]
        if self._history is not None:
            offsets = [record.offset for record in records]
            self._history.read([partition] * len(records), values, offsets, sent_ns, done_ns)
        if records:
            ids, wrong = look_through(values, self._job.message_size)
            self._seen.ids[partition] += ids
            self._seen.wrong_payloads += wrong
            self._next[partition] = records[-1].offset + 1
            if self._job.end_to_end:
                self._seen.note_receipt(partition, len(records), done_ns, self._number)
        size, times = sum(map(len, values)), (sent_ns, done_ns)
        row = RequestRow(partition, 1, len(records), size, *times, OK, window_number=self._number)
        self._seen.rows.append(row)

    async def _commit_every(self, interval_ms: int) -> None:
        while True:
            await asyncio.sleep(interval_ms / 1000)
            await self._commit(dict(self._next))

    async def _commit(self, places: Mapping[int, int]) -> None:
        assert self._home is not None, "a consumer joins before it commits"
        offsets = [pb.PartitionOffset(topic=self._job.topic, partition=p, offset=o) for p, o in places.items()]
        request = pb.CommitOffsetsRequest(group=self._job.group, offsets=offsets)
        answer = await called(self._home.CommitOffsets(request, timeout=CALL_WITHIN_S))
        refuse(answer.error, f"commit of group {self._job.group!r}")
        self._seen.commits += 1
        for partition, offset in places.items():
            self._committed[partition] = max(offset, self._committed.get(partition, 0))
