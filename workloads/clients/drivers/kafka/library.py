"""The needs of both ends from librdkafka, and its errors in the drivers' words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from confluent_kafka import KafkaException

from workloads.clients.drivers.api import STORAGE_FAILED, DriverError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

    from workloads.clients.drivers.api import ConsumeJob, ProduceJob

CONNECT_WITHIN_S: Final = 10.0
# The wait for what comes next; the runner's word is heard between two of them.
POLL_S: Final = 0.02
# Names that differ between librdkafka and the drivers.
_STATUS: Final = {"KAFKA_STORAGE_ERROR": STORAGE_FAILED}


def learn(kafka: Producer | Consumer, job: ProduceJob | ConsumeJob) -> None:
    """Ask for the brokers, and who leads the job's topic."""
    try:
        found = kafka.list_topics(job.topic, timeout=CONNECT_WITHIN_S)
    except KafkaException as error:
        raise DriverError(f"no answer from {', '.join(job.bootstrap)}: {error}") from error
    failed = found.topics[job.topic].error
    if failed is not None:
        raise DriverError(f"topic {job.topic!r}: {failed}")


def status_of(error: KafkaError) -> str:
    """The name of an error in rows of requests."""
    return _STATUS.get(error.name(), error.name())


def failure_of(error: KafkaError | None, places: Sequence[TopicPartition]) -> str:
    """Why a commit failed, as a whole or for one of its places; empty where it did not."""
    failed = error or next((place.error for place in places if place.error is not None), None)
    return "" if failed is None else failed.str()
