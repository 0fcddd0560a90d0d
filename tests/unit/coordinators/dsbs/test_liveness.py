from __future__ import annotations

from dataclasses import replace

from coordinators.dsbs.machine.liveness import Liveness
from coordinators.dsbs.options import Settings
from coordinators.dsbs.simulation.cluster import address
from coordinators.dsbs.tables.rows import MemberRow, Status

SETTINGS = Settings(heartbeat_ms=100, timeout_ms=300, suspicion_ms=200)
PEER = MemberRow(address(2), 77, 1, Status.ALIVE)


def test_who_was_asked_and_says_nothing_for_the_timeout_is_silent() -> None:
    liveness = Liveness(SETTINGS)
    liveness.asked(2, 0)
    liveness.asked(2, 200)
    assert liveness.silent(299) == []
    assert liveness.silent(300) == [2]


def test_who_was_never_asked_is_not_silent() -> None:
    assert Liveness(SETTINGS).silent(10_000) == []


def test_a_message_of_any_kind_is_a_sign_of_life_once() -> None:
    liveness = Liveness(SETTINGS)
    liveness.asked(2, 0)
    assert liveness.heard(PEER, 5, 10)
    assert liveness.silent(1000) == []
    liveness.asked(2, 1000)
    assert not liveness.heard(PEER, 5, 1010)
    assert liveness.silent(1300) == [2]


def test_a_new_session_counts_its_messages_anew() -> None:
    liveness = Liveness(SETTINGS)
    liveness.heard(PEER, 1000, 0)
    assert liveness.heard(replace(PEER, session=78), 1, 0)


def test_a_suspect_is_over_after_the_suspicion_and_the_accuser_says_so_first() -> None:
    accuser, other = Liveness(SETTINGS), Liveness(SETTINGS)
    suspect = replace(PEER, status=Status.SUSPECT)
    accuser.accused(2)
    accuser.changed(suspect, 0)
    other.changed(suspect, 0)
    assert accuser.over(200) == [2]
    assert other.over(200) == []
    assert other.over(200 + SETTINGS.heartbeat_ms) == [2]


def test_a_refutation_ends_the_suspicion_and_a_new_one_begins_anew() -> None:
    liveness = Liveness(SETTINGS)
    liveness.changed(replace(PEER, status=Status.SUSPECT), 0)
    liveness.changed(replace(PEER, incarnation=2), 100)
    assert liveness.over(10_000) == []
    liveness.changed(replace(PEER, incarnation=2, status=Status.SUSPECT), 10_000)
    assert liveness.over(10_100) == []


def test_a_broker_that_slept_hears_before_it_judges() -> None:
    liveness = Liveness(SETTINGS)
    liveness.asked(2, 0)
    liveness.changed(replace(PEER, broker=address(3), status=Status.SUSPECT), 0)
    liveness.slept(50_000)
    assert liveness.silent(50_000) == []
    assert liveness.over(50_000) == []


def test_the_next_judgement_is_never_late() -> None:
    liveness = Liveness(SETTINGS)
    assert liveness.next_ms() is None
    liveness.asked(2, 50)
    assert liveness.next_ms() == 350
    liveness.accused(2)
    liveness.changed(replace(PEER, status=Status.SUSPECT), 360)
    assert liveness.next_ms() == 560
