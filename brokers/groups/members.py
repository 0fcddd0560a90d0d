"""The values of a consumer group: who belongs to it, what they ask for, what they are told."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from brokers.wire.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping


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


@dataclass(frozen=True, slots=True)
class GroupLimits:
    members_max: int = 1000
    session_timeout_ms_min: int = 10
    session_timeout_ms_max: int = 1_800_000
    rebalance_timeout_ms_max: int = 3_600_000
    first_join_wait_ms: int = 50

    def rebalance_timeout_ms(self, request: Join) -> int:
        asked = request.rebalance_timeout_ms if request.rebalance_timeout_ms >= 0 else request.session_timeout_ms
        return max(self.session_timeout_ms_min, min(asked, self.rebalance_timeout_ms_max))


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

    def join_fault(self, request: Join, limits: GroupLimits, protocol_type: str) -> ErrorCode:
        """Why a member may not come to a group of this type, or come back."""
        if not limits.session_timeout_ms_min <= request.session_timeout_ms <= limits.session_timeout_ms_max:
            return ErrorCode.INVALID_SESSION_TIMEOUT
        if not request.protocol_type or not request.protocols:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if self.members and request.protocol_type != protocol_type:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        others = {name: member for name, member in self.members.items() if name != request.member_id}
        if others and not Roll(others).offered_by_all() & {offer.name for offer in request.protocols}:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if request.member_id in self.announced and request.instance_id in self.instances:
            return ErrorCode.FENCED_INSTANCE_ID
        if request.member_id and request.member_id not in self.announced:
            return self.fault(request.member_id, request.instance_id)
        known = request.instance_id in self.instances or request.member_id in self.announced
        if not known and len(self.members) + len(self.announced) >= limits.members_max:
            return ErrorCode.GROUP_MAX_SIZE_REACHED
        return ErrorCode.NONE

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

    def assign(self, assignments: Mapping[str, bytes], now_ms: int) -> list[Reply]:
        """The leader's assignment came: what those are told who wait for theirs."""
        replies = []
        for member in self.members.values():
            member.assignment = assignments.get(member.id, b"")
            if member.syncing is not None:
                member.seen_ms = now_ms
                replies.append(Reply(member.syncing, Synced(ErrorCode.NONE, member.assignment)))
                member.syncing = None
        return replies

    def expiries(self) -> dict[str, int]:
        """When each member has been silent too long, except members whose answer is pending."""
        return {name: end for name, member in self.members.items() if (end := member.expires_ms()) is not None}

    def late(self, state: State) -> list[str]:
        """The members that missed the deadline of a round. Static members have their whole session for it."""
        return [
            member.id
            for member in self.members.values()
            if member.instance_id is None
            and (member.joining is None if state is State.PREPARING else not member.synced)
        ]

    def longest_rebalance_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)
