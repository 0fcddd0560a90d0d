"""What happens to a broker's machine, and what the machine asks of its shell. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from coordinators.dsbs.tables.messages import Envelope
from coordinators.dsbs.tables.rows import Row
from coordinators.model import Broker, Committed, TopicPartition, TopicSettings

# --- events -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Start:
    """The process has started and can be reached. Answered by `Joined` or `Refused`, at once or later."""


@dataclass(frozen=True, slots=True)
class Wake:
    """The time that the machine asked for (`Machine.wake_ms`) has come."""


@dataclass(frozen=True, slots=True)
class Received:
    content: bytes


@dataclass(frozen=True, slots=True)
class CreateTopic:
    """Answered by `Finished` with this token. The step raises what `Coordinator.create_topic` does. The topic's life is
    none of those that are `taken`."""

    token: int
    name: str
    partitions: int
    replication_factor: int
    settings: TopicSettings
    taken: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class DeleteTopic:
    token: int
    name: str


@dataclass(frozen=True, slots=True)
class ChangeInSync:
    at: TopicPartition
    in_sync: frozenset[int]
    epoch: int


@dataclass(frozen=True, slots=True)
class Resign:
    at: TopicPartition
    epoch: int


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit of a group that is gathered here, at `at_ms` since 1970. A group's first place in a partition
    (`Offsets.begins`) needs a token. `Finished` then answers it: `known_to` are the brokers that keep it."""

    group: str
    offsets: Mapping[TopicPartition, Committed]
    token: int = 0
    at_ms: int = 0


@dataclass(frozen=True, slots=True)
class Forget:
    """Forget groups that nobody uses; the disk holds nothing of them any more."""

    groups: frozenset[str]


@dataclass(frozen=True, slots=True)
class Gather:
    """Fetch what others hold of a group's offsets, before it is served here. Answered by `Finished`."""

    token: int
    group: str


@dataclass(frozen=True, slots=True)
class Hear:
    """This broker was away for a while: compare its tables with a peer's. Answered by `Heard`."""


@dataclass(frozen=True, slots=True)
class Leave:
    """Say goodbye. Answered by `Finished`; the machine does nothing more after it."""

    token: int


Event = (
    Start | Wake | Received | CreateTopic | DeleteTopic | ChangeInSync | Resign | Commit | Forget | Gather | Hear
    | Leave
)  # fmt: skip


# --- actions: to be done in their order -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Persist:
    """Write to the disk: before what follows is sent, where that says that this broker keeps it (`Kept`, `Known`)."""

    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Changed:
    """The tables changed: who is live (`members`), or these topics."""

    members: bool
    topics: frozenset[str]


@dataclass(frozen=True, slots=True)
class Send:
    to: tuple[Broker, ...]
    envelope: Envelope


@dataclass(frozen=True, slots=True)
class Finished:
    """`known_to` have it for certain, this broker among them; of `missing` it is not known."""

    token: int
    known_to: frozenset[int]
    missing: frozenset[int]


@dataclass(frozen=True, slots=True)
class Joined:
    """This broker is a member and serves."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Another live broker has this one's id. The machine does nothing more after it."""

    reason: str


@dataclass(frozen=True, slots=True)
class Lost:
    """This broker's disk was lost, and with it what was in these partitions."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class Heard:
    """A peer's tables were those of this broker after it asked, or nobody else lives."""


Action = Persist | Changed | Send | Finished | Joined | Refused | Lost | Heard
