"""The rules of a consumer group, one by one."""

from __future__ import annotations

import pytest

from brokers.groups.members import GroupLimits, Joined, State, Synced
from brokers.wire.errors import ErrorCode
from tests.unit.brokers.groups.driver import LIMITS, REBALANCE_MS, SESSION_MS, Play


def error_of(answer: object) -> ErrorCode:
    assert isinstance(answer, Joined | Synced)
    return answer.error


def test_members_that_start_together_share_the_first_generation() -> None:
    play = Play()
    assert play.join("a") is None
    play.pass_ms(LIMITS.first_join_wait_ms - 1)
    assert play.join("b") is None
    assert play.answers == {}
    play.pass_ms(1)
    first, second = play.joined("a"), play.joined("b")
    assert (first.generation, second.generation) == (1, 1)
    assert first.leader == second.leader == first.member_id
    assert [row[0] for row in first.members] == [first.member_id, second.member_id]
    assert second.members == ()


def test_the_leaders_assignment_reaches_everybody() -> None:
    play = Play()
    play.stable("a", "b", "c")
    assert play.group.state is State.STABLE


def test_a_member_that_the_leader_forgot_gets_nothing() -> None:
    play = Play()
    play.join("a")
    play.pass_ms(LIMITS.first_join_wait_ms)
    leader = play.joined("a")
    assert play.sync("a", leader, {}) == Synced(ErrorCode.NONE, b"")


def test_a_new_member_makes_the_others_join_again() -> None:
    play = Play()
    (first,) = play.stable("a")
    assert play.join("b") is None
    assert play.heartbeat(first) is ErrorCode.REBALANCE_IN_PROGRESS
    play.join("a", first.member_id)
    assert (play.joined("a").generation, play.joined("b").generation) == (2, 2)


def test_whoever_does_not_join_again_in_time_is_out() -> None:
    play = Play()
    (first,) = play.stable("a")
    assert play.join("b") is None
    play.pass_ms(REBALANCE_MS - 1)
    assert play.take("b") is None
    play.pass_ms(1)
    assert [row[0] for row in play.joined("b").members] == ["b#2"]
    assert play.heartbeat(first) is ErrorCode.UNKNOWN_MEMBER_ID


def test_whoever_does_not_sync_in_time_is_out() -> None:
    play = Play()
    play.join("a")
    play.join("b")
    play.pass_ms(LIMITS.first_join_wait_ms)
    leader, other = play.joined("a"), play.joined("b")
    assert play.sync("b", other) is None
    play.pass_ms(REBALANCE_MS)
    assert error_of(play.take("b")) is ErrorCode.REBALANCE_IN_PROGRESS
    assert play.heartbeat(leader) is ErrorCode.UNKNOWN_MEMBER_ID
    play.join("b2", other.member_id)
    assert play.joined("b2").leader == other.member_id


def test_a_silent_member_expires_and_the_others_rebalance() -> None:
    play = Play()
    first, _ = play.stable("a", "b")
    play.pass_ms(SESSION_MS - 1)
    assert play.heartbeat(first) is ErrorCode.NONE
    play.pass_ms(1)
    assert play.group.state is State.PREPARING
    assert list(play.group.members) == [first.member_id]
    assert play.heartbeat(first) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_member_whose_answer_is_due_does_not_expire() -> None:
    play = Play()
    (first,) = play.stable("a")
    play.join("b", session_ms=100)
    for _ in range(5):
        play.pass_ms(500)
        assert play.heartbeat(first) is ErrorCode.REBALANCE_IN_PROGRESS
    assert len(play.group.members) == 2


def test_leaving_starts_a_round_at_once() -> None:
    play = Play()
    first, second = play.stable("a", "b")
    assert play.leave(second.member_id) is ErrorCode.NONE
    assert play.heartbeat(first) is ErrorCode.REBALANCE_IN_PROGRESS
    assert play.heartbeat(second) is ErrorCode.UNKNOWN_MEMBER_ID
    assert play.leave(second.member_id) is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_last_to_leave_empties_the_group() -> None:
    play = Play()
    (first,) = play.stable("a")
    assert play.leave(first.member_id) is ErrorCode.NONE
    assert play.group.state is State.EMPTY
    assert play.group.forgettable
    assert play.group.next_deadline_ms() is None


def test_an_older_generation_is_refused_everywhere() -> None:
    play = Play()
    (first,) = play.stable("a")
    old = first._replace(generation=0)
    assert play.heartbeat(old) is ErrorCode.ILLEGAL_GENERATION
    assert error_of(play.sync("a", old)) is ErrorCode.ILLEGAL_GENERATION
    fault = play.group.commit_fault(first.member_id, None, 0, play.now_ms)
    assert fault is ErrorCode.ILLEGAL_GENERATION


