"""The tables as the paper draws them: topic | partition | broker, consumer | offset, and the brokers. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from coordinators.dsbs.machine import topics
from coordinators.dsbs.tables.rows import Status

if TYPE_CHECKING:
    from coordinators.dsbs.machine.machine import Machine


@dataclass(frozen=True, slots=True)
class BrokerLine:
    broker: int
    address: str
    status: str
    incarnation: int


@dataclass(frozen=True, slots=True)
class PartitionLine:
    topic: str
    partition: int
    broker: int
    epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class OffsetLine:
    consumer: str
    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class Tables:
    """`hash` is equal on brokers whose tables are; `offsets` are of the groups that this broker serves."""

    hash: str
    brokers: tuple[BrokerLine, ...]
    partitions: tuple[PartitionLine, ...]
    offsets: tuple[OffsetLine, ...]
    refused: tuple[tuple[str, int], ...]


def printed(machine: Machine) -> Tables:
    return Tables(
        hash=f"{machine.table.hash:016x}",
        brokers=_brokers(machine),
        partitions=_partitions(machine),
        offsets=_offsets(machine),
        refused=tuple(sorted(machine.refused.items())),
    )


def _brokers(machine: Machine) -> tuple[BrokerLine, ...]:
    return tuple(
        BrokerLine(number, f"{row.broker.host}:{row.broker.rpc_port}", Status(row.status).name.lower(), row.incarnation)
        for number, row in sorted(machine.table.members.items())
    )


def _partitions(machine: Machine) -> tuple[PartitionLine, ...]:
    found = (topics.topic_seen(machine.table, name) for name in sorted(machine.table.topics))
    return tuple(
        PartitionLine(topic.name, number, at.leader, at.epoch, at.replicas, at.in_sync)
        for topic in found
        if topic is not None
        for number, at in enumerate(topic.partitions)
    )


def _offsets(machine: Machine) -> tuple[OffsetLine, ...]:
    return tuple(
        OffsetLine(group, at.topic, at.partition, row.offset)
        for group, rows in sorted(machine.offsets.served())
        for at, row in sorted(rows.items())
    )
