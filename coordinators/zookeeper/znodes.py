"""ZooKeeper's tree as this program uses it: paths, and what stands in each znode. Pure.

The tree is the one that Kafka users know (docs/coordination.md); a partition's state has one key more, `replicas`, so
that one read answers who leads. Decoding is strict: whatever this program would not have written is `Unreadable`, with
the path and what is wrong there, because a guess about who leads loses data.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import Enum, auto
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn
from urllib.parse import quote, unquote

from coordinators.errors import Unreadable
from coordinators.model import (
    NO_LEADER,
    PARTITIONS_MAX,
    Broker,
    Committed,
    Partition,
    TopicPartition,
    TopicSettings,
    committed_fault,
)
from coordinators.strict_json import decoded, encoded, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

ZNODE_BYTES_MAX: Final = 1_000_000  # ZooKeeper's own bound for a request is a little above it (jute.maxbuffer)
INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1
VERSION: Final = 1
_DECODED_MAX: Final = 16_384


class Place(Enum):
    """The parts of the tree that brokers follow."""

    BROKERS = auto()
    TOPICS = auto()
    TOPIC = auto()
    STATE = auto()
    CONTROLLER = auto()


class Where(NamedTuple):
    place: Place
    at: TopicPartition = TopicPartition("", -1)


class Tree:
    """Paths below a chroot ("" or "/a/b")."""

    def __init__(self, chroot: str = "") -> None:
        self.chroot = chroot
        self.brokers = f"{chroot}/brokers/ids"
        self.topics = f"{chroot}/brokers/topics"
        self.controller = f"{chroot}/controller"
        self.controller_epoch = f"{chroot}/controller_epoch"
        self.consumers = f"{chroot}/consumers"
        self.cluster_id = f"{chroot}/cluster/id"

    @property
    def folders(self) -> Sequence[str]:
        """Everything that must be there before the first broker, parents first."""
        below = ["/brokers", "/brokers/ids", "/brokers/topics", "/consumers", "/cluster"]
        parts = self.chroot.split("/")
        return ["/".join(parts[: depth + 1]) for depth in range(1, len(parts))] + [self.chroot + path for path in below]

    def broker(self, broker_id: int) -> str:
        return f"{self.brokers}/{broker_id}"

    def topic(self, name: str) -> str:
        return f"{self.topics}/{name}"

    def partitions(self, topic: str) -> str:
        return f"{self.topics}/{topic}/partitions"

    def partition(self, at: TopicPartition) -> str:
        return f"{self.topics}/{at.topic}/partitions/{at.partition}"

    def state(self, at: TopicPartition) -> str:
        return f"{self.topics}/{at.topic}/partitions/{at.partition}/state"

    def groups_in(self, topic: str) -> str:
        """Which groups have committed in a topic: the index by which its deletion finds their rows."""
        return f"{self.topics}/{topic}/groups"

    def group_in(self, group: str, topic: str) -> str:
        return f"{self.groups_in(topic)}/{encode_name(group)}"

    def group(self, group: str) -> str:
        return f"{self.consumers}/{encode_name(group)}"

    def offsets(self, group: str) -> str:
        return f"{self.group(group)}/offsets"

    def offsets_in(self, group: str, topic: str) -> str:
        return f"{self.offsets(group)}/{topic}"

    def offset(self, group: str, at: TopicPartition) -> str:
        return f"{self.offsets(group)}/{at.topic}/{at.partition}"

    def where(self, path: str) -> Where | None:
        """What a changed znode is part of; None where nobody follows it."""
        fixed = {self.brokers: Place.BROKERS, self.topics: Place.TOPICS, self.controller: Place.CONTROLLER}
        if path in fixed:
            return Where(fixed[path])
        if not path.startswith(f"{self.topics}/"):
            return None
        match path[len(self.topics) + 1 :].split("/"):
            case [topic]:
                return Where(Place.TOPIC, TopicPartition(topic, -1))
            case [topic, "partitions", number, "state"] if number.isdecimal():
                return Where(Place.STATE, TopicPartition(topic, int(number)))
        return None


def encode_name(name: str) -> str:
    """Any text as the name of a znode: a group may be called `a/b`, `..` or a line feed."""
    encoded = quote(name, safe="", errors="surrogatepass")
    return encoded.replace(".", "%2E") if encoded in {".", ".."} else encoded


def decode_name(name: str) -> str:
    return unquote(name, errors="surrogatepass")


# --- what is stored --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StoredTopic:
    """What stands in a topic's znode; who leads its partitions stands in theirs."""

    replicas: tuple[tuple[int, ...], ...]
    settings: TopicSettings


