"""A broker's config file: JSON, read once into frozen values, refused whole where one key is wrong (docs/broker.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Final

from brokers.log.config import FsyncPolicy, LogConfig
from coordinators.errors import InvalidRequest
from coordinators.model import Broker
from coordinators.settings import LIST, MAPPING, TRUTH, checked, read, text, whole
from coordinators.strict_json import decoded

CONFIG_BYTES_MAX: Final = 1024 * 1024
BROKERS_MAX: Final = 1000
INT32_MAX: Final = 2**31 - 1  # the libraries below take no more
INT64_MAX: Final = 2**63 - 1
_TEXT: Final = text(CONFIG_BYTES_MAX)
_PORT: Final = whole(1, 65_535)
_WHOLE: Final = {
    "broker": whole(0, INT32_MAX),
    "brokers": LIST,
    "data_dir": _TEXT,
    "coordinator": MAPPING,
    "log": MAPPING,
    "topics": MAPPING,
    "offsets": MAPPING,
    "limits": MAPPING,
}
_BROKER: Final = {"id": whole(0, INT32_MAX), "host": _TEXT, "kafka_port": _PORT, "rpc_port": _PORT}
Count = Annotated[int, whole(1, INT32_MAX)]


class ConfigError(Exception):
    """The file cannot be used; the message names the key, the value and what is allowed."""


@dataclass(frozen=True, slots=True)
class TopicDefaults:
    """The defaults of a topic that sets none of these, and whether a metadata request creates a topic."""

    auto_create: Annotated[bool, TRUTH] = False
    partitions: Count = 1
    replication_factor: Count = 1
    min_insync_replicas: Count = 1


@dataclass(frozen=True, slots=True)
class OffsetsConfig:
    """A group's offsets expire after this time without use; Kafka's default."""

    retention_ms: Annotated[int, whole(1, INT64_MAX)] = 7 * 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of the listeners; equal in every architecture."""

    connections_max: Count = 1000  # of the Kafka listener
    message_bytes_max: Count = 16 * 1024 * 1024
    request_bytes_max: Count = 100 * 1024 * 1024
    partitions_max: Count = 4000  # of all topics together
    rpc_connections_max: Count = 1000  # of the gRPC listener
    # Let requests of a Kafka client that pipelines gather before they are read.
    gather_ms: Annotated[int, whole(0, INT32_MAX)] = 2


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    me: Broker
    brokers: tuple[Broker, ...]
    data_dir: Path
    coordinator: str
    coordinator_options: Mapping[str, object]
    log: LogConfig
    topics: TopicDefaults
    offsets: OffsetsConfig
    limits: Limits


def load(path: Path) -> BrokerConfig:
    """Read and check a config file. Raises `ConfigError`."""
    try:
        if path.stat().st_size > CONFIG_BYTES_MAX:
            raise ConfigError(f"{path}: larger than {CONFIG_BYTES_MAX} bytes, which no config is")
        found = decoded(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise ConfigError(f"{path}: not JSON: {error}") from error
    try:
        _check_text(found, "")
        return _parsed(found)
    except (ConfigError, InvalidRequest) as error:
        raise ConfigError(f"{path}: {error}") from None


def _check_text(found: object, where: str) -> None:
    """Refuse halves of characters, which JSON can spell (`"\\ud800"`) and no path, name or message can hold."""
    if isinstance(found, dict):
        for key, value in found.items():
            _check_text(key, f"a key in {where}" if where else "a key")
            _check_text(value, f"{where}.{key}" if where else key)
    elif isinstance(found, list):
        for number, value in enumerate(found):
            _check_text(value, f"{where}[{number}]")
    elif isinstance(found, str) and any("\ud800" <= character <= "\udfff" for character in found):
        raise ConfigError(f"{where or 'the config'} holds half a character (a lone surrogate): {found!a}")


def _parsed(found: object) -> BrokerConfig:
    config = checked(_WHOLE, found, "the config", required=("broker", "brokers", "data_dir", "coordinator"))
    brokers = _brokers(config["brokers"])
    me = next((broker for broker in brokers if broker.id == config["broker"]), None)
    if me is None:
        raise ConfigError(
            f"broker {config['broker']} is not among brokers, which has {[broker.id for broker in brokers]}"
        )
    options = dict(config["coordinator"])
    name = options.pop("name", None)
    if not isinstance(name, str):
        raise ConfigError('coordinator needs a name, as in {"name": "static"}')
    log = read(LogConfig, config.get("log", {}), "log")
    return BrokerConfig(
        me=me,
        brokers=brokers,
        data_dir=Path(config["data_dir"]),
        coordinator=name,
        coordinator_options=options,
        log=replace(log, fsync=FsyncPolicy(log.fsync)),
        topics=read(TopicDefaults, config.get("topics", {}), "topics"),
        offsets=read(OffsetsConfig, config.get("offsets", {}), "offsets"),
        limits=read(Limits, config.get("limits", {}), "limits"),
    )


def _brokers(rows: list[object]) -> tuple[Broker, ...]:
    if not 1 <= len(rows) <= BROKERS_MAX:
        raise ConfigError(f"brokers must list 1 to {BROKERS_MAX} brokers, not {len(rows)}")
    brokers = tuple(
        Broker(**checked(_BROKER, row, f"brokers[{number}]", required=_BROKER)) for number, row in enumerate(rows)
    )
    ids = [broker.id for broker in brokers]
    if len(set(ids)) < len(ids):
        raise ConfigError(f"broker ids must be different, not {ids}")
    places = [(broker.host, port) for broker in brokers for port in (broker.kafka_port, broker.rpc_port)]
    for host, port in places:
        if places.count((host, port)) > 1:
            raise ConfigError(f"ports of one host must be different, and {port} of {host} stands twice")
    return brokers
