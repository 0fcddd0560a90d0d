"""A topic's messages, for a system whose disks cannot be read: a plain fetch of all, after the timed window."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Final

import numpy as np
from confluent_kafka import Consumer, TopicPartition

from workloads.clients.drivers.api import ID_BYTES, NO_ID, DriverError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from workloads.clients.client_files import Ids

BATCH_MESSAGES: Final = 10_000
POLL_S: Final = 0.1
NEXT_WITHIN_S: Final = 30.0
# The library wants a group's name of a consumer that is none's member.
NO_GROUP: Final = "brokerlab-audit"


def read_back(bootstrap: Sequence[str], topic: str, ends: Mapping[int, int]) -> dict[int, Ids]:
    """Partition -> ids of its messages in the order of the log, from its beginning to its end offset.

    Every batch's CRC is checked. Nobody joins a group and nothing is committed. Raises `DriverError` where a partition
    cannot be read, or nothing comes for half a minute.
    """
    kafka = Consumer({
        "bootstrap.servers": ",".join(bootstrap),
        "group.id": NO_GROUP,
        "enable.auto.commit": False,
        "auto.offset.reset": "error",  # what was thrown away is missing, and is not passed over
        "check.crcs": True,
        "fetch.queue.backoff.ms": 1,
        "log_level": 0,
    })  # fmt: skip
    try:
        kafka.assign([TopicPartition(topic, partition, 0) for partition in ends])
        return _read(kafka, topic, ends)
    finally:
        kafka.close()


def _read(kafka: Consumer, topic: str, ends: Mapping[int, int]) -> dict[int, Ids]:
    found = {partition: bytearray() for partition in ends}
    left = {partition for partition, end in ends.items() if end}
    deadline = monotonic() + NEXT_WITHIN_S
    while left:
        messages = kafka.consume(BATCH_MESSAGES, 0) or kafka.consume(1, POLL_S)
        if messages:
            deadline = monotonic() + NEXT_WITHIN_S
        elif monotonic() > deadline:
            raise DriverError(f"reading back {topic!r}: nothing came within {NEXT_WITHIN_S:.0f} s")
        for message in messages:
            partition, offset, error = message.partition(), message.offset(), message.error()
            if error is not None or partition is None or offset is None:
                raise DriverError(f"reading back {topic!r}: {error.str() if error else 'a message has no place'}")
            if offset >= ends[partition]:
                continue  # it came after the ends were asked for
            found[partition] += (message.value() or b"")[:ID_BYTES].ljust(ID_BYTES, NO_ID)
            if offset + 1 >= ends[partition]:
                left.discard(partition)
    return {partition: np.frombuffer(ids, ">u8").astype(np.uint64) for partition, ids in found.items()}
