"""Plays a group: members as short names, time by hand, answers by waiter."""

from __future__ import annotations

from brokers.groups.machine import Group
from brokers.groups.members import GroupLimits, Join, Joined, Protocol, Reply, Synced
from brokers.wire.errors import ErrorCode

LIMITS = GroupLimits(members_max=4, first_join_wait_ms=50)
SESSION_MS = 10_000
REBALANCE_MS = 3_000


class Play:
    """A group, its clock, and every answer that was given, by the name of who waits for it."""

    def __init__(self, limits: GroupLimits = LIMITS) -> None:
        self.group = Group(limits)
        self.now_ms = 1_000
        self.answers: dict[str, Joined | Synced] = {}
        self._fresh = 0

    def _note(self, replies: list[Reply]) -> None:
        for reply in replies:
            assert isinstance(reply.waiter, str)
            assert reply.waiter not in self.answers, f"{reply.waiter} was answered twice"
            self.answers[reply.waiter] = reply.answer

    def take(self, waiter: str) -> Joined | Synced | None:
        return self.answers.pop(waiter, None)

    def join(
        self,
        waiter: str,
        member_id: str = "",
        *,
        instance_id: str | None = None,
        protocols: tuple[tuple[str, bytes], ...] = (("range", b"m"),),
        protocol_type: str = "consumer",
        session_ms: int = SESSION_MS,
        id_required_first: bool = False,
    ) -> Joined | None:
        """The answer if it came at once."""
        self.answers.pop(waiter, None)
        self._fresh += 1
        request = Join(
            member_id=member_id,
            instance_id=instance_id,
            fresh_id=f"{waiter}#{self._fresh}",
            id_required_first=id_required_first,
            client_id="client",
            client_host="host",
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=REBALANCE_MS,
            protocol_type=protocol_type,
            protocols=tuple(Protocol(*offer) for offer in protocols),
        )
        self._note(self.group.join(waiter, request, self.now_ms))
        answer = self.answers.get(waiter)
        assert not isinstance(answer, Synced)
        return answer

    def sync(
        self, waiter: str, member: Joined, assignments: dict[str, bytes] | None = None, instance_id: str | None = None
    ) -> Synced | None:
        self.answers.pop(waiter, None)
        self._note(
            self.group.sync(waiter, member.member_id, instance_id, member.generation, assignments or {}, self.now_ms)
        )
        answer = self.answers.get(waiter)
        assert not isinstance(answer, Joined)
        return answer

    def heartbeat(self, member: Joined, generation: int | None = None) -> ErrorCode:
        number = member.generation if generation is None else generation
        return self.group.heartbeat(member.member_id, None, number, self.now_ms)

    def leave(self, member_id: str, instance_id: str | None = None) -> ErrorCode:
        errors, replies = self.group.leave([(member_id, instance_id)], self.now_ms)
        self._note(replies)
        return errors[0]

    def pass_ms(self, ms: int) -> None:
        """Let time pass, stopping at each deadline as a clock would."""
        end = self.now_ms + ms
        while (deadline := self.group.next_deadline_ms()) is not None and deadline <= end:
            self.now_ms = max(self.now_ms, deadline)
            self._note(self.group.expire(self.now_ms))
        self.now_ms = end

    def joined(self, waiter: str) -> Joined:
        answer = self.take(waiter)
        assert isinstance(answer, Joined)
        assert answer.error is ErrorCode.NONE
        return answer

    def stable(self, *names: str) -> list[Joined]:
        """Members that have joined together and been assigned their own names; the first leads."""
        for name in names:
            assert self.join(name) is None
        self.pass_ms(LIMITS.first_join_wait_ms)
        members = [self.joined(name) for name in names]
        for member, name in zip(members[1:], names[1:], strict=True):
            assert self.sync(name, member) is None
        assignment = {member.member_id: name.encode() for member, name in zip(members, names, strict=True)}
        self.sync(names[0], members[0], assignment)
        for name in names:
            assert self.take(name) == Synced(ErrorCode.NONE, name.encode())
        return members