@pytest.mark.parametrize("generation", [-1, 2, 2**31 - 1])
def test_a_generation_that_is_not_the_present_one_is_refused(generation: int) -> None:
    play = Play()
    (first,) = play.stable("a")
    assert play.heartbeat(first, generation) is ErrorCode.ILLEGAL_GENERATION


def test_an_id_that_is_no_member_is_refused_everywhere() -> None:
    play = Play()
    (first,) = play.stable("a")
    stranger = first._replace(member_id="stranger")
    assert error_of(play.join("x", "stranger")) is ErrorCode.UNKNOWN_MEMBER_ID
    assert play.heartbeat(stranger) is ErrorCode.UNKNOWN_MEMBER_ID
    assert error_of(play.sync("x", stranger)) is ErrorCode.UNKNOWN_MEMBER_ID
    assert play.group.commit_fault("stranger", None, 1, play.now_ms) is ErrorCode.UNKNOWN_MEMBER_ID


def test_commits_need_membership_unless_nobody_is_a_member() -> None:
    play = Play()
    assert play.group.commit_fault("", None, -1, play.now_ms) is ErrorCode.NONE
    (first,) = play.stable("a")
    assert play.group.commit_fault("", None, -1, play.now_ms) is ErrorCode.UNKNOWN_MEMBER_ID
    assert play.group.commit_fault(first.member_id, None, first.generation, play.now_ms) is ErrorCode.NONE


def test_a_commit_between_join_and_sync_is_refused_and_one_while_the_others_join_is_not() -> None:
    play = Play()
    (first,) = play.stable("a")
    play.join("b")
    assert play.group.commit_fault(first.member_id, None, first.generation, play.now_ms) is ErrorCode.NONE
    play.join("a", first.member_id)
    again = play.joined("a")
    fault = play.group.commit_fault(first.member_id, None, again.generation, play.now_ms)
    assert fault is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_commit_is_a_sign_of_life() -> None:
    play = Play()
    (first,) = play.stable("a")
    play.pass_ms(SESSION_MS - 1)
    assert play.group.commit_fault(first.member_id, None, first.generation, play.now_ms) is ErrorCode.NONE
    play.pass_ms(SESSION_MS - 1)
    assert play.heartbeat(first) is ErrorCode.NONE


def test_newer_clients_must_come_back_with_their_id() -> None:
    play = Play()
    answer = play.join("a", id_required_first=True)
    assert answer is not None
    assert answer.error is ErrorCode.MEMBER_ID_REQUIRED
    assert play.group.state is State.EMPTY
    assert play.join("a", answer.member_id, id_required_first=True) is None
    play.pass_ms(LIMITS.first_join_wait_ms)
    assert play.joined("a").member_id == answer.member_id


def test_an_id_that_never_comes_back_is_forgotten() -> None:
    play = Play()
    answer = play.join("a", id_required_first=True)
    assert answer is not None
    assert not play.group.forgettable
    play.pass_ms(SESSION_MS)
    assert play.group.forgettable
    assert error_of(play.join("a", answer.member_id)) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_round_waits_for_ids_that_were_given_out() -> None:
    play = Play()
    (first,) = play.stable("a")
    announced = play.join("b", id_required_first=True)
    play.join("c")
    assert play.join("a", first.member_id) is None
    assert announced is not None
    play.join("b", announced.member_id)
    assert {play.joined(name).generation for name in "abc"} == {2}


def test_a_member_that_repeats_its_join_gets_the_answer_again() -> None:
    play = Play()
    play.join("a")
    play.join("b")
    play.pass_ms(LIMITS.first_join_wait_ms)
    leader, other = play.joined("a"), play.joined("b")
    assert play.join("again", other.member_id) == other
    assert play.join("again", leader.member_id) == leader


def test_the_newer_of_two_joins_under_one_id_counts() -> None:
    play = Play()
    first, _ = play.stable("a", "b")
    play.join("old", first.member_id)
    play.join("new", first.member_id)
    assert error_of(play.take("old")) is ErrorCode.UNKNOWN_MEMBER_ID
    assert play.take("new") is None


def test_a_leader_that_joins_again_starts_a_round_and_another_member_does_not() -> None:
    play = Play()
    leader, other = play.stable("a", "b")
    assert play.join("b", other.member_id) == other
    assert play.heartbeat(leader) is ErrorCode.NONE
    assert play.join("a", leader.member_id) is None
    assert play.heartbeat(other) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_member_that_offers_something_else_starts_a_round() -> None:
    play = Play()
    _, other = play.stable("a", "b")
    assert play.join("b", other.member_id, protocols=(("range", b"changed"),)) is None
    assert play.group.state is State.PREPARING


