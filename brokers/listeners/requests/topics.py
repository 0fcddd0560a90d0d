"""CreateTopics, DeleteTopics and DescribeConfigs."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from brokers.listeners.service import code_of
from brokers.log.errors import LogError
from brokers.wire.apis.topics import (
    ConfigResource,
    ConfigSource,
    CreatedTopic,
    CreateTopicsResponse,
    DeletedTopic,
    DeleteTopicsResponse,
    DescribeConfigsResponse,
    DescribedConfig,
    DescribedResource,
    ResourceType,
)
from brokers.wire.errors import ErrorCode
from coordinators.errors import CoordinationError
from coordinators.model import TopicSettings, topic_name_fault
from coordinators.settings import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from brokers.config import TopicDefaults
    from brokers.listeners.service import Caller, Service
    from brokers.wire.apis.topics import (
        CreatableConfig,
        CreatableTopic,
        CreateTopicsRequest,
        DeleteTopicsRequest,
        DescribeConfigsRequest,
    )

# The settings of a topic, by the names that clients use.
SETTINGS: Final = {
    "fetch_records_max": "fetch_records_max",
    "retention.bytes": "retention_bytes",
    "retention.ms": "retention_ms",
    "min.insync.replicas": "min_insync_replicas",
}
_UNBOUNDED: Final = "-1"
_BROKER_DEFAULT: Final = -1
# From and to which a topic may set it; what is not here is 0 to 2^63 - 1.
_ALLOWED: Final = {"fetch_records_max": (0, 2**31 - 1), "min.insync.replicas": (1, 2**31 - 1)}
_ANY: Final = (0, 2**63 - 1)


class Refused(Exception):
    """A topic that is not made; definite. The message names the field, the value and what is allowed."""

    definite = True

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


async def create(service: Service, caller: Caller, request: CreateTopicsRequest) -> CreateTopicsResponse:
    named = Counter(topic.name for topic in request.topics)
    created = []
    for topic in request.topics:
        error, message = ErrorCode.NONE, None
        try:
            if named[topic.name] > 1:
                raise Refused(ErrorCode.INVALID_REQUEST, f"topic {topic.name!r} is named twice in the request")
            await _create(service, topic, validate_only=request.validate_only)
        except Refused as refused:
            error, message = refused.code, str(refused)
        except (CoordinationError, LogError) as failed:
            error, message = code_of(failed), str(failed)
        created.append(CreatedTopic(name=topic.name, error_code=error, error_message=message))
    return CreateTopicsResponse(topics=tuple(created))


async def _create(service: Service, topic: CreatableTopic, *, validate_only: bool) -> None:
    fault = topic_name_fault(topic.name)
    if fault is not None:
        raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
    if topic.assignments:
        raise Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "replicas are placed by the cluster, not by the client")
    defaults = service.defaults
    partitions = defaults.partitions if topic.num_partitions == _BROKER_DEFAULT else topic.num_partitions
    replicas = defaults.replication_factor if topic.replication_factor == _BROKER_DEFAULT else topic.replication_factor
    if partitions < 1:
        raise Refused(ErrorCode.INVALID_PARTITIONS, f"partitions must be at least 1, not {partitions}")
    if replicas < 1:
        raise Refused(ErrorCode.INVALID_REPLICATION_FACTOR, f"replication factor must be at least 1, not {replicas}")
    settings = _settings(topic.configs)
    if not validate_only:
        await service.topics.create(topic.name, partitions, replicas, settings)
    elif topic.name in service.coordinator.view().topics:
        raise Refused(ErrorCode.TOPIC_ALREADY_EXISTS, f"topic {topic.name!r} exists")


def _settings(configs: Sequence[CreatableConfig]) -> TopicSettings:
    """Raises `Refused`."""
    settings: dict[str, int] = {}
    for config in configs:
        field = SETTINGS.get(config.name)
        if field is None:
            hint = did_you_mean(config.name, SETTINGS)
            raise Refused(ErrorCode.INVALID_CONFIG, f"unknown setting {config.name!r}; {hint}")
        if config.value is None or config.value == _UNBOUNDED:
            continue
        least, most = _ALLOWED.get(config.name, _ANY)
        digits = config.value.isascii() and config.value.isdigit() and len(config.value) <= len(str(most))
        if not (digits and least <= int(config.value) <= most):
            raise Refused(
                ErrorCode.INVALID_CONFIG,
                f"{config.name} must be a whole number from {least} to {most}, not {config.value[:60]!r}",
            )
        settings[field] = int(config.value)
    return TopicSettings(**settings)


async def delete(service: Service, caller: Caller, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    deleted = []
    for name in request.topic_names:
        error = ErrorCode.NONE
        try:
            await service.topics.delete(name)
        except (CoordinationError, LogError) as failed:
            error = code_of(failed)
        deleted.append(DeletedTopic(name=name, error_code=error))
    return DeleteTopicsResponse(responses=tuple(deleted))


def describe_configs(service: Service, caller: Caller, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(results=tuple(_described(service, resource) for resource in request.resources))


def _described(service: Service, resource: ConfigResource) -> DescribedResource:
    error, message = ErrorCode.NONE, None
    configs: tuple[DescribedConfig, ...] = ()
    if resource.resource_type == ResourceType.TOPIC:
        topic = service.coordinator.view().topics.get(resource.resource_name)
        if topic is None:
            error, message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {resource.resource_name!r} is not known"
        else:
            configs = _topic_configs(topic.settings, service.defaults)
    elif resource.resource_type == ResourceType.BROKER:
        configs = _broker_configs(service)
    else:
        error, message = ErrorCode.INVALID_REQUEST, f"resource type {resource.resource_type} is none of 2 and 4"
    keys = resource.configuration_keys
    return DescribedResource(
        error_code=error,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=tuple(config for config in configs if keys is None or config.name in keys),
    )


def _topic_configs(settings: TopicSettings, broker: TopicDefaults) -> tuple[DescribedConfig, ...]:
    defaults = TopicSettings()
    rows = []
    for name, field in SETTINGS.items():
        value = getattr(settings, field)
        source = ConfigSource.DEFAULT if value == getattr(defaults, field) else ConfigSource.TOPIC
        if field == "min_insync_replicas":
            value = value or broker.min_insync_replicas
        said = _UNBOUNDED if value is None else str(value)
        rows.append(DescribedConfig(name=name, value=said, read_only=False, config_source=source))
    return tuple(rows)


def _broker_configs(service: Service) -> tuple[DescribedConfig, ...]:
    values = {
        "broker.id": str(service.coordinator.me.id),
        "auto.create.topics.enable": str(service.defaults.auto_create).lower(),
        "num.partitions": str(service.defaults.partitions),
        "default.replication.factor": str(service.defaults.replication_factor),
        "min.insync.replicas": str(service.defaults.min_insync_replicas),
        "message.max.bytes": str(service.limits.batch_bytes_max),
    }
    return tuple(
        DescribedConfig(name=name, value=value, read_only=True, config_source=ConfigSource.STATIC_BROKER)
        for name, value in values.items()
    )
