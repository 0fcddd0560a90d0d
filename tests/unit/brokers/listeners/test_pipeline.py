"""A connection's pipeline alone: which event can come in which state, and what follows."""

from __future__ import annotations

from brokers.listeners.config import ListenerLimits
from brokers.listeners.events import Actions, Answer, Do, Event, Growth, Needs, Requests
from brokers.listeners.intake import Reads
from brokers.listeners.pipeline import TABLE, Pipeline, State, impossible, too_late

# By state in the order of declaration: READY, SERVING, LOOKING_UP, COMMITTING, BLOCKED, UNREAD, CLOSING, CLOSED. X is a
# step, - comes too late and changes nothing, and where nothing stands the event cannot come.
CELLS = """
ARRIVED       |X XXXX  |
ANSWERED      | X  X --|
PROMISED      | X      |
BLOCKED       | X      |
SERVED        | XXXXX--|
KNOWN         |X XXXXX-|
LOOKED_UP     | XXXXX--|
CONGESTED     |XXXXXXXX|
DRAINED       |XXXXXXX-|
LENT_LEFT     | X   XX-|
GREW          |XXXXXX--|
TURN_OVER     |X XXXX--|
DELAY_OVER    |X XXXX--|
CLIENT_ENDED  |X XXXX--|
CLOSE         |XXXXXX--|
GIVE_UP       |XXXXXXXX|
BROKEN        |XXXXXXX-|
LOST          |XXXXXXXX|
"""
WHOLE = ([(4, 100)], 100, False)
SERVED = (None, None, Needs.TURN)


def of(limits: ListenerLimits | None = None) -> Pipeline:
    return Pipeline(limits or ListenerLimits())


def done(actions: Actions) -> list[Do]:
    return [action for action, _ in actions]


def serving(limits: ListenerLimits | None = None) -> Pipeline:
    pipeline = of(limits)
    assert done(pipeline.step(Event.ARRIVED, WHOLE)) == [Do.SERVE]
    return pipeline


def blocked() -> Pipeline:
    pipeline = serving()
    pipeline.step(Event.BLOCKED)
    pipeline.step(Event.SERVED, SERVED)
    assert pipeline.state is State.BLOCKED
    return pipeline


def kept(size: int = 100) -> Requests:
    data = bytearray(size)
    return Requests(data, memoryview(data), [(0, size)])


def test_each_event_in_each_state_is_a_step_or_too_late_or_named_as_impossible() -> None:
    signs = {impossible: " ", too_late: "-"}
    rows = [f"{event.name:<14}|{''.join(signs.get(step, 'X') for step in TABLE[event])}|" for event in Event]
    assert rows == CELLS.split("\n")[1:-1]
    assert {len(row) for row in TABLE} == {len(State)}


def test_what_a_read_brings_is_served_at_once_and_answered() -> None:
    pipeline = serving()
    assert pipeline.step(Event.ANSWERED, Answer([b"a"])) == [(Do.WRITE, [b"a"])]
    assert pipeline.step(Event.SERVED, SERVED) == []
    assert pipeline.state is State.READY


def test_answers_leave_in_the_order_of_their_requests_whatever_becomes_known_first() -> None:
    pipeline = serving()
    first, second = Answer(), Answer()
    for answer in (first, second):
        pipeline.step(Event.PROMISED, answer)
    assert pipeline.step(Event.ANSWERED, Answer([b"third"])) == []
    pipeline.step(Event.SERVED, SERVED)
    second.pieces = [b"second"]
    assert pipeline.step(Event.KNOWN, second) == []
    first.pieces = [b"first"]
    assert [pieces for _, pieces in pipeline.step(Event.KNOWN, first)] == [[b"first"], [b"second"], [b"third"]]


def test_an_answer_that_will_not_come_breaks_the_connection_after_those_before_it() -> None:
    pipeline = serving()
    first, second = Answer(), Answer()
    for answer in (first, second):
        pipeline.step(Event.PROMISED, answer)
    pipeline.step(Event.SERVED, SERVED)
    second.error = OSError()
    assert pipeline.step(Event.KNOWN, second) == []
    first.pieces = [b"first"]
    assert pipeline.step(Event.KNOWN, first) == [(Do.WRITE, [b"first"]), (Do.BREAK, second.error)]
    assert done(pipeline.step(Event.BROKEN)) == [Do.STOP_READING, Do.ABORT]


