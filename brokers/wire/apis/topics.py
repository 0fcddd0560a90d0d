"""CreateTopics, DeleteTopics and DescribeConfigs: topics as an administrator sees them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated

from brokers.wire.schema import Boolean, Int8, Int16, Int32, NullableString, Since, String


class ResourceType(IntEnum):
    TOPIC = 2
    BROKER = 4


class ConfigSource(IntEnum):
    TOPIC = 1
    STATIC_BROKER = 4
    DEFAULT = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatableAssignment:
    partition_index: Int32
    broker_ids: tuple[Int32, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatableConfig:
    name: String
    value: NullableString


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatableTopic:
    """`num_partitions` and `replication_factor` are -1 where the broker's default is wanted (KIP-464)."""

    name: String
    num_partitions: Int32
    replication_factor: Int16
    assignments: tuple[CreatableAssignment, ...]
    configs: tuple[CreatableConfig, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTopicsRequest:
    topics: tuple[CreatableTopic, ...]
    timeout_ms: Int32
    validate_only: Annotated[Boolean, Since(1)] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedTopic:
    name: String
    error_code: Int16
    error_message: Annotated[NullableString, Since(1)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTopicsResponse:
    throttle_time_ms: Annotated[Int32, Since(2)] = 0
    topics: tuple[CreatedTopic, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteTopicsRequest:
    topic_names: tuple[String, ...]
    timeout_ms: Int32


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedTopic:
    name: String
    error_code: Int16


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteTopicsResponse:
    throttle_time_ms: Annotated[Int32, Since(1)] = 0
    responses: tuple[DeletedTopic, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigResource:
    """`configuration_keys` is None where all are asked for."""

    resource_type: Int8
    resource_name: String
    configuration_keys: tuple[String, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeConfigsRequest:
    resources: tuple[ConfigResource, ...]
    include_synonyms: Annotated[Boolean, Since(1)] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigSynonym:
    name: String
    value: NullableString
    source: Int8


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedConfig:
    name: String
    value: NullableString
    read_only: Boolean
    config_source: Annotated[Int8, Since(1)] = ConfigSource.DEFAULT
    is_sensitive: Boolean = False
    synonyms: Annotated[tuple[ConfigSynonym, ...], Since(1)] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedResource:
    error_code: Int16
    error_message: NullableString
    resource_type: Int8
    resource_name: String
    configs: tuple[DescribedConfig, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeConfigsResponse:
    throttle_time_ms: Int32 = 0
    results: tuple[DescribedResource, ...]
