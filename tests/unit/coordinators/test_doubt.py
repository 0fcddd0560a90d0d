from __future__ import annotations

from math import inf

from coordinators.doubt import Doubt


def sure(doubt: Doubt, now: float) -> bool:
    return now < doubt.sure_until


def awake(doubt: Doubt, *, until: float, since: float = 0.0) -> Doubt:
    """As one is who looks at the clock each quarter of a second and misses nothing."""
    now = since
    while now <= until:
        doubt.tick(now)
        doubt.trust(now, doubt.naps)
        now += 0.25
    return doubt


def test_who_never_heard_is_not_sure() -> None:
    assert not Doubt(1.0).sure


def test_who_has_nothing_to_doubt_is_always_sure() -> None:
    assert sure(Doubt(inf), 1e9)


def test_what_is_heard_counts_from_when_it_was_asked() -> None:
    doubt = Doubt(1.0)
    doubt.tick(10.0)
    doubt.trust(10.0, doubt.naps)
    assert sure(doubt, 10.9)
    assert not sure(doubt, 11.0)


def test_after_a_pause_nobody_is_sure_whichever_comes_first_the_request_or_the_look_at_the_clock() -> None:
    doubt = awake(Doubt(1.0), until=5.0)
    assert sure(doubt, 5.9)
    assert not sure(doubt, 6.0), "the request comes first"
    doubt.tick(6.0)
    assert not doubt.sure
    doubt.trust(6.0, doubt.naps)
    assert sure(doubt, 6.5)


def test_a_question_that_was_asked_before_a_pause_answers_nothing() -> None:
    doubt = awake(Doubt(1.0), until=5.0)
    naps = doubt.naps
    doubt.tick(8.0)
    doubt.trust(7.9, naps)
    assert not doubt.sure


def test_a_pause_shorter_than_the_bound_is_none() -> None:
    doubt = awake(Doubt(1.0), until=5.0)
    doubt.tick(5.9)
    assert doubt.sure


def test_an_older_answer_takes_nothing_back() -> None:
    doubt = awake(Doubt(1.0), until=5.0)
    doubt.trust(1.0, doubt.naps)
    assert sure(doubt, 5.9)