def test_the_protocol_is_one_that_all_offer_and_most_prefer() -> None:
    play = Play()
    play.join("a", protocols=(("sticky", b""), ("range", b"")))
    play.join("b", protocols=(("range", b""), ("sticky", b""), ("own", b"")))
    play.join("c", protocols=(("own", b""), ("range", b""), ("sticky", b"")))
    play.pass_ms(LIMITS.first_join_wait_ms)
    assert {play.joined(name).protocol for name in "abc"} == {"range"}


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ({"protocols": (("other", b""),)}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": ()}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": ""}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"session_ms": 0}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"session_ms": -1}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"session_ms": 2**31 - 1}, ErrorCode.INVALID_SESSION_TIMEOUT),
    ],
)
def test_a_member_that_does_not_fit_is_refused(how: dict[str, object], code: ErrorCode) -> None:
    play = Play()
    play.stable("a")
    assert error_of(play.join("x", **how)) is code  # type: ignore[arg-type]
    assert play.group.state is State.STABLE


def test_a_full_group_takes_nobody() -> None:
    play = Play()
    play.stable("a", "b", "c")
    assert error_of(play.join("d", id_required_first=True)) is ErrorCode.MEMBER_ID_REQUIRED
    assert error_of(play.join("e")) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert error_of(play.join("f", id_required_first=True)) is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_ten_thousand_joins_leave_a_bounded_group() -> None:
    play = Play(GroupLimits(members_max=20))
    errors = [error_of(play.join(f"m{number}", id_required_first=True)) for number in range(10_000)]
    assert errors.count(ErrorCode.MEMBER_ID_REQUIRED) == 20
    assert errors.count(ErrorCode.GROUP_MAX_SIZE_REACHED) == 9_980


# Static members (KIP-345)


def static(play: Play, *names: str) -> list[Joined]:
    for name in names:
        play.join(name, instance_id=name)
    play.pass_ms(LIMITS.first_join_wait_ms)
    members = [play.joined(name) for name in names]
    for name, member in zip(names[1:], members[1:], strict=True):
        play.sync(name, member, instance_id=name)
    play.sync(names[0], members[0], {m.member_id: n.encode() for n, m in zip(names, members, strict=True)}, names[0])
    for name in names[1:]:
        play.take(name)
    return members


def test_a_static_member_comes_back_to_its_assignment_without_a_round() -> None:
    play = Play()
    _, second = static(play, "a", "b")
    back = play.join("b", instance_id="b")
    assert back is not None
    assert (back.error, back.generation) == (ErrorCode.NONE, second.generation)
    assert back.member_id != second.member_id
    assert play.sync("b", back, instance_id="b") == Synced(ErrorCode.NONE, b"b")
    assert play.group.state is State.STABLE


def test_a_static_leader_that_comes_back_is_not_asked_to_assign() -> None:
    play = Play()
    first, _ = static(play, "a", "b")
    back = play.join("a", instance_id="a")
    assert back is not None
    assert back.leader != back.member_id
    assert back.members == ()
    assert play.sync("a", back, instance_id="a") == Synced(ErrorCode.NONE, b"a")
    assert play.group.leader == back.member_id
    assert play.heartbeat(first) is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_one_that_was_replaced_is_fenced() -> None:
    play = Play()
    first, _ = static(play, "a", "b")
    play.join("a", instance_id="a")
    fault = play.group.heartbeat(first.member_id, "a", first.generation, play.now_ms)
    assert fault is ErrorCode.FENCED_INSTANCE_ID
    assert error_of(play.join("old", first.member_id, instance_id="a")) is ErrorCode.FENCED_INSTANCE_ID
    assert play.leave(first.member_id, "a") is ErrorCode.FENCED_INSTANCE_ID


def test_a_static_member_outlasts_a_round_that_it_misses() -> None:
    play = Play()
    first, second = static(play, "a", "b")
    play.join("c")
    play.join("a", first.member_id, instance_id="a")
    play.pass_ms(REBALANCE_MS)
    assert second.member_id in play.group.members
    assert play.joined("a").generation == 2


def test_a_static_member_may_be_removed_by_its_name_alone() -> None:
    play = Play()
    static(play, "a", "b")
    assert play.leave("", "b") is ErrorCode.NONE
    assert play.group.state is State.PREPARING
