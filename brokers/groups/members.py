"""The values of a consumer group: who belongs to it, what they ask for, what they are told."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from brokers.wire.errors import ErrorCode


class State(Enum):
    """Names as Kafka's tools print them."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"


class Protocol(NamedTuple):
    """One way of assigning partitions that a member offers, with what it tells the leader under it."""

    name: str
    metadata: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """A member's wish to belong. `fresh_id` is used if it has no id yet."""

    member_id: str
    instance_id: str | None
    fresh_id: str
    id_required_first: bool
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: tuple[Protocol, ...]


class Joined(NamedTuple):
    """`members` (id, instance, metadata) is for the leader, who assigns; empty for the others."""

    error: ErrorCode
    generation: int = -1
    protocol: str = ""
    leader: str = ""
    member_id: str = ""
    members: tuple[tuple[str, str | None, bytes], ...] = ()


class Synced(NamedTuple):
    error: ErrorCode
    assignment: bytes = b""


class Reply(NamedTuple):
    """The answer that somebody waits for."""

    waiter: object
    answer: Joined | Synced


@dataclass(slots=True)
class Member:
    """One member. `seen_ms` is the last sign of life; a member whose answer is pending does not expire."""

    id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: tuple[Protocol, ...]
    seen_ms: int
    joining: object | None = None
    syncing: object | None = None
    synced: bool = False
    assignment: bytes = b""

    def metadata(self, protocol: str) -> bytes:
        return next((offer.metadata for offer in self.protocols if offer.name == protocol), b"")

    def expires_ms(self) -> int | None:
        waiting = self.joining is not None or self.syncing is not None
        return None if waiting else self.seen_ms + self.session_timeout_ms


@dataclass(slots=True)
class Roll:
    """The members in the order in which they came, and ids that were given out but have not come back."""

    members: dict[str, Member] = field(default_factory=dict)
    instances: dict[str, str] = field(default_factory=dict)
    announced: dict[str, int] = field(default_factory=dict)

    def add(self, member: Member) -> None:
        self.members[member.id] = member
        self.announced.pop(member.id, None)
        if member.instance_id is not None:
            self.instances[member.instance_id] = member.id

    def remove(self, member_id: str) -> Member:
        member = self.members.pop(member_id)
        if member.instance_id is not None:
            del self.instances[member.instance_id]
        return member

    def fault(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """Why these ids are not those of a member; a static member's old id is fenced (KIP-345)."""
        if instance_id is not None and instance_id in self.instances and self.instances[instance_id] != member_id:
            return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def offered_by_all(self) -> set[str]:
        offers = [{offer.name for offer in member.protocols} for member in self.members.values()]
        return set.intersection(*offers) if offers else set()

    def elected_protocol(self) -> str:
        """The protocol that most members prefer among those that all offer; the first named wins a tie."""
        common = self.offered_by_all()
        votes: dict[str, int] = {}
        for member in self.members.values():
            choice = next(offer.name for offer in member.protocols if offer.name in common)
            votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=lambda name: votes[name])
