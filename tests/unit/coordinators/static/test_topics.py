"""Topics of `static` are on all brokers or on none, whatever is lost on the way."""

from __future__ import annotations

import asyncio
import json

import pytest

from coordinators.errors import (
    InvalidRequest,
    JournalFailed,
    OutcomeUnknown,
    TopicExists,
    Unavailable,
    UnknownTopic,
)
from coordinators.model import Broker, Committed, TopicPartition, TopicSettings
from coordinators.placement import place
from coordinators.registry import CoordinatorSetup
from coordinators.static.coordinator import StaticCoordinator
from tests.contract.backend import Journals, MemoryJournal, addressed, asynchronous
from tests.contract.backends.static import Questions

BROKERS = tuple(map(addressed, (1, 2, 3)))


class Brokers:
    """Three, whose questions to each other go through `questions`."""

    def __init__(self) -> None:
        self.questions = Questions()
        self.journals = Journals()
        self.all: dict[int, StaticCoordinator] = {}

    async def start(self, number: int, brokers: tuple[Broker, ...] = BROKERS) -> StaticCoordinator:
        me = addressed(number)
        setup = CoordinatorSetup(me, brokers, self.journals.of(me), {}, asking=self.questions.of(me))
        self.all[number] = StaticCoordinator(setup)
        await self.all[number].start()
        return self.all[number]

    async def started(self) -> Brokers:
        for number in (1, 2, 3):
            await self.start(number)
        return self

    def lives(self, name: str = "orders") -> dict[int, str]:
        """Where the topic is, with its life there."""
        found = {number: each.view().topics.get(name) for number, each in self.all.items()}
        return {number: topic.life for number, topic in found.items() if topic is not None}

    def lose(self, to: int, *, after: str) -> None:
        """Broker `to` hears of nothing from the first question on that does what `after` says."""
        gone = False

        def lost(number: int, question: bytes) -> bool:
            nonlocal gone
            gone = gone or (number == to and json.loads(question)["do"] == after)
            return gone and number == to

        self.questions.lost = lost

    def heal(self) -> None:
        self.questions.lost = self.questions.unanswered = lambda to, question: False