def encode_broker(broker: Broker) -> bytes:
    return _encoded(host=broker.host, port=broker.kafka_port, rpc_port=broker.rpc_port)


def decode_broker(path: str, data: bytes, name: str) -> Broker:
    broker_id = decode_id(path, name)
    found = _read(path, data)
    broker = Broker(broker_id, found.text("host"), found.number("port", 1, 65_535), found.number("rpc_port", 1, 65_535))
    found.end()
    return broker


def encode_topic(partitions: Sequence[Partition], settings: TopicSettings) -> bytes:
    replicas = {str(number): partition.replicas for number, partition in enumerate(partitions)}
    given = asdict(settings)
    if not settings.min_insync_replicas:  # as trees of earlier versions have it
        del given["min_insync_replicas"]
    return _encoded(partitions=replicas, settings=given)


def decode_topic(path: str, data: bytes) -> StoredTopic:
    found = _read(path, data)
    replicas = _placed(path, found.mapping("partitions"))
    settings = _settings(path, found.mapping("settings"))
    found.end()
    return StoredTopic(replicas, settings)


def _placed(path: str, partitions: dict[str, Any]) -> tuple[tuple[int, ...], ...]:
    numbers = [str(number) for number in range(len(partitions))]
    if not 1 <= len(partitions) <= PARTITIONS_MAX or partitions.keys() != set(numbers):
        raise Unreadable(f"{path}: partitions must be numbered from 0, and 1 to {PARTITIONS_MAX} of them")
    placed = _Fields(f"{path}: partitions", partitions)
    return tuple(placed.brokers(number) for number in numbers)


def _settings(path: str, settings: dict[str, Any]) -> TopicSettings:
    found = _Fields(f"{path}: settings", settings)
    read = TopicSettings(
        found.number("fetch_records_max", 0, INT_MAX),
        found.optional("retention_bytes", -1, LONG_MAX),
        found.optional("retention_ms", -1, LONG_MAX),
        found.number("min_insync_replicas", 1, INT_MAX) if "min_insync_replicas" in settings else 0,
    )
    found.end()
    return read


def encode_state(partition: Partition) -> bytes:
    return _encoded(
        leader=partition.leader, leader_epoch=partition.epoch, isr=partition.in_sync, replicas=partition.replicas
    )


def life(made_by: int) -> str:
    """Of a topic whose znode this transaction made; a deletion and another creation are other transactions."""
    return f"{made_by:x}"


@lru_cache(_DECODED_MAX)  # of the same bytes, which say the same: a lookup costs its request, not its JSON
def decode_state(path: str, data: bytes) -> Partition:
    found = _read(path, data)
    replicas = found.brokers("replicas")
    in_sync = found.brokers("isr", empty=True)
    leader = found.number("leader", NO_LEADER, INT_MAX)
    epoch = found.number("leader_epoch", 0, INT_MAX)
    found.end()
    if in_sync != tuple(replica for replica in replicas if replica in in_sync):
        found.refuse(f"isr must be some of the replicas {replicas} in their order, not {in_sync}")
    if leader not in {*in_sync, NO_LEADER}:
        found.refuse(f"leader must be one of isr {in_sync} or {NO_LEADER}, not {leader}")
    return Partition(replicas, leader, epoch, in_sync)


def encode_controller(broker_id: int) -> bytes:
    return _encoded(brokerid=broker_id)


def decode_controller(path: str, data: bytes) -> int:
    found = _read(path, data)
    broker_id = found.number("brokerid", 0, INT_MAX)
    found.end()
    return broker_id


def encode_number(number: int) -> bytes:
    return str(number).encode()