def test_what_follows_a_request_that_blocks_waits_for_its_answer() -> None:
    pipeline = blocked()
    assert done(pipeline.step(Event.ARRIVED, WHOLE)) == [Do.KEEP]
    waits = kept()
    assert pipeline.step(Event.SERVED, (None, waits, Needs.OTHERS)) == []
    assert pipeline.next() is None
    assert done(pipeline.step(Event.ANSWERED, Answer([b"a"]))) == [Do.WRITE, Do.CARRY_ON]
    assert (pipeline.next(), pipeline.next()) == (waits, None)


def test_when_one_asks_for_leaders_those_behind_it_ask_too_and_are_carried_out_in_order() -> None:
    pipeline = serving()
    first, second, third = kept(), kept(), kept()
    assert pipeline.step(Event.SERVED, (None, first, Needs.LEADERS)) == [(Do.LOOK_UP, first)]
    for later in (second, third):
        assert done(pipeline.step(Event.ARRIVED, WHOLE)) == [Do.KEEP]
        assert pipeline.step(Event.SERVED, (None, later, Needs.OTHERS)) == [(Do.LOOK_UP, later)]
    assert pipeline.step(Event.LOOKED_UP, [second]) == []
    assert pipeline.step(Event.LOOKED_UP, [first]) == [(Do.CARRY_ON, None)]
    assert (pipeline.next(), pipeline.next(), pipeline.next()) == (first, second, None)
    pipeline.step(Event.SERVED, SERVED)
    assert pipeline.state is State.LOOKING_UP


def test_requests_that_waited_unasked_ask_when_the_first_of_them_needs_its_leaders() -> None:
    pipeline = blocked()
    first, second = kept(), kept()
    for later in (first, second):
        pipeline.step(Event.ARRIVED, WHOLE)
        assert pipeline.step(Event.SERVED, (None, later, Needs.OTHERS)) == []
    pipeline.step(Event.ANSWERED, Answer([b"a"]))
    assert pipeline.next() is first
    asking = pipeline.step(Event.SERVED, (None, first, Needs.LEADERS))
    assert asking == [(Do.LOOK_UP, first), (Do.LOOK_UP, second)]


def test_requests_that_are_held_back_in_the_middle_of_a_read_keep_their_place() -> None:
    pipeline = serving()
    rest, later = kept(), kept()
    pipeline.step(Event.BLOCKED)
    assert pipeline.step(Event.SERVED, (None, rest, Needs.TURN)) == []
    pipeline.step(Event.ARRIVED, WHOLE)
    pipeline.step(Event.SERVED, (None, later, Needs.OTHERS))
    assert done(pipeline.step(Event.ANSWERED, Answer([b"a"]))) == [Do.WRITE, Do.CARRY_ON]
    assert (pipeline.next(), pipeline.next()) == (rest, later)


def test_every_request_of_a_read_that_waits_counts() -> None:
    data = bytearray(100)
    pipeline = serving(ListenerLimits(requests_in_flight_max=2))
    pipeline.step(Event.BLOCKED)
    three = Requests(data, memoryview(data), [(0, 10), (20, 30), (40, 50)])
    assert pipeline.step(Event.SERVED, (None, three, Needs.TURN)) == [(Do.PACE, None)]
    assert pipeline.intake.reads is Reads.PAUSED


def test_what_depends_on_commits_waits_until_all_are_over() -> None:
    pipeline = serving()
    commits = [Answer(commits=True), Answer(commits=True)]
    for commit in commits:
        pipeline.step(Event.PROMISED, commit)
    pipeline.step(Event.SERVED, (None, kept(), Needs.COMMITS))
    for commit in commits:
        assert pipeline.state is State.COMMITTING
        commit.pieces = [b"c"]
        actions = pipeline.step(Event.KNOWN, commit)
    assert done(actions) == [Do.WRITE, Do.CARRY_ON]


def test_an_answer_in_files_waits_until_the_socket_has_taken_all_and_holds_back_what_follows() -> None:
    pipeline = serving()
    assert pipeline.step(Event.ANSWERED, Answer([b"records"], lent=True)) == [(Do.DRAIN, None)]
    assert not pipeline.serves
    pipeline.step(Event.SERVED, (None, kept(), Needs.TURN))
    assert pipeline.state is State.UNREAD
    assert pipeline.step(Event.DRAINED)[0] == (Do.LEND, [b"records"])
    assert pipeline.state is State.UNREAD
    assert pipeline.step(Event.LENT_LEFT) == [(Do.CARRY_ON, None)]


def test_the_socket_is_not_read_while_the_client_does_not_read() -> None:
    pipeline = of()
    assert pipeline.step(Event.CONGESTED) == [(Do.PACE, None)]
    assert (pipeline.state, pipeline.intake.reads) == (State.UNREAD, Reads.PAUSED)
    assert pipeline.step(Event.DRAINED) == [(Do.PACE, None)]
    assert (pipeline.state, pipeline.intake.reads) == (State.READY, Reads.ON)


