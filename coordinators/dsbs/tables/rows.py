"""The rows of the tables, and which of two rows for the same thing is the newer. Pure.

Every row has a `key` (what it is about) and a `stamp`. Of two rows with one key the one with the higher stamp stays;
stamps are counted, never read from a clock. Where stamps tie, the canonical encoding decides, so that the order is
total whatever a faulty peer may send, and the merge of tables is commutative, associative and idempotent.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from enum import IntEnum
from typing import ClassVar, Final

from coordinators.model import (
    COMMIT_METADATA_MAX,
    NO_LEADER,
    OFFSET_MAX,
    PARTITIONS_MAX,
    Broker,
    TopicPartition,
    TopicSettings,
    group_name_fault,
    topic_name_fault,
)

BROKER_ID_MAX: Final = 2**31 - 1
HOST_CHARACTERS_MAX: Final = 255
PORT_MAX: Final = 65_535
SESSION_MAX: Final = 2**63 - 1
REPLICAS_MAX: Final = 1000
SETTING_MAX: Final = 2**63 - 1
# A counter may grow by so much between two sightings and start so high at the first. A counter that leaps further is
# poison: it would leave no room to count on, and nobody could ever outrank it again.
COUNTER_STEP_MAX: Final = 2**20
COUNTER_FIRST_MAX: Final = 2**30
COMMITS_STEP_MAX: Final = 2**42  # they count on from the time of day in ms, which reaches this in the year 2109

Key = tuple[str, int] | tuple[str, str] | tuple[str, str, int] | tuple[str, str, str, int]


class Status(IntEnum):
    """The cluster's opinion of a broker; within one incarnation it only moves down this list."""

    ALIVE = 0
    SUSPECT = 1
    DEAD = 2
    LEFT = 3


@dataclass(frozen=True, slots=True)
class MemberRow:
    """A broker's place in the cluster. Each start of a process draws a new `session`.

    Only the broker itself raises its `incarnation`: to join again, and to refute peers that think it dead.
    """

    broker: Broker
    session: int
    incarnation: int
    status: Status

    step_max: ClassVar[int] = COUNTER_STEP_MAX

    @property
    def key(self) -> Key:
        return ("member", self.broker.id)

    @property
    def stamp(self) -> tuple[int, ...]:
        return (self.incarnation, self.status)

    @property
    def counters(self) -> tuple[int, ...]:
        return (self.incarnation,)

    @property
    def live(self) -> bool:
        """A suspect lives until it is buried."""
        return self.status < Status.DEAD

    def disputes(self, other: MemberRow) -> bool:
        """Whether two processes have said one thing of one broker, so that neither outranks the other."""
        return self.stamp == other.stamp and self.session != other.session

    def fault(self) -> str | None:
        broker = self.broker
        if not 0 <= broker.id <= BROKER_ID_MAX:
            return f"broker id must be 0 to {BROKER_ID_MAX}, not {broker.id}"
        if not 1 <= len(broker.host) <= HOST_CHARACTERS_MAX:
            return f"host must have 1 to {HOST_CHARACTERS_MAX} characters, not {len(broker.host)}"
        if not (0 <= broker.kafka_port <= PORT_MAX and 0 <= broker.rpc_port <= PORT_MAX):
            return f"ports must be 0 to {PORT_MAX}, not {broker.kafka_port} and {broker.rpc_port}"
        if not 0 <= self.session <= SESSION_MAX:
            return f"session must be 0 to {SESSION_MAX}, not {self.session}"
        return None


@dataclass(frozen=True, slots=True)
class TopicRow:
    """A topic and where its partitions lie, or (`deleted`) the tombstone that keeps it from coming back.

    `generation` counts the lives of the name. Of two brokers that create one topic at once, the higher `creator` wins.
    """

    name: str
    generation: int
    creator: int
    replicas: tuple[tuple[int, ...], ...]
    settings: TopicSettings
    deleted: bool = False

    step_max: ClassVar[int] = COUNTER_STEP_MAX

    @property
    def key(self) -> Key:
        return ("topic", self.name)

    @property
    def topic_name(self) -> str:
        return self.name

    @property
    def stamp(self) -> tuple[int, ...]:
        return (self.generation, self.deleted, self.creator)

    @property
    def counters(self) -> tuple[int, ...]:
        return (self.generation,)

    def supersedes(self, row: LeaderRow) -> bool:
        """Whether `row` belongs to an earlier life of the name."""
        if self.deleted:
            return row.generation <= self.generation
        return (row.generation, row.creator) < (self.generation, self.creator)

    def fault(self) -> str | None:
        if (fault := topic_name_fault(self.name)) is not None:
            return fault
        if not 0 <= self.creator <= BROKER_ID_MAX:
            return f"topic {self.name!r}: creator must be 0 to {BROKER_ID_MAX}, not {self.creator}"
        if self.deleted:
            return f"topic {self.name!r}: a tombstone has no partitions" if self.replicas else None
        if not 1 <= len(self.replicas) <= PARTITIONS_MAX:
            return f"topic {self.name!r}: partitions must be 1 to {PARTITIONS_MAX}, not {len(self.replicas)}"
        if any(_replicas_fault(replicas) for replicas in self.replicas):
            return f"topic {self.name!r}: replicas must be 1 to {REPLICAS_MAX} different brokers"
        return self._settings_fault()

    def _settings_fault(self) -> str | None:
        given = astuple(self.settings)
        if any(value is not None and not 0 <= value <= SETTING_MAX for value in given):
            return f"topic {self.name!r}: settings must be 0 to {SETTING_MAX}, not {given}"
        return None


