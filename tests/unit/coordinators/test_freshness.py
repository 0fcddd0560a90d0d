from __future__ import annotations

from math import inf
from pathlib import Path

import pytest

from brokers.journal import FileJournal
from coordinators.errors import JournalFailed, Unavailable
from coordinators.freshness import Doubt, Freshness
from coordinators.model import Broker, TopicPartition
from coordinators.registry import CoordinatorSetup
from coordinators.static.coordinator import StaticCoordinator
from tests.contract.backend import asynchronous


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


class FullDisk(StaticCoordinator):
    """Has to note something before it knows what happened, and cannot."""

    def begin(self) -> None:
        self._doubt = Doubt(1.0)
        self._freshness = Freshness(self.me.id, self._doubt, self._clock, self._awake, self._hear)

    async def _hear(self) -> None:
        raise JournalFailed("the disk is full")


@asynchronous
async def test_who_cannot_be_sure_for_want_of_room_is_unavailable(tmp_path: Path) -> None:
    me = Broker(1, "127.0.0.1", 9001, 9501)
    journals = {name: FileJournal(tmp_path / name, durable=False) for name in ("topics", "offsets")}
    coordinator = FullDisk(CoordinatorSetup(me, (me,), journals.__getitem__, {}))
    await coordinator.start()
    await coordinator.create_topic("t", 1, 1)
    coordinator.begin()
    with pytest.raises(Unavailable, match="the disk is full"):
        await coordinator.find_leader(TopicPartition("t", 0))
    await coordinator.stop()
    for journal in journals.values():
        journal.close()
