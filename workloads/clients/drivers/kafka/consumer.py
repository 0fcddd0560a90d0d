"""The consumer of the driver `kafka`: a member of a group, which takes batches as they lie ready."""

from __future__ import annotations

from collections import Counter
from time import monotonic, monotonic_ns
from typing import TYPE_CHECKING, Final, cast

from confluent_kafka import Consumer as KafkaConsumer
from confluent_kafka import KafkaException, Message, TopicPartition

from workloads.clients.drivers.api import (
    ID_BYTES,
    NO_ID,
    OK,
    Consumed,
    ConsumeJob,
    Deadline,
    DriverError,
    RequestRow,
    Signals,
    payload_is_right,
)
from workloads.clients.drivers.kafka.library import POLL_S, learn, without_garbage_collection
from workloads.clients.drivers.slices import SLICE_NS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from confluent_kafka import KafkaError

    from workloads.clients.history import History

# A member learns of a rebalance from its next heartbeat, up to three seconds later, and a rebalance may follow another.
ASSIGNED_WITHIN_S: Final = 30.0
# Bytes of received messages that are kept unread within the window; larger ones are never kept.
KEPT_BYTES_MAX: Final = 512 * 1024 * 1024
KEPT_MESSAGE_BYTES_MAX: Final = 1024
# While a group forms: librdkafka says what comes of it only when a poll ends.
JOIN_POLL_S: Final = 0.01
# Every so many commits one waits for its answer, and so for all before it: that many are under way at most. More would
# be a little faster, and a window would end before its commits: a short one would show a rate that cannot last.
COMMITS_UNDER_WAY_MAX: Final = 16
# So many batches of each partition lie ready at the consumer: enough that it never waits for the millisecond after
# which librdkafka looks again, few enough that a window is filled by fetches of what it consumes. librdkafka's own
# 100,000 messages make it fetch as fast as it can for the first seconds, and commits stand in line behind that.
FETCHED_AHEAD_BATCHES: Final = 20
# The questions to a batch of messages, without a Python loop.
_ERROR: Final = Message.error
_OFFSET: Final = cast("Callable[[Message], int]", Message.offset)
_PARTITION: Final = cast("Callable[[Message], int]", Message.partition)
_VALUE: Final = cast("Callable[[Message], bytes]", Message.value)


class Consumer:
    """A member of a group, which takes up its partitions when the run begins, so that nothing is fetched before its
    window. (Paused ones would do the same, but librdkafka looks after a resumed partition up to a second later.)

    Which partitions are its own is the group's decision, and stands when all members have joined. Those that came first
    are given more in the meantime, and give it up while they are polled. So a member says that it has joined when it is
    first given anything, if only nothing, and is polled on until it hears that all have. By then it has given up what
    it had before the last one joined, since that one was answered after it, and what it is given next is for good.
    """

    def __init__(self, job: ConsumeJob, history: History | None = None) -> None:
        self._job = job
        self._history = history
        self._seen = Consumed()
        self._next: dict[int, int] = {}
        self._assigned = False  # perhaps no partition: there may be more members
        # Partitions and values of messages, in their order, and when they came.
        self._kept: list[tuple[list[int], list[bytes], int]] = []
        self._kept_bytes = 0
        self._committed_ns = self._looked_ns = 0
        self._commit_failed = ""
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
        learn(self._kafka, self._job)
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
        with without_garbage_collection():
            started_ns = self._committed_ns = self._looked_ns = monotonic_ns()
            self._kafka.assign([TopicPartition(self._job.topic, *place) for place in self._next.items()])
            signals.started()
            try:
                self._consume(signals, started_ns)
            except KafkaException as error:
                raise DriverError(f"consuming {self._job.topic!r}: {error}") from error
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
        values = list(map(_VALUE, messages))
        if self._history is not None:
            self._history.read(partitions, values, offsets, self._looked_ns, now_ns)
            self._looked_ns = now_ns
        self._kept.append((partitions, values, now_ns))
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
