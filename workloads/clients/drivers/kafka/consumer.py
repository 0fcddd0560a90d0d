"""The consumer of the driver `kafka`: a member of a group, which takes batches of one partition and commits each."""

from __future__ import annotations

from time import monotonic, monotonic_ns
from typing import TYPE_CHECKING, Final, cast

from confluent_kafka import Consumer as KafkaConsumer
from confluent_kafka import KafkaException, Message, TopicPartition

from workloads.clients.drivers.api import Consumed, ConsumeJob, DriverError, Signals, WindowOrder
from workloads.clients.drivers.kafka.batches import cut
from workloads.clients.drivers.kafka.commits import Commit, Commits
from workloads.clients.drivers.kafka.library import POLL_S, failure_of, learn
from workloads.clients.drivers.payloads import look_through
from workloads.clients.drivers.slices import Slices

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from confluent_kafka import KafkaError

    from workloads.clients.history import History

# A member learns of a rebalance from its next heartbeat, up to three seconds later, and a rebalance may follow another.
ASSIGNED_WITHIN_S: Final = 30.0
COMMITTED_WITHIN_S: Final = 30.0
# Bytes of received messages that are kept unread within the window; larger ones are never kept.
KEPT_BYTES_MAX: Final = 512 * 1024 * 1024
KEPT_MESSAGE_BYTES_MAX: Final = 1024
# While a group forms, or commits are under way: librdkafka says what comes of it only when a poll ends.
JOIN_POLL_S: Final = 0.01
COMMIT_POLL_S: Final = 0.001
# A member is not polled between its windows, and must not be taken for dead. A day is the most that librdkafka takes.
UNPOLLED_MS_MAX: Final = 86_400_000
# Messages that are taken out of librdkafka's queue at once, as whole batches; never more than `fetch_ahead` batches, so
# that the key decides how many lie ready.
LUMP_MESSAGES: Final = 64
# The questions to messages, without a Python loop.
_ERROR: Final = Message.error
_OFFSET: Final = cast("Callable[[Message], int]", Message.offset)
_PARTITION: Final = cast("Callable[[Message], int]", Message.partition)
_VALUE: Final = cast("Callable[[Message], bytes]", Message.value)


