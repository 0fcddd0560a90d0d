"""The producer of the driver `kafka`.

librdkafka forms the requests itself, in threads of its own: `batch.num.messages` puts a batch into one request, and
the brokers count what really came. The driver sees this much without slowing the client down:

- Which messages failed is certain: failures alone are reported back, one callback each.
- How many are acknowledged is read between sends: handed over, less those still on their way. Rows are slices of 10 ms
  with a latency histogram, for which acknowledgements are matched to sends in order. Where partitions overtake each
  other that mixes up single latencies; their sum, and so the mean, stays exact.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from operator import itemgetter
from time import monotonic, monotonic_ns
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import Producer as KafkaProducer

from workloads.clients.drivers.api import (
    COUNTER_BITS,
    ID_BYTES,
    NS_PER_S,
    OK,
    STORAGE_FAILED,
    DriverError,
    Produced,
    ProduceJob,
    RequestRow,
    payloads,
)
from workloads.clients.drivers.kafka.library import CONNECT_WITHIN_S, POLL_S, learn, without_garbage_collection
from workloads.clients.drivers.slices import Slices
from workloads.clients.history import FAIL, NO_OFFSET, SEND, UNKNOWN, Operation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from confluent_kafka import KafkaError, Message

    from workloads.clients.history import History

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
# Whole batches are handed over and leave at once, so this bounds only the wait for a rest of one. It is long, because
# a producer that is interrupted in the middle of a batch must not have its first half sent.
LINGER_MS: Final = 200
# About two and a half seconds. A later failure has the broker's reason; a timeout has none.
RETRIES_MAX: Final = 5
STATISTICS_MS: Final = 50
FLUSH_S: Final = 0.005
# Names that differ between librdkafka and the drivers.
_STATUS: Final = {"KAFKA_STORAGE_ERROR": STORAGE_FAILED}
# librdkafka refuses these itself; of any other error an earlier attempt may have been stored.
_NEVER_SENT: Final = {"MSG_SIZE_TOO_LARGE", "_PURGE_QUEUE", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION"}


class Producer:
    def __init__(self, job: ProduceJob, history: History | None = None) -> None:
        self._job = job
        self._history = history
        self._failed: dict[int, str] = {}  # counter -> error
        self._sends: list[tuple[int, int]] = []
        chunk = self._chunk_messages()
        self._payloads = self._payload_chunks(chunk)
        self._brokers_up = False
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
                "delivery.report.only.error": history is None,
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

    def run(self) -> Produced:
        slices = Slices(self._job)
        with without_garbage_collection():
            handed_over = self._send(slices)
        slices.close()
        return self._told(slices.rows, handed_over)

    def _send(self, slices: Slices) -> list[tuple[int, range]]:
        """Hand everything over and wait until nothing is on its way; the answer is which counters went where."""
        kafka, chunk, job = self._kafka, self._chunk_messages(), self._job
        rows: list[dict[str, Any]] = [{"value": b""} for _ in range(chunk)]
        on_their_way_max = self._on_their_way_max(chunk)
        sent: list[tuple[int, range]] = []
        on_delivery = self._on_failure if self._history is None else self._on_end
        total, started_ns = 0, monotonic_ns()
        for number, values in enumerate(self._payloads):
            intended_ns = None if job.rate is None else started_ns + int(total / job.rate * NS_PER_S)
            self._wait(slices, total, on_their_way_max, intended_ns)
            now_ns = monotonic_ns()
            if job.duration_s is not None and now_ns - started_ns > job.duration_s * NS_PER_S:
                break
            for row, value in zip(rows, values, strict=False):
                row["value"] = value
            partition = (number + job.producer) % job.partitions
            taken = kafka.produce_batch(job.topic, rows[: len(values)], partition=partition, on_delivery=on_delivery)
            if taken < len(values):
                raise DriverError(f"librdkafka took {taken} of {len(values)} messages that were handed to it")
            sent.append((partition, range(total, total + len(values))))
            self._sends.append((total, intended_ns or now_ns))
            total += len(values)
            slices.sent(total, intended_ns or now_ns)
            kafka.poll(0)
            slices.acknowledged(total - len(kafka))
        self._finish(slices, total)
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
        self._failed[counter_of(message)] = _STATUS.get(error.name(), error.name())

    def _on_end(self, error: KafkaError | None, message: Message) -> None:
        """Note the end of a message, good or bad, in the history."""
        assert self._history is not None, "only a history asks for ends"
        detail, outcome, offset = "", OK, message.offset()
        if error is not None:
            self._on_failure(error, message)
            detail = _STATUS.get(error.name(), error.name())
            outcome = FAIL if detail in _NEVER_SENT else UNKNOWN
        elif self._job.acks == 0:  # it left, and nobody knows where it came
            outcome = UNKNOWN
        counter, partition = counter_of(message), message.partition()
        assert partition is not None, "each message is sent to a partition"
        _, invoked_ns = self._sends[bisect_right(self._sends, counter, key=itemgetter(0)) - 1]
        first = (self._job.producer << COUNTER_BITS) + counter
        offset = NO_OFFSET if outcome != OK or offset is None else offset
        self._history.note(Operation(SEND, partition, first, 1, offset, invoked_ns, monotonic_ns(), outcome, detail))

    def _told(self, rows: list[RequestRow], handed_over: Sequence[tuple[int, range]]) -> Produced:
        """The sent messages, without those that failed."""
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


def counter_of(message: Message) -> int:
    return int.from_bytes((message.value() or b"")[:ID_BYTES], "big") & ((1 << COUNTER_BITS) - 1)
