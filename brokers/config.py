"""A broker's config file: JSON, read once into frozen values, refused whole where one key is wrong (docs/broker.md)."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from brokers.log.config import FsyncPolicy, LogConfig
from coordinators.model import Broker

if TYPE_CHECKING:
    from collections.abc import Mapping

CONFIG_BYTES_MAX: Final = 1024 * 1024
BROKERS_MAX: Final = 1000
INT32_MAX: Final = 2**31 - 1  # the libraries below take no more
INT64_MAX: Final = 2**63 - 1
_OFF_AT_ZERO: Final = frozenset({"gather_ms"})
T = TypeVar("T")


class ConfigError(Exception):
    """The file cannot be used; the message names the key, the value and what is allowed."""


@dataclass(frozen=True, slots=True)
class TopicDefaults:
    """What a topic has that says nothing of its own, and whether topics come to be by being used."""

    auto_create: bool = False
    partitions: int = 1
    replication_factor: int = 1
    min_insync_replicas: int = 1


@dataclass(frozen=True, slots=True)
class OffsetsConfig:
    """What groups commit is kept until nobody has used the group for that long; Kafka's default."""

    retention_ms: int = 7 * 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of the listeners; equal in every architecture."""

    connections_max: int = 1000  # of the Kafka listener
    message_bytes_max: int = 16 * 1024 * 1024
    request_bytes_max: int = 100 * 1024 * 1024
    partitions_max: int = 4000  # of all topics together
    rpc_connections_max: int = 1000  # of the gRPC listener
    gather_ms: int = 2  # let requests of a Kafka client that pipelines gather before they are read


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
        found = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_without_duplicates)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: not JSON: {error}") from error
    try:
        _check_text(found, "")
        return _parsed(found)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    for key in keys:
        if keys.count(key) > 1:
            raise ValueError(f"key {key!r} stands twice")
    return dict(pairs)


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
    known = {
        "broker": int,
        "brokers": list,
        "data_dir": str,
        "coordinator": dict,
        "log": dict,
        "topics": dict,
        "offsets": dict,
        "limits": dict,
    }
    config = _table(found, "the config", known, required=("broker", "brokers", "data_dir", "coordinator"))
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
    return BrokerConfig(
        me=me,
        brokers=brokers,
        data_dir=Path(config["data_dir"]),
        coordinator=name,
        coordinator_options=options,
        log=_log(config.get("log", {})),
        topics=_settings(TopicDefaults, config.get("topics", {}), "topics", INT32_MAX),
        offsets=_settings(OffsetsConfig, config.get("offsets", {}), "offsets", INT64_MAX),
        limits=_settings(Limits, config.get("limits", {}), "limits", INT32_MAX),
    )


def _brokers(rows: list[object]) -> tuple[Broker, ...]:
    known = {"id": int, "host": str, "kafka_port": int, "rpc_port": int}
    if not 1 <= len(rows) <= BROKERS_MAX:
        raise ConfigError(f"brokers must list 1 to {BROKERS_MAX} brokers, not {len(rows)}")
    brokers = tuple(Broker(**_table(row, "a row of brokers", known, required=known)) for row in rows)
    ids = [broker.id for broker in brokers]
    places = [(broker.host, port) for broker in brokers for port in (broker.kafka_port, broker.rpc_port)]
    for broker in brokers:
        if broker.id < 0 or ids.count(broker.id) > 1:
            raise ConfigError(f"broker ids must be different and not negative, not {ids}")
        for port in (broker.kafka_port, broker.rpc_port):
            if not 1 <= port <= 65_535 or places.count((broker.host, port)) > 1:
                raise ConfigError(f"broker {broker.id}: ports must be different and 1 to 65535, not {port}")
    return brokers


def _log(found: Mapping[str, Any]) -> LogConfig:
    if "fsync" in found:
        allowed = [policy.value for policy in FsyncPolicy]
        if found["fsync"] not in allowed:
            raise ConfigError(f"log.fsync must be one of {', '.join(allowed)}, not {found['fsync']!r}")
        found = {**found, "fsync": FsyncPolicy(found["fsync"])}
    try:
        return _settings(LogConfig, found, "log", INT64_MAX)
    except ValueError as error:
        raise ConfigError(f"log: {error}") from None


def _settings(kind: type[T], found: Mapping[str, Any], where: str, whole_max: int) -> T:
    """A dataclass of settings with defaults, from those that are given; whole numbers are 1 to `whole_max`, and 0 where
    that switches something off."""
    defaults = kind()
    known = {field.name: _kind_of(getattr(defaults, field.name)) for field in fields(defaults)}  # type: ignore[arg-type]
    given = _table(found, where, known)
    for key, value in given.items():
        least = 0 if key in _OFF_AT_ZERO else 1
        if known[key] is int and not least <= value <= whole_max:
            raise ConfigError(f"{where}.{key} must be {least} to {whole_max}, not {value}")
    return kind(**given)


def _kind_of(default: object) -> type:
    """A setting's type by its default; those that are off by default (None) are whole numbers."""
    return int if default is None else type(default)


def _table(
    found: object, where: str, known: Mapping[str, type], required: Mapping[str, type] | tuple[str, ...] = ()
) -> dict[str, Any]:
    """`found` as a mapping of known keys to values of their types."""
    if not isinstance(found, dict):
        raise ConfigError(f"{where} must be a mapping, not {found!r}")
    for key, value in found.items():
        if key not in known:
            near = get_close_matches(key, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; known are {', '.join(known)}"
            raise ConfigError(f"unknown key {key!r} in {where}{hint}")
        if not isinstance(value, known[key]) or (isinstance(value, bool) and known[key] is not bool):
            raise ConfigError(f"{key} in {where} must be {_said(known[key])}, not {value!r}")
        if isinstance(value, str) and (not value or "\0" in value):
            raise ConfigError(f"{key} in {where} must not be empty or hold a zero byte, and is {value!r}")
    missing = [key for key in required if key not in found]
    if missing:
        raise ConfigError(f"{where} lacks {', '.join(missing)}")
    return found


def _said(kind: type) -> str:
    names = {int: "a whole number", str: "text", list: "a list", dict: "a mapping", bool: "true or false"}
    return names.get(kind, kind.__name__)