class Consumer:
    """A member of a group, which takes up its partitions when a window begins and gives them back at its end, so that
    nothing is fetched outside of windows. (Paused ones would do the same, but librdkafka looks after a resumed
    partition up to a second later.) The group does not hear of it: its members and their shares stay.

    Which partitions are its own is the group's decision, and stands when all members have joined. Those that came first
    are given more in the meantime, and give it up while they are polled. So a member says that it has joined when it is
    first given anything, if only nothing, and is polled on until it hears that all have. By then it has given up what
    it had before the last one joined, since that one was answered after it, and what it is given next is for good.
    """

    def __init__(self, job: ConsumeJob, history: History | None = None) -> None:
        self._job = job
        self._history = history
        self._window_number = 0
        self._seen = Consumed()
        self._slices = Slices(job.message_size, 0, latencies=False)
        self._next: dict[int, int] = {}
        self._assigned = False  # perhaps no partition: there may be more members
        self._settled = False
        self._lost = False  # what was this member's for good
        self._kept: dict[int, list[bytes]] = {}  # values of messages, in their order
        self._kept_bytes = 0
        self._taken_ns = 0
        self._commits = Commits(job)
        self._commits_under_way = 0
        self._commit_failed = ""
        self._lump = min(-(-LUMP_MESSAGES // job.batch_size), job.fetch_ahead) * job.batch_size
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
                "queued.min.messages": job.fetch_ahead * job.batch_size,
                "max.poll.interval.ms": UNPOLLED_MS_MAX,
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
        self._settled = True
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
        self._lost = self._settled

    def _refuse(self, messages: Sequence[Message]) -> None:
        """Raise the first error among them, or that the group has divided its partitions again."""
        if self._lost:
            raise DriverError(f"group {self._job.group!r} took partitions away from a member in the middle of its job")
        for error in map(_ERROR, messages):
            if error is not None:
                raise DriverError(f"consuming {self._job.topic!r}: {error.str()}")

    def prepare(self, order: WindowOrder) -> None:
        self._window_number = order.number

    def run(self, signals: Signals, *, both: bool) -> Consumed:
        self._seen = Consumed(ids={partition: bytearray() for partition in self._next})
        self._slices = Slices(self._job.message_size, self._window_number, latencies=False)
        self._taken_ns = monotonic_ns()
        self._commits.begin(self._taken_ns)
        try:
            self._kafka.assign([TopicPartition(self._job.topic, *place) for place in self._next.items()])
            if both or not self._next:
                signals.working()
            self._consume(signals)
            self._finish()
        except KafkaException as error:
            raise DriverError(f"consuming {self._job.topic!r}: {error}") from error
        self._slices.close()
        self._seen.rows = self._slices.rows
        self._look_through()
        return self._seen

    def _consume(self, signals: Signals) -> None:
        """Take batches as they come. What was fetched and is not taken by the end is fetched again in the next
        window."""
        begun: list[Message] = []  # a batch that may go on in what comes next
        while not (self._reached(signals.targets()) or signals.stopped()):
            ready = self._kafka.consume(self._lump, 0)
            if not ready and not begun:
                ready = self._kafka.consume(1, POLL_S)
            self._refuse(ready)
            begun = self._take_all(begun + ready, signals, more=bool(ready))

    def _take_all(self, messages: list[Message], signals: Signals, *, more: bool) -> list[Message]:
        """Take the batches that these messages are, until the runner says stop. Returns the last one where it may go
        on, as there may be `more`."""
        targets = signals.targets()
        for partition, start, stop in cut(list(map(_PARTITION, messages)), self._job.batch_size):
            if more and stop == len(messages) and stop - start < self._job.batch_size:
                return messages[start:]
            if signals.stopped():
                break
            batch = messages[start:stop]
            if targets is not None and _OFFSET(batch[-1]) >= targets.get(partition, 0):
                batch = [message for message in batch if _OFFSET(message) < targets.get(partition, 0)]
            if batch:
                self._take(partition, batch)
                signals.working()
        return []

    def _take(self, partition: int, batch: list[Message]) -> None:
        """Note a batch of one partition and commit it; what small messages hold is looked at after the window.

        Large ones are looked at now: keeping them makes the allocator touch fresh memory for each, which costs several
        times the look.
        """
        now_ns, count = monotonic_ns(), len(batch)
        self._next[partition] = _OFFSET(batch[-1]) + 1
        values = list(map(_VALUE, batch))
        if self._history is not None:
            self._history.read([partition] * count, values, list(map(_OFFSET, batch)), self._taken_ns, now_ns)
        if self._job.end_to_end:
            self._seen.note_receipt(partition, count, now_ns, self._window_number)
        self._slices.note(count, self._taken_ns, now_ns)
        self._taken_ns = now_ns
        self._kept.setdefault(partition, []).extend(values)
        self._kept_bytes += count * self._job.message_size
        if self._job.message_size > KEPT_MESSAGE_BYTES_MAX or self._kept_bytes > KEPT_BYTES_MAX:
            self._look_through()
        if (due := self._commits.after_batch(partition, self._next[partition], now_ns)) is not None:
            self._commit(due)

    def _reached(self, targets: Mapping[int, int] | None) -> bool:
        """Whether everything up to the targets is taken, before the runner says stop."""
        if targets is None or any(offset < targets.get(partition, 0) for partition, offset in self._next.items()):
            return False
        self._seen.dry = bool(self._next)
        return True

    def _commit(self, due: Commit) -> None:
        """Raises `DriverError` where this commit or an earlier one failed."""
        offsets = [TopicPartition(self._job.topic, *place) for place in due.places.items()]
        if due.wait:
            answered = self._kafka.commit(offsets=offsets, asynchronous=False) or []
            self._commit_failed = self._commit_failed or failure_of(None, answered)
        else:
            self._commits_under_way += 1
            self._kafka.commit(offsets=offsets, asynchronous=True)
        self._seen.commits += 1
        self._refuse_failed_commit()

    def _on_commit(self, error: KafkaError | None, places: list[TopicPartition]) -> None:
        self._commits_under_way -= 1
        self._commit_failed = self._commit_failed or failure_of(error, places)

    def _refuse_failed_commit(self) -> None:
        if self._commit_failed:
            raise DriverError(f"commit of group {self._job.group!r}: {self._commit_failed}")

    def _finish(self) -> None:
        """Commit what is not committed, give the partitions back, so that nothing is fetched, and wait for the commits
        that are under way."""
        if (due := self._commits.rest()) is not None:
            self._commit(due)
        self._kafka.assign([])
        deadline = monotonic() + COMMITTED_WITHIN_S
        while self._commits_under_way > 0:
            if monotonic() > deadline:
                raise DriverError(
                    f"no answer to a commit of group {self._job.group!r} within {COMMITTED_WITHIN_S:.0f} s"
                )
            self._refuse(self._kafka.consume(1, COMMIT_POLL_S))
            self._refuse_failed_commit()

    def _look_through(self) -> None:
        for partition, values in self._kept.items():
            ids, wrong = look_through(values, self._job.message_size)
            self._seen.ids[partition] += ids
            self._seen.wrong_payloads += wrong
        self._kept.clear()
        self._kept_bytes = 0

    def close(self) -> None:
        self._kafka.close()