def refuse(journal: MemoryJournal, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(record: bytes) -> None:
        raise JournalFailed("cannot write topics.journal: No space left on device")

    monkeypatch.setattr(journal, "append", refused)


@pytest.mark.parametrize("through", [1, 2, 3])
@asynchronous
async def test_a_topic_is_made_and_deleted_on_all_brokers_through_any(through: int) -> None:
    brokers = await Brokers().started()
    for life in ("1", "2"):
        made = await brokers.all[through].create_topic("orders", 3, 2, TopicSettings(retention_ms=5))
        assert made.known_to == {1, 2, 3}
        assert {number: each.view().topics["orders"] for number, each in brokers.all.items()} == dict.fromkeys(
            (1, 2, 3), made.topic
        )
        assert made.topic.partitions == place("orders", 3, 2, (1, 2, 3))
        assert brokers.lives() == dict.fromkeys((1, 2, 3), life)
        with pytest.raises(TopicExists, match="orders"):
            await brokers.all[through].create_topic("orders", 3, 2)
        await brokers.all[through].delete_topic("orders")
        assert brokers.lives() == {}
    with pytest.raises(UnknownTopic, match="orders"):
        await brokers.all[through].delete_topic("orders")


@asynchronous
async def test_a_life_is_new_to_every_broker_also_to_one_that_forgot() -> None:
    brokers = await Brokers().started()
    for _ in range(3):
        await brokers.all[1].create_topic("orders", 1, 1)
        await brokers.all[1].delete_topic("orders")
    brokers.journals = Journals()  # the first broker's disk was lost
    await brokers.start(1)
    await brokers.all[1].create_topic("orders", 1, 1)
    assert brokers.lives() == dict.fromkeys((1, 2, 3), "4")


@pytest.mark.parametrize("away", [1, 2, 3])
@pytest.mark.parametrize("through", [1, 2, 3])
@asynchronous
async def test_while_a_broker_is_away_topics_stay_as_they_are_and_the_error_names_it(away: int, through: int) -> None:
    if away == through:
        return
    brokers = await Brokers().started()
    await brokers.all[through].create_topic("kept", 1, 1)
    await brokers.all[away].stop()
    with pytest.raises(Unavailable, match=f"broker {away}: .*cannot be reached"):
        await brokers.all[through].create_topic("orders", 1, 1)
    with pytest.raises(Unavailable, match=f"broker {away}: .*cannot be reached"):
        await brokers.all[through].delete_topic("kept")
    assert brokers.lives() == {}
    assert brokers.lives("kept") == dict.fromkeys((1, 2, 3), "1")
    await brokers.start(away)
    await brokers.all[through].create_topic("orders", 1, 1)
    assert brokers.lives().keys() == {1, 2, 3}


@asynchronous
async def test_a_creation_that_one_disk_refuses_is_undone_on_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = await Brokers().started()
    with monkeypatch.context() as full:
        refuse(brokers.journals.of(addressed(3))("topics"), full)
        with pytest.raises(JournalFailed, match=r"broker 3: cannot write .*No space left"):
            await brokers.all[2].create_topic("orders", 3, 1)
    assert brokers.lives() == {}
    await brokers.all[2].create_topic("orders", 3, 1)
    assert set(brokers.lives().values()) == {"2"}, "the life that was undone is past on those that had it"


@asynchronous
async def test_a_creation_whose_answer_is_lost_is_undone_there_too() -> None:
    brokers = await Brokers().started()
    brokers.questions.unanswered = lambda to, question: to == 3 and json.loads(question).get("partitions") == 2
    with pytest.raises(Unavailable, match="not made on any broker: broker 3: no answer"):
        await brokers.all[1].create_topic("orders", 2, 1)
    assert brokers.lives() == {}


@asynchronous
async def test_where_undoing_fails_too_the_error_says_where_and_the_next_creation_makes_it_whole() -> None:
    brokers = await Brokers().started()
    brokers.lose(3, after="keep")
    with pytest.raises(OutcomeUnknown, match="broker 3 may have kept it: create it again, or delete it"):
        await brokers.all[1].create_topic("orders", 2, 1)
    brokers.heal()
    await brokers.all[2].create_topic("orders", 2, 1)
    assert brokers.lives().keys() == {1, 2, 3}
    assert len(set(brokers.lives().values())) == 1


@asynchronous
async def test_a_request_that_arrives_after_its_undoing_makes_nothing() -> None:
    brokers = await Brokers().started()
    late: list[bytes] = []

    def delayed(to: int, question: bytes) -> bool:
        if to == 3 and json.loads(question).get("partitions") == 2:
            late.append(question)
            return True
        return False

    brokers.questions.lost = delayed
    with pytest.raises(Unavailable):
        await brokers.all[1].create_topic("orders", 2, 1)
    answer = json.loads(await brokers.questions.answering[addressed(3)](late[0]))
    assert answer["error"] == "TopicExists"
    assert brokers.lives() == {}


@asynchronous
async def test_a_topic_that_the_first_broker_died_over_is_completed_with_what_it_holds() -> None:
    """Its life stays, so nothing that was written to the part that is there goes."""
    brokers = await Brokers().started()
    half = {"do": "keep", "name": "orders", "partitions": 2, "replication_factor": 1, "life": 7}
    await brokers.questions.answering[addressed(2)](json.dumps({**half, "settings": {}}).encode())
    assert brokers.lives() == {2: "7"}
    with pytest.raises(TopicExists, match="on broker 2 alone, made otherwise; delete it first"):
        await brokers.all[2].create_topic("orders", 5, 1)
    await brokers.all[2].create_topic("orders", 2, 1)
    assert brokers.lives() == dict.fromkeys((1, 2, 3), "7")


@asynchronous
async def test_a_deletion_that_one_broker_missed_is_finished_by_another_one() -> None:
    brokers = await Brokers().started()
    await brokers.all[1].create_topic("orders", 2, 1)
    brokers.lose(2, after="keep")
    with pytest.raises(OutcomeUnknown, match=r"broker 2 may still have topic 'orders' .*delete it again"):
        await brokers.all[3].delete_topic("orders")
    brokers.heal()
    assert brokers.lives() == {2: "1"}
    await brokers.all[3].delete_topic("orders")
    assert brokers.lives() == {}


@asynchronous
async def test_what_a_deletion_left_behind_does_not_come_into_the_next_topic_of_that_name() -> None:
    brokers = await Brokers().started()
    await brokers.all[1].create_topic("orders", 2, 1)
    brokers.lose(2, after="keep")
    with pytest.raises(OutcomeUnknown):
        await brokers.all[3].delete_topic("orders")
    brokers.heal()
    await brokers.all[3].create_topic("orders", 2, 1)
    assert brokers.lives() == dict.fromkeys((1, 2, 3), "2")


@asynchronous
async def test_a_deleted_topics_commits_are_gone_on_the_broker_that_serves_the_group() -> None:
    brokers = await Brokers().started()
    await brokers.all[1].create_topic("orders", 1, 1)
    home = brokers.all[brokers.all[1].group_coordinator("readers")]
    away = next(each for each in brokers.all.values() if each is not home)
    await home.commit_offsets("readers", {TopicPartition("orders", 0): Committed(5)})
    await away.delete_topic("orders")
    assert await home.committed_offsets("readers") == {}


@asynchronous
async def test_of_two_creations_at_once_one_is_made_and_the_other_finds_it() -> None:
    brokers = await Brokers().started()
    made = await asyncio.gather(
        *(each.create_topic("orders", number, 1) for number, each in brokers.all.items()), return_exceptions=True
    )
    assert [type(each) for each in made].count(TopicExists) == 2
    assert len({each.view().topics["orders"] for each in brokers.all.values()}) == 1


@asynchronous
async def test_who_asked_may_go_away_and_the_change_is_whole_all_the_same() -> None:
    brokers = await Brokers().started()
    asked, go_on = asyncio.Event(), asyncio.Event()
    of_third = brokers.questions.answering[addressed(3)]

    async def slow(question: bytes) -> bytes:
        if json.loads(question)["do"] == "keep":
            asked.set()
            await go_on.wait()
        return await of_third(question)

    brokers.questions.answering[addressed(3)] = slow
    creating = asyncio.create_task(brokers.all[1].create_topic("orders", 1, 1))
    await asked.wait()
    creating.cancel()
    go_on.set()
    with pytest.raises(TopicExists):  # in its turn, behind the one that nobody waits for
        await brokers.all[2].create_topic("orders", 1, 1)
    assert brokers.lives().keys() == {1, 2, 3}


@asynchronous
async def test_brokers_whose_configs_list_others_make_nothing_together() -> None:
    brokers = Brokers()
    await brokers.start(1)
    await brokers.start(2)
    await brokers.start(3, (*BROKERS, addressed(4)))
    with pytest.raises(InvalidRequest, match=r"broker 3 lists brokers \[1, 2, 3, 4\]"):
        await brokers.all[1].create_topic("orders", 1, 1)
    assert brokers.lives() == {}


@pytest.mark.parametrize(
    "question",
    [b"", b"[]", b"{}", b'{"do":"look"}', b'{"do":"boil"}', b"\xff", b"[" * 100_000, b'{"do":"keep","name":"../x"}',
     b'{"do":"keep","name":"t","partitions":100000,"replication_factor":1,"settings":{},"life":1}'],
)  # fmt: skip
@asynchronous
async def test_what_is_no_question_is_answered_with_an_error_and_changes_nothing(question: bytes) -> None:
    brokers = await Brokers().started()
    answer = json.loads(await brokers.questions.answering[addressed(2)](question))
    assert answer["error"] == "InvalidRequest"
    assert brokers.all[2].view().topics == {}


@asynchronous
async def test_what_is_asked_of_others_is_counted_and_a_lookup_asks_nobody() -> None:
    brokers = await Brokers().started()
    await brokers.all[1].create_topic("orders", 1, 1)
    await brokers.all[1].find_topics(["none"])
    counted = brokers.all[1].meter.snapshot()
    assert counted["create_topic"][0] == 4, "a look and a change, at two others"
    assert counted["create_topic"][1] > sum(len(question) for _, question in brokers.questions.asked)
    assert counted["find_topics"][:2] == (0, 0)
