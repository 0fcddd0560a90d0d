"""The needs of both ends: from librdkafka, and from the interpreter while a window lasts."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from confluent_kafka import KafkaException

from workloads.clients.drivers.api import DriverError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from confluent_kafka import Consumer, Producer

    from workloads.clients.drivers.api import ConsumeJob, ProduceJob

CONNECT_WITHIN_S: Final = 10.0
POLL_S: Final = 0.05


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """The messages of a window are many and live until its end: looking for garbage among them only costs time."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def learn(kafka: Producer | Consumer, job: ProduceJob | ConsumeJob) -> None:
    """Ask for the brokers, and who leads the job's topic."""
    try:
        found = kafka.list_topics(job.topic, timeout=CONNECT_WITHIN_S)
    except KafkaException as error:
        raise DriverError(f"no answer from {', '.join(job.bootstrap)}: {error}") from error
    failed = found.topics[job.topic].error
    if failed is not None:
        raise DriverError(f"topic {job.topic!r}: {failed}")