def test_the_socket_is_not_read_while_too_many_answers_are_due() -> None:
    pipeline = serving(ListenerLimits(requests_in_flight_max=1))
    answers = [Answer(), Answer()]
    for answer in answers:
        pipeline.step(Event.PROMISED, answer)
    assert done(pipeline.step(Event.SERVED, SERVED)) == [Do.PACE]
    answers[0].pieces = [b"a"]
    assert done(pipeline.step(Event.KNOWN, answers[0])) == [Do.WRITE, Do.PACE]
    assert pipeline.intake.reads is Reads.ON


def test_the_socket_is_not_read_while_requests_of_a_client_that_pipelines_gather() -> None:
    pipeline = of()
    produces = ([(4, 50), (54, 100)], 100, True)
    assert done(pipeline.step(Event.ARRIVED, produces)) == [Do.DELAY, Do.SERVE]
    assert done(pipeline.step(Event.SERVED, SERVED)) == [Do.PACE]
    assert done(pipeline.step(Event.DELAY_OVER)) == [Do.PACE]
    assert pipeline.intake.reads is Reads.ON


def test_gathering_can_be_switched_off() -> None:
    pipeline = of(ListenerLimits(gather_ms=0))
    assert done(pipeline.step(Event.ARRIVED, ([(4, 50), (54, 100)], 100, True))) == [Do.SERVE]


def test_a_large_request_that_holds_up_others_has_so_long_to_become_whole() -> None:
    pipeline = of()
    assert done(pipeline.step(Event.GREW, Growth(waits=True, has_right_of_way=False))) == [Do.PACE]
    assert done(pipeline.step(Event.GREW, Growth(waits=False, has_right_of_way=True))) == [Do.BEGIN_TURN, Do.PACE]
    assert done(pipeline.step(Event.TURN_OVER, False)) == [Do.BEGIN_TURN], "nobody waits for it any more"
    assert done(pipeline.step(Event.TURN_OVER, True)) == [Do.REFUSE]
    assert done(pipeline.step(Event.CLOSE)) == [Do.END_TURN, Do.STOP_READING, Do.CLOSE]


def test_a_turn_that_is_over_with_its_request_refuses_nobody() -> None:
    pipeline = of()
    pipeline.step(Event.GREW, Growth(waits=False, has_right_of_way=True))
    assert done(pipeline.step(Event.GREW, Growth(waits=False, has_right_of_way=False))) == [Do.END_TURN]
    assert pipeline.step(Event.TURN_OVER, True) == []


def test_a_client_that_has_ended_its_side_gets_what_is_due_and_then_the_end() -> None:
    pipeline = blocked()
    assert done(pipeline.step(Event.CLIENT_ENDED)) == [Do.STOP_READING, Do.HURRY]
    assert done(pipeline.step(Event.ANSWERED, Answer([b"a"]))) == [Do.WRITE, Do.CLOSE]
    assert pipeline.state is State.CLOSED


def test_a_client_that_has_ended_its_side_and_is_owed_nothing_is_gone() -> None:
    assert done(of().step(Event.CLIENT_ENDED)) == [Do.STOP_READING, Do.CLOSE]


def test_who_is_told_to_end_gets_what_is_known_and_nothing_behind_what_is_not() -> None:
    pipeline = serving()
    pipeline.step(Event.ANSWERED, Answer([b"records"], lent=True))
    unknown = Answer()
    pipeline.step(Event.PROMISED, unknown)
    pipeline.step(Event.ANSWERED, Answer([b"behind"]))
    assert done(pipeline.step(Event.CLOSE)) == [Do.STOP_READING]
    assert pipeline.state is State.CLOSING
    unknown.pieces = [b"too late"]
    assert pipeline.step(Event.KNOWN, unknown) == []
    assert pipeline.step(Event.DRAINED) == [(Do.LEND, [b"records"])]
    assert pipeline.step(Event.LENT_LEFT) == [(Do.CLOSE, None)]


def test_who_does_not_read_what_is_due_before_the_end_is_given_up() -> None:
    pipeline = serving()
    pipeline.step(Event.ANSWERED, Answer([b"records"], lent=True))
    assert done(pipeline.step(Event.GIVE_UP)) == [Do.STOP_READING]
    assert done(pipeline.step(Event.GIVE_UP)) == [Do.STOP_READING, Do.ABORT]
    assert pipeline.step(Event.DRAINED) == []
