"""Lines to messages: what `brokerlab produce` does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import KafkaError, KafkaException, Producer

from workloads.console.connection import ClusterRefused, said
from workloads.errors import BrokerlabError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from confluent_kafka import Message

    from workloads.console.connection import Cluster

DELIVER_WITHIN_MS: Final = 30_000
LINGER_MS: Final = 5
POLL_S: Final = 0.1
MESSAGE_BYTES_MAX: Final = 1_000_000  # with key, headers and what the format adds; the client library's own default


class NoKey(BrokerlabError):
    """A line lacks the separator behind its key; the lines before it are sent."""


class LineRefused(BrokerlabError):
    """The client library does not take a line; the lines before it are sent."""


@dataclass(frozen=True, slots=True)
class SendSettings:
    acks: str
    compression: str
    headers: Sequence[tuple[str, bytes]]
    key_separator: bytes | None


class Sender:
    def __init__(self, cluster: Cluster, topic: str, settings: SendSettings) -> None:
        """Raises `UnknownTopic`, `NoAnswer`."""
        cluster.topic(topic)
        self._topic = topic
        self._settings = settings
        self._handed_over = self._failed = 0
        self._first_failure = ""
        config = cluster.config(**{
            "acks": settings.acks,
            "compression.type": settings.compression,
            "linger.ms": LINGER_MS,
            "message.timeout.ms": DELIVER_WITHIN_MS,
            "message.max.bytes": MESSAGE_BYTES_MAX,
            "delivery.report.only.error": True,
        })  # fmt: skip
        self._kafka = Producer(config)

    def send(self, lines: Iterable[bytes]) -> None:
        """Send each line, and return when all are acknowledged. Raises `ClusterRefused`, `NoKey`, `LineRefused`."""
        try:
            for line in lines:
                self._hand_over(line.removesuffix(b"\n"))
                self._kafka.poll(0)
        finally:  # also of what came before a bad line or Ctrl-C
            while len(self._kafka):
                self._kafka.poll(POLL_S)
        self._refuse_failed()

    def _hand_over(self, line: bytes) -> None:
        message: dict[str, Any] = {"value": line, "headers": list(self._settings.headers)}
        separator = self._settings.key_separator
        if separator is not None:
            key, found, value = line.partition(separator)
            if not found:
                raise NoKey(f"line {self._handed_over + 1} has no {separator.decode()!r} behind a key")
            message |= {"key": key, "value": value}
        while True:
            try:
                self._kafka.produce(self._topic, on_delivery=self._on_failure, **message)
            except BufferError:  # as much as the library keeps is on its way
                self._kafka.poll(POLL_S)
            except KafkaException as error:
                raise LineRefused(_refusal(self._handed_over + 1, len(line), error)) from error
            else:
                self._handed_over += 1
                return

    def _on_failure(self, error: KafkaError | None, message: Message) -> None:
        assert error is not None, "only failures are reported"
        self._failed += 1
        self._first_failure = self._first_failure or error.str()

    def _refuse_failed(self) -> None:
        if self._failed:
            raise ClusterRefused(
                f"{self._failed} of {self._handed_over} messages were not acknowledged: {self._first_failure}"
            )


def _refusal(number: int, size: int, error: KafkaException) -> str:
    allowed = ""
    if error.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE:
        allowed = f"; a message has at most {MESSAGE_BYTES_MAX:,} bytes, with its key and headers"
    return f"line {number} of {size:,} bytes was not sent: {said(error)}{allowed}"
