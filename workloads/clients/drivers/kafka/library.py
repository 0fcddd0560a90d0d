"""The needs of both ends from librdkafka."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from confluent_kafka import KafkaException

from workloads.clients.drivers.api import DriverError

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Producer

    from workloads.clients.drivers.api import ConsumeJob, ProduceJob

CONNECT_WITHIN_S: Final = 10.0
# The wait for what comes next; the runner's word is heard between two of them.
POLL_S: Final = 0.02


def learn(kafka: Producer | Consumer, job: ProduceJob | ConsumeJob) -> None:
    """Ask for the brokers, and who leads the job's topic."""
    try:
        found = kafka.list_topics(job.topic, timeout=CONNECT_WITHIN_S)
    except KafkaException as error:
        raise DriverError(f"no answer from {', '.join(job.bootstrap)}: {error}") from error
    failed = found.topics[job.topic].error
    if failed is not None:
        raise DriverError(f"topic {job.topic!r}: {failed}")
