"""A consumer group's membership: who belongs to it, who leads it, in which generation. Pure; time is an argument.

How a group comes to agree (Kafka's classic protocol). Members *join*; nobody is answered until all known members have
joined or the rebalance deadline has passed, and then all are, with the next generation's number. One of them leads: it
gets the list of members, makes the assignment and sends it with its *sync*; the others' syncs wait for that. A member
that comes, goes or changes what it offers starts the next round; the others learn of it from their heartbeats.

    EMPTY      -> PREPARING   the first member joins
    PREPARING  -> COMPLETING  all have joined, or the deadline passed: a new generation
    PREPARING  -> EMPTY       the deadline passed and nobody is left
    COMPLETING -> STABLE      the leader's assignment came
    COMPLETING -> PREPARING   a member came, left, changed or did not sync in time
    STABLE     -> PREPARING   a member came, left or changed

Requests of an older generation, of ids that are not members and of static members that were replaced are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from brokers.groups.members import GroupLimits, Join, Joined, Member, Reply, Roll, State, Synced
from brokers.wire.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TRANSITIONS = {
    (State.EMPTY, State.PREPARING),
    (State.PREPARING, State.COMPLETING),
    (State.PREPARING, State.EMPTY),
    (State.COMPLETING, State.STABLE),
    (State.COMPLETING, State.PREPARING),
    (State.STABLE, State.PREPARING),
}


class Group:
    """One group. Each method is a step: it returns the replies that became due, each to the `waiter` of its request."""

    def __init__(self, limits: GroupLimits) -> None:
        self._limits = limits
        self._roll = Roll()
        self._deadline_ms: int | None = None
        self._gathering = False
        self.state = State.EMPTY
        self.generation = 0
        self.protocol_type = ""
        self.protocol = ""
        self.leader = ""

    @property
    def members(self) -> Mapping[str, Member]:
        return self._roll.members

    @property
    def forgettable(self) -> bool:
        """Nobody is in it or about to be."""
        return self.state is State.EMPTY and not self._roll.announced

    # --- join ---------------------------------------------------------------------------------------------

    def join(self, waiter: object, request: Join, now_ms: int) -> list[Reply]:
        error = self._roll.join_fault(request, self._limits, self.protocol_type)
        if error is not ErrorCode.NONE:
            return [Reply(waiter, Joined(error, member_id=request.member_id))]
        if request.member_id:
            return self._rejoin(waiter, request, now_ms)
        if request.instance_id is not None and request.instance_id in self._roll.instances:
            return self._replace(waiter, request, request.instance_id, now_ms)
        if request.instance_id is None and request.id_required_first:
            self._roll.announced[request.fresh_id] = now_ms + request.session_timeout_ms
            return [Reply(waiter, Joined(ErrorCode.MEMBER_ID_REQUIRED, member_id=request.fresh_id))]
        return self._admit(waiter, request, request.fresh_id, now_ms)

    def _admit(self, waiter: object, request: Join, member_id: str, now_ms: int) -> list[Reply]:
        self.protocol_type = request.protocol_type
        self._roll.add(
            Member(
                id=member_id,
                instance_id=request.instance_id,
                client_id=request.client_id,
                client_host=request.client_host,
                session_timeout_ms=request.session_timeout_ms,
                rebalance_timeout_ms=self._limits.rebalance_timeout_ms(request),
                protocols=request.protocols,
                seen_ms=now_ms,
                joining=waiter,
            )
        )
        return self._rebalance(now_ms)

    def _rejoin(self, waiter: object, request: Join, now_ms: int) -> list[Reply]:
        member = self._roll.members.get(request.member_id)
        if member is None:
            return self._admit(waiter, request, request.member_id, now_ms)
        unchanged = member.protocols == request.protocols
        member.protocols, member.seen_ms = request.protocols, now_ms
        member.session_timeout_ms = request.session_timeout_ms
        member.rebalance_timeout_ms = self._limits.rebalance_timeout_ms(request)
        lost_answer = self.state is State.COMPLETING and unchanged
        idle = self.state is State.STABLE and unchanged and member.id != self.leader
        if lost_answer or idle:
            return [Reply(waiter, self._joined(member))]
        replies = _void_join(member, ErrorCode.UNKNOWN_MEMBER_ID)
        member.joining = waiter
        return replies + self._rebalance(now_ms)

    def _replace(self, waiter: object, request: Join, instance_id: str, now_ms: int) -> list[Reply]:
        """A static member came back under a new id: the old one is fenced, and a stable group is not disturbed."""
        member = self._roll.remove(self._roll.instances[instance_id])
        replies = _void(member, ErrorCode.FENCED_INSTANCE_ID)
        was_leader = self.leader
        unchanged = member.metadata(self.protocol) == dict(request.protocols).get(self.protocol)
        member.id, member.protocols, member.seen_ms = request.fresh_id, request.protocols, now_ms
        self._roll.add(member)
        if self.leader not in self._roll.members:
            self.leader = member.id
        if self.state is State.STABLE and unchanged:
            # The old leader's id: whoever is told that it leads would assign, and nothing is to be assigned.
            return [*replies, Reply(waiter, self._joined(member)._replace(leader=was_leader, members=()))]
        member.joining = waiter
        return replies + self._rebalance(now_ms)

    # --- sync, heartbeat, leave, commit -------------------------------------------------------------------

    def sync(
        self,
        waiter: object,
        member_id: str,
        instance_id: str | None,
        generation: int,
        assignments: Mapping[str, bytes],
        now_ms: int,
    ) -> list[Reply]:
        error = self._member_fault(member_id, instance_id, generation)
        if error is ErrorCode.NONE and self.state is State.PREPARING:
            error = ErrorCode.REBALANCE_IN_PROGRESS
        if error is not ErrorCode.NONE:
            return [Reply(waiter, Synced(error))]
        member = self._roll.members[member_id]
        member.seen_ms, member.synced = now_ms, True
        if self.state is State.STABLE:
            return [Reply(waiter, Synced(ErrorCode.NONE, member.assignment))]
        replies = _void(member, ErrorCode.UNKNOWN_MEMBER_ID)
        member.syncing = waiter
        if member_id != self.leader:
            return replies
        self._move(State.STABLE)
        self._deadline_ms = None
        return replies + self._roll.assign(assignments, now_ms)

    def heartbeat(self, member_id: str, instance_id: str | None, generation: int, now_ms: int) -> ErrorCode:
        error = self._member_fault(member_id, instance_id, generation)
        if error is not ErrorCode.NONE:
            return error
        self._roll.members[member_id].seen_ms = now_ms
        return ErrorCode.REBALANCE_IN_PROGRESS if self.state is State.PREPARING else ErrorCode.NONE

    def leave(self, leaving: Sequence[tuple[str, str | None]], now_ms: int) -> tuple[list[ErrorCode], list[Reply]]:
        """One error code for each of `leaving`; a static member may be named by its instance alone."""
        errors: list[ErrorCode] = []
        replies: list[Reply] = []
        for member_id, instance_id in leaving:
            if self._roll.announced.pop(member_id, None) is not None:
                errors.append(ErrorCode.NONE)
                continue
            known = (
                self._roll.instances.get(instance_id, "") if instance_id is not None and not member_id else member_id
            )
            errors.append(self._roll.fault(known, instance_id))
            if errors[-1] is ErrorCode.NONE:
                replies += _void(self._roll.remove(known), ErrorCode.UNKNOWN_MEMBER_ID)
        return errors, replies + self._after_loss(now_ms, gone=ErrorCode.NONE in errors)

    def commit_fault(self, member_id: str, instance_id: str | None, generation: int, now_ms: int) -> ErrorCode:
        """Whether offsets may be committed; without a generation only while the group has no members."""
        if generation < 0 and self.state is State.EMPTY:
            return ErrorCode.NONE
        error = self._member_fault(member_id, instance_id, generation)
        if error is not ErrorCode.NONE:
            return error
        self._roll.members[member_id].seen_ms = now_ms
        return ErrorCode.REBALANCE_IN_PROGRESS if self.state is State.COMPLETING else ErrorCode.NONE

    def _member_fault(self, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
        error = self._roll.fault(member_id, instance_id)
        if error is ErrorCode.NONE and generation != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        return error

    # --- time ---------------------------------------------------------------------------------------------

    def next_deadline_ms(self) -> int | None:
        """When `expire` has something to do."""
        ends = [*self._roll.expiries().values(), *self._roll.announced.values()]
        if self._deadline_ms is not None:
            ends.append(self._deadline_ms)
        return min(ends, default=None)

    def expire(self, now_ms: int) -> list[Reply]:
        """Remove whoever has been silent too long, and end a round whose time is up."""
        replies: list[Reply] = []
        for member_id in [name for name, end in self._roll.announced.items() if end <= now_ms]:
            del self._roll.announced[member_id]
        silent = [name for name, end in self._roll.expiries().items() if end <= now_ms]
        if self._deadline_ms is not None and self._deadline_ms <= now_ms:
            if self._gathering:  # the first members: nobody is late yet
                self._gathering = False
                self._deadline_ms = now_ms + self._roll.longest_rebalance_ms()
            else:
                self._deadline_ms = None
                silent += self._roll.late(self.state)
        for member_id in dict.fromkeys(silent):
            replies += _void(self._roll.remove(member_id), ErrorCode.UNKNOWN_MEMBER_ID)
        return replies + self._after_loss(now_ms, gone=bool(silent))

    # --- rounds -------------------------------------------------------------------------------------------

    def _move(self, state: State) -> None:
        assert (self.state, state) in TRANSITIONS, f"{self.state} -> {state}"
        self.state = state

    def _rebalance(self, now_ms: int) -> list[Reply]:
        """Start a round, or see whether the one that runs is complete."""
        replies: list[Reply] = []
        if self.state is State.EMPTY:
            self._move(State.PREPARING)
            self._gathering = True
            self._deadline_ms = now_ms + self._limits.first_join_wait_ms
            return []
        if self.state is not State.PREPARING:
            self._move(State.PREPARING)
            for member in self._roll.members.values():
                replies += _void_sync(member, ErrorCode.REBALANCE_IN_PROGRESS)
            self._deadline_ms = now_ms + self._roll.longest_rebalance_ms()
        return replies + self._maybe_complete(now_ms)

    def _maybe_complete(self, now_ms: int) -> list[Reply]:
        """Close the round if all have come or its time is up. A first round gathers members that start together."""
        members = self._roll.members.values()
        if self._gathering and members:
            return []
        self._gathering = False
        if self._deadline_ms is None and members and all(member.joining is None for member in members):
            # Only static members are left, and none of them came: they have their sessions to do so.
            self._deadline_ms = now_ms + max(member.session_timeout_ms for member in members)
            return []
        all_came = all(member.joining is not None for member in members) and not self._roll.announced
        return self._complete(now_ms) if all_came or self._deadline_ms is None else []

    def _complete(self, now_ms: int) -> list[Reply]:
        self.generation += 1
        self._deadline_ms = None
        if not self._roll.members:
            self._move(State.EMPTY)
            self.leader = self.protocol = ""
            return []
        self._move(State.COMPLETING)
        self._deadline_ms = now_ms + self._roll.longest_rebalance_ms()
        self.protocol = self._roll.elected_protocol()
        came = [member.id for member in self._roll.members.values() if member.joining is not None]
        if self.leader not in came:
            self.leader = came[0]
        replies = []
        for member in self._roll.members.values():
            member.synced, member.assignment, member.seen_ms = False, b"", now_ms
            if member.joining is not None:
                replies.append(Reply(member.joining, self._joined(member)))
                member.joining = None
        return replies

    def _joined(self, member: Member) -> Joined:
        members: tuple[tuple[str, str | None, bytes], ...] = ()
        if member.id == self.leader:
            members = tuple((m.id, m.instance_id, m.metadata(self.protocol)) for m in self._roll.members.values())
        return Joined(ErrorCode.NONE, self.generation, self.protocol, self.leader, member.id, members)

    def _after_loss(self, now_ms: int, *, gone: bool) -> list[Reply]:
        """Members may have gone: start a round if the group had agreed, or see whether the present one is complete."""
        if self.state is State.PREPARING:
            return self._maybe_complete(now_ms)
        return self._rebalance(now_ms) if gone and self.state is not State.EMPTY else []


def _void_join(member: Member, error: ErrorCode) -> list[Reply]:
    waiter, member.joining = member.joining, None
    return [] if waiter is None else [Reply(waiter, Joined(error, member_id=member.id))]


def _void_sync(member: Member, error: ErrorCode) -> list[Reply]:
    waiter, member.syncing = member.syncing, None
    return [] if waiter is None else [Reply(waiter, Synced(error))]


def _void(member: Member, error: ErrorCode) -> list[Reply]:
    """Tell whoever waits under this member's name that it waits in vain."""
    return _void_join(member, error) + _void_sync(member, error)
