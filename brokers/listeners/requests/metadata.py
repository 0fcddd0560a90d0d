"""Metadata, ListOffsets and InitProducerId: what a client asks before it sends or reads anything."""

from __future__ import annotations

import secrets
from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING, Final

from brokers.listeners.requests.timestamps import first_not_older
from brokers.listeners.service import CLUSTER_ID, code_of, epoch_fault
from brokers.log.errors import LogError
from brokers.wire.apis.list_offsets import (
    EARLIEST,
    LATEST,
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from brokers.wire.apis.metadata import (
    InitProducerIdResponse,
    MetadataBroker,
    MetadataPartition,
    MetadataResponse,
    MetadataTopic,
)
from brokers.wire.errors import NAMED_MAX, ErrorCode
from coordinators.errors import CoordinationError, TopicExists
from coordinators.model import NO_LEADER, TopicPartition, TopicSettings, topic_name_fault

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from brokers.listeners.service import Caller, Service
    from brokers.replication.replica import Leadership
    from brokers.wire.apis.list_offsets import ListOffsetsPartition, ListOffsetsRequest
    from brokers.wire.apis.metadata import InitProducerIdRequest, MetadataRequest
    from coordinators.model import ClusterView, Topic

_PRODUCER_ID_BITS: Final = 62
_TWICE: Final = ErrorCode.INVALID_REQUEST  # what a partition gets that a request names twice, as in Kafka


def metadata(
    service: Service, caller: Caller, request: MetadataRequest
) -> MetadataResponse | Coroutine[Any, Any, MetadataResponse]:
    """Brokers and topics as this broker knows them. Missing ones are asked for where the architecture keeps metadata
    elsewhere, and made where that is allowed."""
    view = service.coordinator.view()
    names = None if request.topics is None else list(dict.fromkeys(topic.name for topic in request.topics))
    missing = [name for name in names or () if name not in view.topics and topic_name_fault(name) is None]
    if missing:
        return _found_or_made(service, missing, names, make=request.allow_auto_topic_creation)
    return _described(service, names)


async def _found_or_made(
    service: Service, missing: list[str], names: list[str] | None, *, make: bool
) -> MetadataResponse:
    try:
        await service.coordinator.find_topics(missing)
    except CoordinationError as error:  # what is known is described all the same
        service.metrics.refuse(type(error).__name__)
    defaults = service.defaults
    known = service.coordinator.view().topics
    for name in missing if make and defaults.auto_create else ():
        if name in known:
            continue
        try:
            await service.topics.create(name, defaults.partitions, defaults.replication_factor, TopicSettings())
        except TopicExists:
            continue  # another client was quicker
        except (CoordinationError, LogError) as error:
            service.metrics.refuse(type(error).__name__)
    return _described(service, names)


def _described(service: Service, names: list[str] | None) -> MetadataResponse:
    view = service.coordinator.view()
    return MetadataResponse(
        brokers=tuple(
            MetadataBroker(node_id=broker.id, host=broker.host, port=broker.kafka_port)
            for broker in view.brokers.values()
        ),
        cluster_id=CLUSTER_ID,
        controller_id=view.controller,
        topics=tuple(_topic(view, name) for name in (view.topics if names is None else names)),
    )


def _topic(view: ClusterView, name: str) -> MetadataTopic:
    topic = view.topics.get(name)
    if topic is None:
        invalid = topic_name_fault(name) is not None
        code = ErrorCode.INVALID_TOPIC_EXCEPTION if invalid else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return MetadataTopic(error_code=code, name=name)
    return MetadataTopic(error_code=ErrorCode.NONE, name=name, partitions=_partitions(view, topic))


def _partitions(view: ClusterView, topic: Topic) -> tuple[MetadataPartition, ...]:
    """A leader that is not alive is none."""
    rows = []
    for number, partition in enumerate(topic.partitions):
        leader = partition.leader if partition.leader in view.brokers else NO_LEADER
        rows.append(
            MetadataPartition(
                error_code=ErrorCode.LEADER_NOT_AVAILABLE if leader == NO_LEADER else ErrorCode.NONE,
                partition_index=number,
                leader_id=leader,
                leader_epoch=partition.epoch,
                replica_nodes=partition.replicas,
                isr_nodes=partition.in_sync,
                offline_replicas=tuple(replica for replica in partition.replicas if replica not in view.brokers),
            )
        )
    return tuple(rows)


async def list_offsets(service: Service, caller: Caller, request: ListOffsetsRequest) -> ListOffsetsResponse:
    wanted = [(topic.name, part) for topic in request.topics for part in topic.partitions]
    leaders: list[Leadership | ErrorCode] = [ErrorCode.INVALID_REQUEST] * len(wanted)
    if len(wanted) <= NAMED_MAX:
        leaders = await service.leaders_now([TopicPartition(name, part.partition_index) for name, part in wanted])
    named = Counter((name, part.partition_index) for name, part in wanted)
    rows = [
        (name, await _offset(service, part, leader if named[name, part.partition_index] == 1 else _TWICE))
        for (name, part), leader in zip(wanted, leaders, strict=True)
    ]
    return ListOffsetsResponse(
        topics=tuple(
            ListOffsetsTopicResponse(name=name, partitions=tuple(part for _, part in parts))
            for name, parts in groupby(rows, key=lambda row: row[0])
        )
    )


async def _offset(
    service: Service, part: ListOffsetsPartition, leader: Leadership | ErrorCode
) -> ListOffsetsPartitionResponse:
    number = part.partition_index
    error = leader if isinstance(leader, ErrorCode) else epoch_fault(leader, part.current_leader_epoch)
    if isinstance(leader, ErrorCode) or error is not ErrorCode.NONE:
        return ListOffsetsPartitionResponse(partition_index=number, error_code=error)
    replica, timestamp = leader.replica, part.timestamp
    found: tuple[int, int] | None
    if timestamp == EARLIEST:
        found = replica.start_offset, -1
    elif timestamp == LATEST:
        found = replica.readable_end, -1
    elif timestamp < 0:
        return ListOffsetsPartitionResponse(partition_index=number, error_code=ErrorCode.INVALID_REQUEST)
    else:
        try:
            found = await first_not_older(service.slices, replica.log, timestamp)
        except LogError as failed:
            return ListOffsetsPartitionResponse(partition_index=number, error_code=code_of(failed))
    offset, at = found or (-1, -1)
    return ListOffsetsPartitionResponse(
        partition_index=number, error_code=ErrorCode.NONE, timestamp=at, offset=offset, leader_epoch=leader.epoch
    )


def init_producer_id(service: Service, caller: Caller, request: InitProducerIdRequest) -> InitProducerIdResponse:
    """A fresh id. Random, so that no two brokers need agree on it and none survives in a file; 62 bits do not meet."""
    if request.transactional_id is not None:
        return InitProducerIdResponse(error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    return InitProducerIdResponse(
        error_code=ErrorCode.NONE, producer_id=secrets.randbits(_PRODUCER_ID_BITS), producer_epoch=0
    )
