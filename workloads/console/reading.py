"""Messages to lines: what `brokerlab consume` does."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, BinaryIO, Final, cast

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaError, KafkaException, TopicPartition

from workloads.console.connection import ClusterRefused, said

if TYPE_CHECKING:
    from confluent_kafka import Message

    from workloads.console.connection import Cluster

BATCH_MESSAGES: Final = 1000
POLL_S: Final = 0.1
# A consumer without a group commits nothing; the library wants a name all the same.
NO_GROUP: Final = "brokerlab-console"


@dataclass(frozen=True, slots=True)
class ReadSettings:
    group: str | None
    from_beginning: bool
    messages_max: int | None
    idle_s_max: float | None  # ends when no message came for so long


@dataclass(frozen=True, slots=True)
class Shown:
    """The parts of a message that precede its value in its line, with tabs between."""

    offset: bool
    headers: bool
    key: bool

    def line(self, message: Message) -> bytes:
        parts = []
        if self.offset:
            parts.append(f"Partition:{message.partition()}\tOffset:{message.offset()}".encode())
        if self.headers:
            parts.append(_headers(message))
        if self.key:
            parts.append(_bytes(message.key()))
        return b"\t".join([*parts, _bytes(message.value())]) + b"\n"


class Reader:
    def __init__(self, cluster: Cluster, topic: str, settings: ReadSettings) -> None:
        """Raises `UnknownTopic`, `NoAnswer`."""
        partitions = cluster.topic(topic).partitions
        self._topic = topic
        self._settings = settings
        self._read = 0
        config = cluster.config(**{
            "group.id": settings.group or NO_GROUP,
            "auto.offset.reset": "earliest" if settings.from_beginning else "latest",
            "enable.auto.commit": settings.group is not None,
            "enable.auto.offset.store": False,
            "fetch.queue.backoff.ms": 1,
            "error_cb": _note,
        })  # fmt: skip
        self._kafka = Consumer(config)
        if settings.group is not None:
            cluster.metadata(self._kafka)  # else its join may be late by ten seconds: `drivers.kafka.Consumer.join`
            self._kafka.subscribe([topic])
        else:
            start = OFFSET_BEGINNING if settings.from_beginning else OFFSET_END
            self._kafka.assign([TopicPartition(topic, number, start) for number in partitions])

    def print_to(self, out: BinaryIO, shown: Shown) -> None:
        """Print until as many as asked for have come or none comes any more. Raises `ClusterRefused`.

        Printed messages are committed, however this ends, where the settings name a group.
        """
        try:
            last = monotonic()
            while not self._enough(last):
                messages = self._next_messages()
                if messages:
                    self._print(messages, out, shown)
                    last = monotonic()
        except KafkaException as error:
            raise ClusterRefused(f"reading {self._topic!r}: {said(error)}") from error
        finally:
            self._kafka.close()

    def _enough(self, last: float) -> bool:
        settings = self._settings
        if settings.messages_max is not None and self._read >= settings.messages_max:
            return True
        return settings.idle_s_max is not None and monotonic() - last > settings.idle_s_max

    def _next_messages(self) -> list[Message]:
        """The ready messages, or the next to come; `consume` waits its whole time where fewer come than asked for."""
        count = BATCH_MESSAGES
        if self._settings.messages_max is not None:
            count = min(count, self._settings.messages_max - self._read)
        return self._kafka.consume(count, 0) or self._kafka.consume(1, POLL_S)

    def _print(self, messages: list[Message], out: BinaryIO, shown: Shown) -> None:
        for message in messages:
            if (error := message.error()) is not None:
                raise ClusterRefused(f"reading {self._topic!r}: {error.str()}")
        out.write(b"".join(map(shown.line, messages)))
        out.flush()
        self._read += len(messages)
        if self._settings.group is not None:
            for message in messages:
                self._kafka.store_offsets(message)


def _headers(message: Message) -> bytes:
    """`name:value` with commas between."""
    found = cast("list[tuple[str, str | bytes | None]]", message.headers() or [])
    return b",".join(name.encode() + b":" + _bytes(value) for name, value in found) or b"NO_HEADERS"


def _bytes(part: str | bytes | None) -> bytes:
    if part is None:
        return b"null"
    return part.encode() if isinstance(part, str) else part


def _note(error: KafkaError) -> None:
    if error.code() == KafkaError._ALL_BROKERS_DOWN:
        print("brokerlab: no broker answers any more; still trying", file=sys.stderr, flush=True)
