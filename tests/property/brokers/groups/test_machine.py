"""Any order of joins, syncs, heartbeats, departures and waiting keeps what a group promises."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from brokers.groups.members import GroupLimits, Joined, State, Synced
from brokers.wire.errors import ErrorCode
from tests.unit.brokers.groups.driver import Play

NAMES = st.sampled_from(["a", "b", "c", "d"])


class AnyGroup(RuleBasedStateMachine):
    """Four clients that do as they please; each knows only what it was told."""

    def __init__(self) -> None:
        super().__init__()
        self.play = Play(GroupLimits(members_max=3))
        self.known: dict[str, Joined] = {}
        self.names: dict[str, str] = {}  # of clients, by the ids that they were given
        self.waiting: dict[str, str] = {}
        self.generation = 0
        self.assigned: dict[int, dict[str, bytes]] = {}
        self._requests = 0

    def _waiter(self, name: str) -> str:
        self._requests += 1
        waiter = f"{name}:{self._requests}"
        self.waiting[waiter] = name
        return waiter

    def _collect(self) -> None:
        for waiter in list(self.waiting):
            answer = self.play.take(waiter)
            if answer is not None:
                self._told(self.waiting.pop(waiter), answer)

    def _told(self, name: str, answer: Joined | Synced) -> None:
        if isinstance(answer, Joined) and answer.member_id:
            self.known[name] = answer
            self.names[answer.member_id] = name
            if answer.error is ErrorCode.NONE:
                assert answer.generation <= self.play.group.generation
        if isinstance(answer, Synced) and answer.error is ErrorCode.NONE and name in self.known:
            rows = self.assigned.setdefault(self.known[name].generation, {})
            member_id = self.known[name].member_id
            assert rows.setdefault(member_id, answer.assignment) == answer.assignment

    @rule(name=NAMES, anew=st.booleans(), asks_first=st.booleans(), static=st.booleans())
    def join(self, name: str, anew: bool, asks_first: bool, static: bool) -> None:
        known = self.known.get(name)
        member_id = "" if anew or known is None else known.member_id
        waiter = self._waiter(name)
        instance_id = name if static else None
        self.play.join(waiter, member_id, instance_id=instance_id, id_required_first=asks_first)
        self._collect()

    @rule(name=NAMES)
    def sync(self, name: str) -> None:
        known = self.known.get(name)
        if known is not None:
            waiter = self._waiter(name)
            rows = {row[0]: self.names[row[0]].encode() for row in known.members}
            self.play.sync(waiter, known, rows)
            self._collect()

    @rule(name=NAMES)
    def heartbeat(self, name: str) -> None:
        if name in self.known:
            self.play.heartbeat(self.known[name])

    @rule(name=NAMES)
    def leave(self, name: str) -> None:
        if name in self.known:
            self.play.leave(self.known[name].member_id)
            self._collect()

    @rule(ms=st.integers(1, 12_000))
    def wait(self, ms: int) -> None:
        self.play.pass_ms(ms)
        self._collect()

    @invariant()
    def generations_only_grow(self) -> None:
        assert self.play.group.generation >= self.generation
        self.generation = self.play.group.generation

    @invariant()
    def everybody_gets_what_was_meant_for_it(self) -> None:
        """By client, not by id: a static member that comes back under a new one goes on with what it had."""
        for rows in self.assigned.values():
            assert all(assignment in {b"", self.names[member_id].encode()} for member_id, assignment in rows.items())

    @invariant()
    def the_group_is_bounded_and_its_state_fits(self) -> None:
        group = self.play.group
        assert len(group.members) <= 3
        assert (group.state is State.EMPTY) <= (not group.members)
        if group.state in {State.COMPLETING, State.STABLE}:
            assert group.leader in group.members
            assert not any(member.joining for member in group.members.values())
        if group.state is State.STABLE:
            assert not any(member.syncing for member in group.members.values())

    def teardown(self) -> None:
        """Nobody waits for ever: silence ends every group, and answers whoever waited."""
        self.play.pass_ms(100_000)
        self._collect()
        assert self.waiting == {}
        assert self.play.group.forgettable


AnyGroup.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestAnyGroup = AnyGroup.TestCase
