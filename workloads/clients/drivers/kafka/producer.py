"""The producer of the driver `kafka`.

librdkafka forms the requests itself, in threads of its own: `batch.num.messages` puts a batch into one request, and
the brokers count what really came. The driver asks to be told of the last message of each batch alone, because one
callback a message would cost more than everything else. A batch is handed over in one call and leaves as one request,
so what became of its last message became of all.
"""

from __future__ import annotations

import json
from functools import partial
from time import monotonic, monotonic_ns, sleep
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import Producer as KafkaProducer

from workloads.clients.drivers.api import (
    COUNTER_BITS,
    ID_BYTES,
    NS_PER_S,
    OK,
    DriverError,
    Produced,
    ProduceJob,
    Signals,
    WindowOrder,
)
from workloads.clients.drivers.kafka.batches import CALL_MESSAGES_MAX, Feed
from workloads.clients.drivers.kafka.library import CONNECT_WITHIN_S, POLL_S, learn, status_of
from workloads.clients.drivers.payloads import Stock
from workloads.clients.drivers.slices import Slices
from workloads.clients.history import FAIL, NO_OFFSET, SEND, UNKNOWN, Operation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from confluent_kafka import KafkaError, Message

    from workloads.clients.history import History

# Payloads made before a window that ends by the runner's word: at first a guess, a tenth of a second at 200,000
# messages/s; then half as many again as the last window took.
FIRST_WINDOW_MESSAGES: Final = 20_000
FIRST_WINDOW_BYTES_MAX: Final = 64 * 1024 * 1024
# Whole batches are handed over and leave at once, so this bounds only the wait for a rest of one. It is long, because
# a producer that is interrupted in the middle of a batch must not have its first half sent.
LINGER_MS: Final = 1000
# About two and a half seconds. A later failure has the broker's reason; a timeout has none.
RETRIES_MAX: Final = 5
STATISTICS_MS: Final = 50
FLUSH_S: Final = 0.005
# librdkafka waits in whole milliseconds; less than one is slept through in parts of this length, so that
# acknowledgements are heard in time and the brokers have the processor.
NAP_S_MAX: Final = 0.0002
POLL_S_MIN: Final = 0.001
# At a fixed rate, a cluster that falls behind leaves the client with this much at most.
BACKLOG_BYTES_MAX: Final = 1024 * 1024 * 1024
# librdkafka refuses these itself; of any other error an earlier attempt may have been stored.
_NEVER_SENT: Final = {"MSG_SIZE_TOO_LARGE", "_PURGE_QUEUE", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION"}


class Producer:
    def __init__(self, job: ProduceJob, history: History | None = None) -> None:
        self._job = job
        self._history = history
        self._order = WindowOrder(0)
        self._feed = Feed(job.partitions, job.in_flight, job.batch_size, job.message_size)
        self._stock = Stock(job)
        self._counter = 0  # of the next message
        self._window_began = 0  # at this counter
        self._rows: list[dict[str, Any]] = [{"value": b""} for _ in range(max(CALL_MESSAGES_MAX, job.batch_size))]
        self._produced = Produced()
        self._slices = Slices(job.message_size, 0, latencies=True)
        self._brokers_up = False
        answer_within_ms = int(job.answer_within_s * 1000)
        largest = 2 * job.batch_size * job.message_size + 100_000
        self._kafka = KafkaProducer(
            {
                "bootstrap.servers": ",".join(job.bootstrap),
                "acks": job.acks,
                "message.timeout.ms": answer_within_ms,
                "retries": RETRIES_MAX,
                "linger.ms": min(LINGER_MS, answer_within_ms // 2),
                "batch.num.messages": job.batch_size,
                "batch.size": max(1_000_000, largest),
                "message.max.bytes": max(1_000_000, largest),
                "max.in.flight.requests.per.connection": job.in_flight,
                # The feed and the backlog bound what is handed over.
                "queue.buffering.max.messages": 0,
                "queue.buffering.max.kbytes": 2_097_151,
                "socket.nagle.disable": True,
                "enable.sparse.connections": False,
                "statistics.interval.ms": STATISTICS_MS,
                "stats_cb": self._on_statistics,
            }
        )

    def connect(self) -> None:
        """Learn who leads, and have a connection to every broker."""
        learn(self._kafka, self._job)
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

    def prepare(self, order: WindowOrder) -> None:
        """Make payloads: all of an exact number, else as many as the window probably takes."""
        self._order = order
        self._stock.prepare(self._expected() if order.messages is None else order.messages)

    def _expected(self) -> int:
        if not self._counter:
            return min(FIRST_WINDOW_MESSAGES, FIRST_WINDOW_BYTES_MAX // self._job.message_size)
        return (self._counter - self._window_began) * 3 // 2

    def run(self, signals: Signals) -> Produced:
        self._window_began = self._counter
        self._produced = Produced()
        self._slices = Slices(self._job.message_size, self._order.number, latencies=True)
        if self._order.rate is None:
            self._send(signals)
        else:
            self._send_paced(signals, self._order.rate)
        self._finish(signals)
        self._slices.close()
        self._produced.rows = self._slices.rows
        self._produced.sent = self._counter - self._window_began
        return self._produced

    def _send(self, signals: Signals) -> None:
        """Keep every partition fed."""
        kafka, feed, batch = self._kafka, self._feed, self._job.batch_size
        feed.hungry = True
        while not signals.stopped():
            if feed.hungry:
                left = self._left()
                if left == 0:
                    return
                for partition, batches in feed.next(None if left is None else -(-left // batch)):
                    self._hand_over(partition, batches, monotonic_ns())
            kafka.poll(0 if feed.hungry else POLL_S)
            self._tell_of_work(signals)

    def _send_paced(self, signals: Signals, rate: float) -> None:
        """Hand over one batch at a time, when it is due or, where the client or the memory is behind, later; never
        ahead. Partitions take turns."""
        job, started_ns = self._job, monotonic_ns()
        batches = 0
        while self._left() != 0:
            due_ns = started_ns + int(batches * job.batch_size / rate * NS_PER_S)
            if not self._wait_until(due_ns, signals):
                return
            partition = (batches + job.producer) % job.partitions
            self._feed.under_way[partition] += 1
            self._hand_over(partition, 1, due_ns)
            batches += 1

    def _wait_until(self, due_ns: int, signals: Signals) -> bool:
        """Let acknowledgements come in until the moment has come; False where the runner says stop before."""
        batch_bytes = self._job.batch_size * self._job.message_size
        while not signals.stopped():
            left_s = (due_ns - monotonic_ns()) / NS_PER_S
            full = sum(self._feed.under_way) * batch_bytes > BACKLOG_BYTES_MAX
            if 0 < left_s < POLL_S_MIN and not full:
                sleep(min(left_s, NAP_S_MAX))
            self._kafka.poll(POLL_S if full else min(POLL_S, left_s) if left_s >= POLL_S_MIN else 0)
            self._tell_of_work(signals)
            if left_s <= 0 and not full:
                return True
        return False

    def _left(self) -> int | None:
        """Messages that the window still has to send; None where the runner ends it."""
        if self._order.messages is None:
            return None
        return self._order.messages - (self._counter - self._window_began)

    def _hand_over(self, partition: int, batches: int, sent_ns: int) -> None:
        """Give batches of one partition to librdkafka, in one call."""
        job, left = self._job, self._left()
        messages = batches * job.batch_size if left is None else min(batches * job.batch_size, left)
        rows = self._rows[:messages]
        for row, value in zip(rows, self._stock.take(messages), strict=True):
            row["value"] = value
        each = None if self._history is None else partial(self._on_end, self._history, sent_ns)
        lasts = self._ask_for_ends(rows, partition, sent_ns)
        taken = self._kafka.produce_batch(job.topic, rows, partition=partition, on_delivery=each)
        if taken < messages:
            raise DriverError(f"librdkafka took {taken} of {messages} messages that were handed to it")
        for last in lasts:
            del last["callback"]
        self._produced.sends.append((self._counter, sent_ns))
        self._counter += messages

    def _ask_for_ends(self, rows: Sequence[dict[str, Any]], partition: int, sent_ns: int) -> list[dict[str, Any]]:
        """Put callbacks into the rows that end a batch, and return these."""
        lasts = []
        for first in range(0, len(rows), self._job.batch_size):
            stop = min(first + self._job.batch_size, len(rows))
            counters = range(self._counter + first, self._counter + stop)
            rows[stop - 1]["callback"] = partial(self._on_batch_end, partition, counters, sent_ns)
            lasts.append(rows[stop - 1])
        return lasts

    def _on_batch_end(
        self, partition: int, counters: range, sent_ns: int, error: KafkaError | None, message: Message
    ) -> None:
        self._feed.ended(partition)
        if error is None:
            self._slices.note(len(counters), sent_ns, monotonic_ns())
        self._produced.note(partition, counters, OK if error is None else status_of(error))
        if self._history is not None:
            self._on_end(self._history, sent_ns, error, message)

    def _on_end(self, history: History, sent_ns: int, error: KafkaError | None, message: Message) -> None:
        """Note the end of a message, good or bad, in the history."""
        detail, outcome, offset = "", OK, message.offset()
        if error is not None:
            detail = status_of(error)
            outcome = FAIL if detail in _NEVER_SENT else UNKNOWN
        elif self._job.acks == 0:  # it left, and nobody knows where it came
            outcome = UNKNOWN
        partition = message.partition()
        assert partition is not None, "each message is sent to a partition"
        first = (self._job.producer << COUNTER_BITS) + counter_of(message)
        offset = NO_OFFSET if outcome != OK or offset is None else offset
        history.note(Operation(SEND, partition, first, 1, offset, sent_ns, monotonic_ns(), outcome, detail))

    def _tell_of_work(self, signals: Signals) -> None:
        if self._produced.acknowledged:
            signals.working()

    def _finish(self, signals: Signals) -> None:
        """Wait until nothing is on its way; a flush does not let the rest of a batch linger."""
        while any(self._feed.under_way):
            self._kafka.flush(FLUSH_S)
            self._tell_of_work(signals)

    def close(self) -> None:
        self._kafka.purge()
        self._kafka.flush(1)


def counter_of(message: Message) -> int:
    return int.from_bytes((message.value() or b"")[:ID_BYTES], "big") & ((1 << COUNTER_BITS) - 1)
