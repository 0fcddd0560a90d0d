"""Frozen values of the coordination layer. Pure: no clock, no socket, no file."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from coordinators.errors import UnknownTopic

if TYPE_CHECKING:
    from collections.abc import Mapping

NO_LEADER: Final = -1
TOPIC_NAME_MAX: Final = 249
GROUP_NAME_MAX: Final = 255
COMMIT_METADATA_MAX: Final = 4096
EPOCH_MAX: Final = 2**31 - 1
OFFSET_MAX: Final = 2**63 - 1
PARTITIONS_MAX: Final = 10_000
_NAME_CHARACTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


class TopicPartition(NamedTuple):
    """A partition's name; a tuple, because the data path uses it as a key."""

    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker as its clients and peers reach it."""

    id: int
    host: str
    kafka_port: int
    rpc_port: int


@dataclass(frozen=True, slots=True)
class Partition:
    """Who holds a partition and who leads it. A lower `epoch` than one already seen is refused everywhere.

    `replicas` are in placement order, `in_sync` are those of them, in that order, that hold all that is acknowledged:
    the leader alone while nothing is copied, and nobody where the last of them has lost its disk. `leader` is one of
    `in_sync`, or `NO_LEADER` while none of them is live.
    """

    replicas: tuple[int, ...]
    leader: int
    epoch: int
    in_sync: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """What a topic may set for itself; zero or None is the broker's own default.

    With fewer than `min_insync_replicas` in sync, the leader among them, nothing is acknowledged with `acks=all`.
    """

    fetch_records_max: int = 0
    retention_bytes: int | None = None
    retention_ms: int | None = None
    min_insync_replicas: int = 0


DEFAULT_SETTINGS: Final = TopicSettings()


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic. Each topic that is made under a name has a `life` of its own: letters, digits and dots."""

    name: str
    partitions: tuple[Partition, ...]
    settings: TopicSettings = DEFAULT_SETTINGS
    life: str = ""


@dataclass(frozen=True, slots=True)
class ClusterView:
    """One broker's knowledge at one moment. `version` grows with every change that this broker has seen.

    `brokers` are those that are thought live. `version` is this broker's own count: to compare the knowledge of two
    brokers, compare `fingerprint`.
    """

    version: int
    brokers: Mapping[int, Broker] = field(default_factory=lambda: MappingProxyType({}))
    topics: Mapping[str, Topic] = field(default_factory=lambda: MappingProxyType({}))
    controller: int = NO_LEADER

    def topic(self, name: str) -> Topic:
        """Raises `UnknownTopic`."""
        try:
            return self.topics[name]
        except KeyError:
            raise UnknownTopic(f"topic {name!r} is not known here") from None

    def partition(self, at: TopicPartition) -> Partition:
        """Raises `UnknownTopic`. On the path of every produce and fetch where the metadata lies in the broker."""
        topic = self.topics.get(at.topic)
        if topic is None or not 0 <= at.partition < len(topic.partitions):
            raise UnknownTopic(f"{at.topic}-{at.partition} is not known here")
        return topic.partitions[at.partition]

    def fingerprint(self) -> str:
        """The same on two brokers if, and only if, they know the same live brokers and the same topics."""
        brokers = sorted(self.brokers.items())
        topics = sorted(self.topics.items())
        return blake2b(repr((brokers, topics)).encode(), digest_size=8).hexdigest()


@dataclass(frozen=True, slots=True)
class Committed:
    """A consumer group's place in a partition: the next offset to read."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


@dataclass(frozen=True, slots=True)
class Creation:
    """A topic that exists now, and the brokers that certainly know it."""

    topic: Topic
    known_to: frozenset[int]


def topic_name_fault(name: str) -> str | None:
    """Why `name` cannot name a topic, or None. The rules are Kafka's, because the name is also a folder."""
    if not name:
        return "a topic needs a name"
    if name in {".", ".."}:
        return f"a topic cannot be named {name!r}"
    if len(name) > TOPIC_NAME_MAX:
        return f"a topic's name has at most {TOPIC_NAME_MAX} characters, not {len(name)}"
    if not _NAME_CHARACTERS.issuperset(name):
        return f"a topic's name is made of letters, digits, '.', '_' and '-', not {name!r}"
    return None


def group_name_fault(group: str) -> str | None:
    """Why `group` cannot name a consumer group, or None. Any text will do, within bounds."""
    if not group:
        return "a consumer group needs a name"
    if len(group) > GROUP_NAME_MAX:
        return f"a consumer group's name has at most {GROUP_NAME_MAX} characters, not {len(group)}"
    return None


def committed_fault(place: Committed) -> str | None:
    """Why `place` cannot be committed, or None."""
    if not 0 <= place.offset <= OFFSET_MAX:
        return f"a committed offset is 0 to {OFFSET_MAX}, not {place.offset}"
    if len(place.metadata) > COMMIT_METADATA_MAX:
        return f"a commit's metadata has at most {COMMIT_METADATA_MAX} characters, not {len(place.metadata)}"
    return None