def decode_number(path: str, data: bytes) -> int:
    """A znode that is one number, as /controller_epoch is."""
    if not (data.isdigit() and len(data) <= 10 and int(data) <= INT_MAX):
        raise Unreadable(f"{path} must hold a number from 0 to {INT_MAX}, not {data[:60]!r}")
    return int(data)


def encode_committed(place: Committed) -> bytes:
    return _encoded(offset=place.offset, leader_epoch=place.leader_epoch, metadata=place.metadata)


def decode_committed(path: str, data: bytes) -> Committed:
    found = _read(path, data)
    place = Committed(
        found.number("offset", 0, LONG_MAX),
        found.number("leader_epoch", -1, INT_MAX),
        found.text("metadata", empty=True),
    )
    found.end()
    if (fault := committed_fault(place)) is not None:
        found.refuse(fault)
    return place


def encode_cluster_id(cluster_id: str) -> bytes:
    return _encoded(id=cluster_id)


def decode_cluster_id(path: str, data: bytes) -> str:
    found = _read(path, data)
    cluster_id = found.text("id")
    found.end()
    return cluster_id


def decode_id(path: str, child: str) -> int:
    """A znode that is named by a number: a broker, or a partition."""
    if not (child.isascii() and child.isdigit() and len(child) <= 10 and str(int(child)) == child):
        raise Unreadable(f"{path}: its name must be a number")
    return int(child)


# --- strict JSON -----------------------------------------------------------------------------------------------------


def _encoded(**fields: object) -> bytes:
    return encoded({"version": VERSION, **fields})


class _Fields:
    """An object taken apart key by key; `end` refuses what is left over."""

    def __init__(self, path: str, found: dict[str, Any]) -> None:
        self._path = path
        self._left = found

    def refuse(self, fault: str) -> NoReturn:
        raise Unreadable(f"{self._path}: {fault}")

    def take(self, key: str) -> Any:
        if key not in self._left:
            self.refuse(f"{key} is missing")
        return self._left.pop(key)

    def number(self, key: str, least: int, most: int) -> int:
        return self._number(self.take(key), key, least, most)

    def optional(self, key: str, least: int, most: int) -> int | None:
        value = self.take(key)
        return None if value is None else self._number(value, key, least, most)

    def _number(self, value: object, key: str, least: int, most: int) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            self.refuse(f"{key} must be a whole number from {least} to {most}, not {shown(value)}")
        return value

    def text(self, key: str, *, empty: bool = False) -> str:
        value = self.take(key)
        if not isinstance(value, str) or (not value and not empty):
            self.refuse(f"{key} must be text, not {shown(value)}")
        return value

    def mapping(self, key: str) -> dict[str, Any]:
        value = self.take(key)
        if not isinstance(value, dict):
            self.refuse(f"{key} must be an object, not {shown(value)}")
        return value

    def brokers(self, key: str, *, empty: bool = False) -> tuple[int, ...]:
        value = self.take(key)
        if not isinstance(value, list) or not (value or empty):
            self.refuse(f"{key} must list broker ids, not {shown(value)}")
        ids = tuple(self._number(broker_id, key, 0, INT_MAX) for broker_id in value)
        if len(set(ids)) < len(ids):
            self.refuse(f"{key} must name each broker once, not {shown(value)}")
        return ids

    def end(self) -> None:
        if self._left:
            self.refuse(f"it holds {', '.join(sorted(self._left))}, which version {VERSION} does not have")


def _read(path: str, data: bytes) -> _Fields:
    """A znode's JSON object, of the version that is known here."""
    if len(data) > ZNODE_BYTES_MAX:
        raise Unreadable(f"{path} holds {len(data)} bytes, and at most {ZNODE_BYTES_MAX} are read")
    try:
        found = decoded(data)
    except ValueError as error:
        raise Unreadable(f"{path} is not JSON ({error}): {data[:60]!r}") from None
    if not isinstance(found, dict):
        raise Unreadable(f"{path} must hold an object, not {data[:60]!r}")
    fields = _Fields(path, found)
    fields.number("version", VERSION, VERSION)
    return fields