def _replicas_fault(replicas: tuple[int, ...]) -> bool:
    return (
        not 1 <= len(replicas) <= REPLICAS_MAX
        or len(set(replicas)) != len(replicas)
        or not all(0 <= replica <= BROKER_ID_MAX for replica in replicas)
    )


@dataclass(frozen=True, slots=True)
class LeaderRow:
    """Who leads a partition, once that has changed since the topic was made. `version` counts within the epoch.

    An epoch belongs to one replica alone (see `topics.own_epoch`), so these rows have one writer at a time.
    """

    topic: str
    partition: int
    generation: int
    creator: int
    epoch: int
    version: int
    leader: int
    in_sync: tuple[int, ...]

    step_max: ClassVar[int] = COUNTER_STEP_MAX

    @property
    def key(self) -> Key:
        return ("leader", self.topic, self.partition)

    @property
    def topic_name(self) -> str:
        return self.topic

    @property
    def stamp(self) -> tuple[int, ...]:
        return (self.generation, self.creator, self.epoch, self.version)

    @property
    def counters(self) -> tuple[int, ...]:
        return (self.generation, self.epoch, self.version)

    def fault(self) -> str | None:
        name = f"{self.topic}-{self.partition}"
        if topic_name_fault(self.topic) is not None or not 0 <= self.partition < PARTITIONS_MAX:
            return f"{name!r} is no partition"
        if not 0 <= self.creator <= BROKER_ID_MAX:
            return f"{name}: creator must be 0 to {BROKER_ID_MAX}, not {self.creator}"
        if self.in_sync and _replicas_fault(self.in_sync):
            return f"{name}: in sync are at most {REPLICAS_MAX} different brokers"
        if self.leader != NO_LEADER and self.leader not in self.in_sync:
            return f"{name}: leader {self.leader} is not in sync"
        return None


@dataclass(frozen=True, slots=True)
class OffsetRow:
    """A consumer group's place in one partition. `version` is the time of the commit in ms since 1970, or the one after
    the version before where that is more: so a group that was forgotten, and comes back, outranks what is left of its
    former rows elsewhere."""

    group: str
    topic: str
    partition: int
    generation: int
    version: int
    offset: int
    leader_epoch: int
    metadata: str

    step_max: ClassVar[int] = COMMITS_STEP_MAX

    @property
    def key(self) -> Key:
        return ("offset", self.group, self.topic, self.partition)

    @property
    def at(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def stamp(self) -> tuple[int, ...]:
        return (self.generation, self.version)

    @property
    def counters(self) -> tuple[int, ...]:
        return (self.generation, self.version)

    def fault(self) -> str | None:
        if (fault := group_name_fault(self.group)) is not None:
            return fault
        if topic_name_fault(self.topic) is not None or not 0 <= self.partition < PARTITIONS_MAX:
            return f"'{self.topic}-{self.partition}' is no partition"
        if not 0 <= self.offset <= OFFSET_MAX or not -1 <= self.leader_epoch <= OFFSET_MAX:
            return f"group {self.group!r}: offset {self.offset} at epoch {self.leader_epoch} is none"
        if len(self.metadata) > COMMIT_METADATA_MAX:
            return f"group {self.group!r}: metadata above {COMMIT_METADATA_MAX} characters"
        return None


TableRow = MemberRow | TopicRow | LeaderRow
Row = TableRow | OffsetRow


def leap(row: Row, held: Row | None) -> str | None:
    """Why `row` cannot be the next that is heard after `held`, or None: its counters grew beyond what can be."""
    for number, counter in enumerate(row.counters):
        allowed = COUNTER_FIRST_MAX if held is None else held.counters[number] + row.step_max
        if isinstance(row, OffsetRow) and held is None:
            allowed = COMMITS_STEP_MAX
        if not 0 <= counter <= allowed:
            return f"{row.key}: counter {counter} leaps beyond {allowed}"
    return None
