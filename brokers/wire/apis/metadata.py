"""Metadata: brokers, topics, and who leads each partition. InitProducerId beside it, which asks for as little."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from brokers.wire.schema import Boolean, Int16, Int32, Int64, NullableString, Since, String

AUTHORIZED_OPERATIONS_UNKNOWN = -(2**31)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataTopicName:
    name: String


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataRequest:
    """`topics` is None, or empty in version 0, where all are asked for."""

    topics: tuple[MetadataTopicName, ...] | None
    allow_auto_topic_creation: Annotated[Boolean, Since(4)] = True
    include_cluster_authorized_operations: Annotated[Boolean, Since(8, until=10)] = False
    include_topic_authorized_operations: Annotated[Boolean, Since(8)] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataBroker:
    node_id: Int32
    host: String
    port: Int32
    rack: Annotated[NullableString, Since(1)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataPartition:
    error_code: Int16
    partition_index: Int32
    leader_id: Int32
    leader_epoch: Annotated[Int32, Since(7)] = -1
    replica_nodes: tuple[Int32, ...]
    isr_nodes: tuple[Int32, ...]
    offline_replicas: Annotated[tuple[Int32, ...], Since(5)] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataTopic:
    error_code: Int16
    name: String
    is_internal: Annotated[Boolean, Since(1)] = False
    partitions: tuple[MetadataPartition, ...] = ()
    topic_authorized_operations: Annotated[Int32, Since(8)] = AUTHORIZED_OPERATIONS_UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataResponse:
    throttle_time_ms: Annotated[Int32, Since(3)] = 0
    brokers: tuple[MetadataBroker, ...]
    cluster_id: Annotated[NullableString, Since(2)] = None
    controller_id: Annotated[Int32, Since(1)] = -1
    topics: tuple[MetadataTopic, ...]
    cluster_authorized_operations: Annotated[Int32, Since(8, until=10)] = AUTHORIZED_OPERATIONS_UNKNOWN


# --- InitProducerId: the identity of an idempotent producer (KIP-98) --------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class InitProducerIdRequest:
    transactional_id: NullableString
    transaction_timeout_ms: Int32


@dataclass(frozen=True, slots=True, kw_only=True)
class InitProducerIdResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16
    producer_id: Int64 = -1
    producer_epoch: Int16 = -1
