"""Driver `kafka`: librdkafka through confluent-kafka, the data plane of the default profiles.

librdkafka forms the requests itself, in threads of its own: `batch.num.messages` puts a batch into one request, and
the brokers count what really came. What can be seen from here without slowing the client down:

- Which messages failed is certain: failures alone are reported back, one callback each.
- How many are acknowledged is read between sends: handed over, less those still on their way. Rows are slices of 10 ms
  with a latency histogram, for which acknowledgements are matched to sends in order. Where partitions overtake each
  other that mixes up single latencies; their sum, and so the mean, stays exact.
"""

from __future__ import annotations

import gc
import json
from collections import Counter
from contextlib import contextmanager
from time import monotonic, monotonic_ns, process_time
from typing import TYPE_CHECKING, Any, Final, cast

from confluent_kafka import Consumer as KafkaConsumer
from confluent_kafka import KafkaException, Message, TopicPartition
from confluent_kafka import Producer as KafkaProducer

from workloads.clients.drivers.api import (
    COUNTER_BITS,
    ID_BYTES,
    NO_ID,
    OK,
    STORAGE_FAILED,
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
from workloads.clients.drivers.grpc import Admin
from workloads.clients.drivers.slices import SLICE_NS, Slices

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from confluent_kafka import KafkaError

__all__ = ["Admin", "Consumer", "Producer"]  # topics are made through the brokers' own service, whatever the driver

CONNECT_WITHIN_S: Final = 10.0
# A member learns of a rebalance from its next heartbeat, up to three seconds later, and a rebalance may follow another.
ASSIGNED_WITHIN_S: Final = 30.0
NS_PER_S: Final = 1_000_000_000
# Messages and bytes handed to librdkafka and not acknowledged yet: enough that it never starves, few enough that the
# latency is the cluster's and not that of the client's own queue.
UNACKNOWLEDGED_MAX: Final = 20_000
UNACKNOWLEDGED_BYTES_MAX: Final = 64 * 1024 * 1024
# Messages handed over in one call, for one partition: whole batches, so that each request is full.
HANDED_OVER_MESSAGES: Final = 500
HANDED_OVER_BYTES_MAX: Final = 4 * 1024 * 1024
# Payloads are made before the window up to this much memory; beyond, they are large, and making one costs little
# beside sending it.
PREPARED_BYTES_MAX: Final = 512 * 1024 * 1024
BYTES_OBJECT_BYTES: Final = 41  # what Python needs beside the payload
# Of received messages, before they are looked at within the window; larger ones are never kept.
KEPT_BYTES_MAX: Final = 512 * 1024 * 1024
KEPT_MESSAGE_BYTES_MAX: Final = 1024
# Whole batches are handed over and leave at once, so this bounds only the wait for a rest of one. It is long, because
# a producer that is interrupted in the middle of a batch must not have its first half sent.
LINGER_MS: Final = 200
# About two and a half seconds. What then fails is told with the broker's reason; what times out has none.
RETRIES_MAX: Final = 5
STATISTICS_MS: Final = 50
POLL_S: Final = 0.05
# While a group forms: librdkafka says what comes of it only when a poll ends.
JOIN_POLL_S: Final = 0.01
FLUSH_S: Final = 0.005
# Every so many commits one waits for its answer, and so for all before it: that many are under way at most. More would
# be a little faster, and a window would end before its commits: a short one would show a rate that cannot last.
COMMITS_UNDER_WAY_MAX: Final = 16
# Of each partition, so many batches lie ready at the consumer: enough that it never waits for the millisecond after
# which librdkafka looks again, few enough that a window is filled by fetches of what it consumes. librdkafka's own
# 100,000 messages make it fetch as fast as it can for the first seconds, and commits stand in line behind that.
FETCHED_AHEAD_BATCHES: Final = 20
# What librdkafka calls by another name than all drivers do.
_STATUS: Final = {"KAFKA_STORAGE_ERROR": STORAGE_FAILED}
# What a batch of messages is asked for, without a Python loop.
_ERROR: Final = Message.error
_OFFSET: Final = cast("Callable[[Message], int]", Message.offset)
_PARTITION: Final = cast("Callable[[Message], int]", Message.partition)
_VALUE: Final = cast("Callable[[Message], bytes]", Message.value)


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """The messages of a window are many and live until its end: looking for garbage among them only costs time."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _learn(kafka: KafkaProducer | KafkaConsumer, job: ProduceJob | ConsumeJob) -> None:
    """Ask for the brokers, and who leads the job's topic."""
    try:
        found = kafka.list_topics(job.topic, timeout=CONNECT_WITHIN_S)
    except KafkaException as error:
        raise DriverError(f"no answer from {', '.join(job.bootstrap)}: {error}") from error
    failed = found.topics[job.topic].error
    if failed is not None:
        raise DriverError(f"topic {job.topic!r}: {failed}")


class Producer:
    def __init__(self, job: ProduceJob) -> None:
        self._job = job
        self._failed: dict[int, str] = {}  # counter -> error
        self._sends: list[tuple[int, int]] = []
        chunk = self._chunk_messages()
        self._payloads = self._payload_chunks(chunk)
        self._brokers_up = False
        self.cpu_s = 0.0  # of this process, librdkafka's threads included, from the first send to the last answer
        largest = 2 * job.batch_size * job.message_size + 100_000
        self._kafka = KafkaProducer(
            {
                "bootstrap.servers": ",".join(job.bootstrap),
                "acks": job.acks,
                "message.timeout.ms": int(job.answer_within_s * 1000),
                "retries": RETRIES_MAX,
                "linger.ms": LINGER_MS,
                "batch.num.messages": job.batch_size,
                "batch.size": max(1_000_000, largest),
                "message.max.bytes": max(1_000_000, largest),
                "queue.buffering.max.messages": self._on_their_way_max(chunk) + chunk,
                "queue.buffering.max.kbytes": 2_097_151,
                "delivery.report.only.error": True,
                "socket.nagle.disable": True,
                "enable.sparse.connections": False,
                "statistics.interval.ms": STATISTICS_MS,
                "stats_cb": self._on_statistics,
            }
        )

    def connect(self) -> None:
        """Learn who leads, and have a connection to every broker."""
        _learn(self._kafka, self._job)
        deadline = monotonic() + CONNECT_WITHIN_S
        while not self._brokers_up:
            if monotonic() > deadline:
                raise DriverError(f"not connected to every broker within {CONNECT_WITHIN_S:.0f} s")
            self._kafka.poll(POLL_S)

    def _on_statistics(self, text: str) -> None:
        if not self._brokers_up:
            brokers = json.loads(text)["brokers"].values()
            known = [broker["state"] for broker in brokers if broker["nodeid"] >= 0]
            self._brokers_up = bool(known) and all(state == "UP" for state in known)

    def run(self) -> Produced:
        slices = Slices(self._job)
        with _no_garbage_collection():
            handed_over = self._send(slices)
        slices.close()
        return self._told(slices.rows, handed_over)

    def _send(self, slices: Slices) -> list[tuple[int, range]]:
        """Hand everything over and wait until nothing is on its way; the answer is which counters went where."""
        kafka, chunk, job = self._kafka, self._chunk_messages(), self._job
        rows: list[dict[str, Any]] = [{"value": b""} for _ in range(chunk)]
        on_their_way_max = self._on_their_way_max(chunk)
        sent: list[tuple[int, range]] = []
        total, started_ns, cpu_s = 0, monotonic_ns(), process_time()
        for number, values in enumerate(self._payloads):
            intended_ns = None if job.rate is None else started_ns + int(total / job.rate * NS_PER_S)
            self._wait(slices, total, on_their_way_max, intended_ns)
            now_ns = monotonic_ns()
            if job.duration_s is not None and now_ns - started_ns > job.duration_s * NS_PER_S:
                break
            for row, value in zip(rows, values, strict=False):
                row["value"] = value
            partition = (number + job.producer) % job.partitions
            taken = kafka.produce_batch(
                job.topic, rows[: len(values)], partition=partition, on_delivery=self._on_failure
            )
            if taken < len(values):
                raise DriverError(f"librdkafka took {taken} of {len(values)} messages that were handed to it")
            sent.append((partition, range(total, total + len(values))))
            self._sends.append((total, intended_ns or now_ns))
            total += len(values)
            slices.sent(total, intended_ns or now_ns)
            kafka.poll(0)
            slices.acknowledged(total - len(kafka))
        self._finish(slices, total)
        self.cpu_s = process_time() - cpu_s
        return sent

    def _wait(self, slices: Slices, total: int, on_their_way_max: int, until_ns: int | None) -> None:
        """Let acknowledgements come in until few enough are on their way and the moment has come."""
        kafka = self._kafka
        while (on_their_way := len(kafka)) > on_their_way_max or (until_ns is not None and monotonic_ns() < until_ns):
            slices.acknowledged(total - on_their_way)
            left_s = POLL_S if until_ns is None else (until_ns - monotonic_ns()) / NS_PER_S
            kafka.poll(max(0.0, min(POLL_S, left_s)) if on_their_way <= on_their_way_max else POLL_S)
        slices.acknowledged(total - on_their_way)

    def _finish(self, slices: Slices, total: int) -> None:
        """Wait until nothing is on its way; a flush does not let the rest of a batch linger."""
        while on_their_way := self._kafka.flush(FLUSH_S):
            slices.acknowledged(total - on_their_way)
        slices.acknowledged(total)

    def _chunk_messages(self) -> int:
        """Whole batches: one at a fixed rate, else some hundred messages."""
        batch, size = self._job.batch_size, self._job.message_size
        if self._job.rate is not None:
            return batch
        return max(1, min(HANDED_OVER_MESSAGES, HANDED_OVER_BYTES_MAX // size) // batch) * batch

    def _on_their_way_max(self, chunk: int) -> int:
        return max(2 * chunk, min(UNACKNOWLEDGED_MAX, UNACKNOWLEDGED_BYTES_MAX // self._job.message_size))

    def _payload_chunks(self, chunk: int) -> Iterator[Sequence[bytes]]:
        """The payloads in chunks; made beforehand where the memory allows."""
        job = self._job
        if job.messages is None:
            return self._endless_chunks(chunk)
        if job.messages * (job.message_size + BYTES_OBJECT_BYTES) > PREPARED_BYTES_MAX:
            return self._chunks(chunk, job.messages)
        return iter(list(self._chunks(chunk, job.messages)))

    def _chunks(self, chunk: int, total: int) -> Iterator[Sequence[bytes]]:
        for first in range(0, total, chunk):
            yield list(payloads(self._job, first, min(chunk, total - first)))

    def _endless_chunks(self, chunk: int) -> Iterator[Sequence[bytes]]:
        return self._chunks(chunk, 1 << COUNTER_BITS)

    def _on_failure(self, error: KafkaError | None, message: Message) -> None:
        assert error is not None, "only failures are reported"
        counter = int.from_bytes((message.value() or b"")[:ID_BYTES], "big") & ((1 << COUNTER_BITS) - 1)
        self._failed[counter] = _STATUS.get(error.name(), error.name())

    def _told(self, rows: list[RequestRow], handed_over: Sequence[tuple[int, range]]) -> Produced:
        """What was sent, without what failed."""
        produced = Produced(rows, self._sends)
        for partition, counters in handed_over:
            produced.sent += len(counters)
            start = counters.start
            for failed in sorted(self._failed.keys() & set(counters)) if self._failed else ():
                produced.note(partition, range(start, failed), OK)
                produced.note(partition, range(failed, failed + 1), self._failed[failed])
                start = failed + 1
            produced.note(partition, range(start, counters.stop), OK)
        return produced

    def close(self) -> None:
        self._kafka.purge()
        self._kafka.flush(1)


class Consumer:
    """A member of a group, which takes up its partitions when the run begins, so that nothing is fetched before its
    window. (Paused ones would do the same, but librdkafka looks after a resumed partition up to a second later.)

    Which partitions are its own is the group's decision, and stands when all members have joined. Those that came first
    are given more in the meantime, and give it up while they are polled. So a member says that it has joined when it is
    first given anything, if only nothing, and is polled on until it hears that all have. By then it has given up what
    it had before the last one joined, since that one was answered after it, and what it is given next is for good.
    """

    def __init__(self, job: ConsumeJob) -> None:
        self._job = job
        self._seen = Consumed()
        self._next: dict[int, int] = {}
        self._assigned = False  # perhaps no partition: there may be more members
        # Partitions and values of messages, in their order, and when they came.
        self._kept: list[tuple[list[int], list[bytes], int]] = []
        self._kept_bytes = 0
        self._committed_ns = 0
        self._commit_failed = ""
        self.cpu_s = 0.0  # of this process, librdkafka's threads included, from the first fetch to the last message
        self._kafka = KafkaConsumer(
            {
                "bootstrap.servers": ",".join(job.bootstrap),
                "group.id": job.group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "on_commit": self._on_commit,
                "fetch.queue.backoff.ms": 1,
                "fetch.message.max.bytes": max(1_048_576, 2 * job.batch_size * job.message_size),
                "queued.max.messages.kbytes": 262_144,
                "queued.min.messages": FETCHED_AHEAD_BATCHES * job.batch_size,
                "socket.nagle.disable": True,
                "enable.sparse.connections": False,
            }
        )

    def join(self) -> None:
        """Subscribe, and wait until the group has taken this member in.

        Not before librdkafka has learned the brokers. When it does, it drops the connections to the addresses that it
        was given; a question that is under way on one of them is lost, and the group's about its topic is then not
        asked again for ten seconds or more.
        """
        _learn(self._kafka, self._job)
        self._kafka.subscribe([self._job.topic], on_assign=self._on_assign, on_revoke=self._on_revoke)
        self._await_assignment()

    def settle(self, signals: Signals) -> Sequence[int]:
        """The wait for the others ends with the runner's word, or with this process, which the runner ends."""
        while not signals.all_joined():
            self._poll()
        self._await_assignment()
        return sorted(self._next)

    def _await_assignment(self) -> None:
        deadline = monotonic() + ASSIGNED_WITHIN_S
        while not self._assigned:
            if monotonic() > deadline:
                raise DriverError(f"group {self._job.group!r} gave no assignment within {ASSIGNED_WITHIN_S:.0f} s")
            self._poll()

    def _poll(self) -> None:
        """Do what the group asks for; nothing is fetched."""
        self._refuse(self._kafka.consume(1, JOIN_POLL_S))

    def _on_assign(self, kafka: KafkaConsumer, assigned: list[TopicPartition]) -> None:
        kafka.assign([])
        self._next = {place.partition: 0 for place in assigned}
        self._assigned = True

    def _on_revoke(self, kafka: KafkaConsumer, revoked: list[TopicPartition]) -> None:
        self._next = {}
        self._assigned = False

    def _refuse(self, messages: Sequence[Message]) -> None:
        """Raise the first error among them."""
        for error in map(_ERROR, messages):
            if error is not None:
                raise DriverError(f"consuming {self._job.topic!r}: {error.str()}")

    def run(self, signals: Signals) -> Consumed:
        self._seen.ids = {partition: bytearray() for partition in self._next}
        with _no_garbage_collection():
            started_ns = self._committed_ns = monotonic_ns()
            cpu_s = process_time()
            self._kafka.assign([TopicPartition(self._job.topic, *place) for place in self._next.items()])
            signals.started()
            try:
                self._consume(signals, started_ns)
            except KafkaException as error:
                raise DriverError(f"consuming {self._job.topic!r}: {error}") from error
            self.cpu_s = process_time() - cpu_s
            self._look_through()
        return self._seen

    def _consume(self, signals: Signals, started_ns: int) -> None:
        """Take batches as they come, each as large as what lies ready and no larger than the job's."""
        kafka, batch = self._kafka, self._job.batch_size
        messages_in_slice = requests = 0
        sent_ns, ends_ns = started_ns, started_ns + SLICE_NS
        deadline = Deadline(self._job.duration_s)
        while not self._reached(signals.targets()) and not deadline.over:
            messages = kafka.consume(batch, 0) or kafka.consume(1, POLL_S)
            now_ns = monotonic_ns()
            if messages:
                deadline.begin()
                self._take(messages, now_ns)
                messages_in_slice += len(messages)
                requests += 1
                done_ns = now_ns
                self._commit_after_batch(messages, now_ns)
            if now_ns >= ends_ns and messages_in_slice:
                self._row(requests, messages_in_slice, sent_ns, done_ns)
                messages_in_slice = requests = 0
                sent_ns, ends_ns = now_ns, now_ns + SLICE_NS
        if messages_in_slice:
            self._row(requests, messages_in_slice, sent_ns, done_ns)
        if self._next:  # a member without partitions has nothing to commit
            self._commit(self._next, wait=True)

    def _take(self, messages: list[Message], now_ns: int) -> None:
        """Note how far each partition is read; what small messages hold is looked at after the window.

        Large ones are looked at now: keeping them makes the allocator touch fresh memory for each, which costs several
        times the look.
        """
        offsets, partitions = list(map(_OFFSET, messages)), list(map(_PARTITION, messages))
        if any(map(_ERROR, messages)):
            self._refuse(messages)
        for partition, offset in dict(zip(partitions, offsets, strict=True)).items():  # the last of each partition
            self._next[partition] = offset + 1
        self._kept.append((partitions, list(map(_VALUE, messages)), now_ns))
        self._kept_bytes += len(messages) * self._job.message_size
        if self._job.message_size > KEPT_MESSAGE_BYTES_MAX or self._kept_bytes > KEPT_BYTES_MAX:
            self._look_through()

    def _row(self, requests: int, messages: int, sent_ns: int, done_ns: int) -> None:
        size = messages * self._job.message_size
        self._seen.rows.append(RequestRow(-1, requests, messages, size, sent_ns, done_ns, OK))

    def _reached(self, targets: Mapping[int, int] | None) -> bool:
        return targets is not None and all(offset >= targets[number] for number, offset in self._next.items())

    def _commit_after_batch(self, messages: Sequence[Message], now_ns: int) -> None:
        job = self._job
        if job.commit == "every_batch":
            read = {message.partition() or 0 for message in messages}
            self._commit(read, wait=self._seen.commits % COMMITS_UNDER_WAY_MAX == 0)
        elif job.commit_interval_ms is not None and now_ns - self._committed_ns >= job.commit_interval_ms * 1_000_000:
            self._committed_ns = now_ns
            self._commit(self._next, wait=False)

    def _commit(self, partitions: Iterable[int], *, wait: bool) -> None:
        """Commit how far the partitions are read; raises `DriverError` where this or an earlier one failed."""
        offsets = [TopicPartition(self._job.topic, number, self._next[number]) for number in partitions]
        if wait:
            for place in self._kafka.commit(offsets=offsets, asynchronous=False) or ():
                self._on_commit(place.error, [])
        else:
            self._kafka.commit(offsets=offsets, asynchronous=True)
        self._seen.commits += 1
        if self._commit_failed:
            raise DriverError(f"commit of group {self._job.group!r}: {self._commit_failed}")

    def _on_commit(self, error: KafkaError | None, places: list[TopicPartition]) -> None:
        failed = error or next((place.error for place in places if place.error is not None), None)
        if failed is not None:
            self._commit_failed = failed.str()

    def _look_through(self) -> None:
        ids, job = self._seen.ids, self._job
        for partitions, values, came_ns in self._kept:
            for partition, count in Counter(partitions).items() if job.end_to_end else ():
                self._seen.note_receipt(partition, count, came_ns)
            for partition, value in zip(partitions, values, strict=True):
                ids[partition] += value[:ID_BYTES].ljust(ID_BYTES, NO_ID)
                if not payload_is_right(value, job):
                    self._seen.wrong_payloads += 1
        self._kept.clear()
        self._kept_bytes = 0

    def close(self) -> None:
        self._kafka.close()
