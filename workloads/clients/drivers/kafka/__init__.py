"""Driver `kafka`: librdkafka through confluent-kafka, the data plane of the default profiles."""

from __future__ import annotations

from workloads.clients.drivers.kafka.consumer import Consumer
from workloads.clients.drivers.kafka.producer import Producer

__all__ = ["Consumer", "Producer"]
