from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from coordinators.errors import InvalidRequest, JournalFailed, UnknownTopic, Unreadable
from coordinators.model import Committed, TopicPartition, TopicSettings
from coordinators.registry import BACK_ENDS, CoordinatorSetup, create
from coordinators.static.coordinator import StaticCoordinator
from tests.contract.backend import Journals, MemoryJournal, addressed, asynchronous

AT = TopicPartition("orders", 0)


def setup(journals: Journals, me: int = 1, **options: object) -> CoordinatorSetup:
    return CoordinatorSetup(addressed(me), tuple(map(addressed, (1, 2, 3))), journals.of(addressed(me)), options)


@asynchronous
async def test_a_restarted_broker_has_the_topics_and_settings_that_it_had() -> None:
    journals = Journals()
    before = StaticCoordinator(setup(journals))
    await before.start()
    await before.create_topic("orders", 3, 2, TopicSettings(retention_ms=5))
    await before.create_topic("gone", 1, 1)
    await before.delete_topic("gone")
    after = StaticCoordinator(setup(journals))
    await after.start()
    assert after.view().topics == before.view().topics


@asynchronous
async def test_each_life_of_a_topics_name_is_told_apart_from_those_before_also_after_a_restart() -> None:
    journals = Journals()
    lives = []
    for _ in range(2):
        coordinator = StaticCoordinator(setup(journals))
        await coordinator.start()
        for _ in range(2):
            lives.append((await coordinator.create_topic("orders", 1, 1)).topic.life)
            await coordinator.delete_topic("orders")
    assert len(set(lives)) == 4


@asynchronous
async def test_a_journal_that_cannot_be_rewritten_is_read_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    journals = Journals()
    before = StaticCoordinator(setup(journals))
    await before.start()
    await before.create_topic("orders", 3, 2)
    await before.delete_topic("orders")
    await before.create_topic("orders", 3, 2)
    journal = journals.of(addressed(1))("topics")

    def refused(records: Iterable[bytes]) -> None:
        raise JournalFailed("cannot rewrite topics.journal: Read-only file system")

    monkeypatch.setattr(journal, "replace", refused)
    after = StaticCoordinator(setup(journals))
    await after.start()
    assert after.view().topics == before.view().topics


@asynchronous
async def test_nothing_is_sent_whatever_is_done() -> None:
    coordinator = StaticCoordinator(setup(Journals()))
    await coordinator.start()
    await coordinator.create_topic("orders", 3, 1)
    assert coordinator.leader(AT) == coordinator.known_leader(AT)
    assert {kind: row[:2] for kind, row in coordinator.meter.snapshot().items()} == {"create_topic": (0, 0)}


@pytest.mark.parametrize("record", [b"", b"[]", b'{"name":"t"}', b'{"name":1,"partitions":1,"replication_factor":1}'])
@asynchronous
async def test_a_journal_that_holds_something_else_is_refused(record: bytes) -> None:
    journals = Journals()
    journals.of(addressed(1))("topics").append(record)
    with pytest.raises(Unreadable, match="journal topics"):
        await StaticCoordinator(setup(journals)).start()


def test_an_option_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="metadata"):
        StaticCoordinator(setup(Journals(), metadata="watch"))


def test_a_back_end_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(InvalidRequest, match=r"static.*zookeeper.*'raft'"):
        create("raft", setup(Journals()))


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("nowhere:Coordinator", "nowhere:Coordinator cannot be loaded: No module named 'nowhere'"),
        ("coordinators.api:Cordinator", "cannot be loaded: module 'coordinators.api' has no attribute 'Cordinator'"),
        (":Coordinator", "cannot be loaded: Empty module name"),
        ("coordinators.api:", "'coordinators.api:'"),
    ],
)
def test_a_back_end_outside_the_product_that_is_not_there_is_refused_with_the_reason(name: str, why: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        create(name, setup(Journals()))
    assert why in str(refused.value)


def test_the_registry_makes_what_it_names() -> None:
    assert isinstance(create("static", setup(Journals())), StaticCoordinator)
    assert isinstance(create(BACK_ENDS["static"], setup(Journals())), StaticCoordinator)
    assert set(BACK_ENDS) >= {"static", "zookeeper"}


class Refusing(MemoryJournal):
    """Counts its writes, and refuses them while `full`."""

    def __init__(self) -> None:
        super().__init__()
        self.writes = 0
        self.full = False

    def append(self, *records: bytes) -> None:
        if self.full:
            raise JournalFailed("no room")
        self.writes += 1
        super().append(*records)


@asynchronous
async def test_the_commits_of_a_turn_are_one_write_and_fail_together() -> None:
    journal = Refusing()
    broker = addressed(1)
    made = {"topics": MemoryJournal(), "offsets": journal}
    coordinator = StaticCoordinator(CoordinatorSetup(broker, (broker,), made.__getitem__, {}))
    await coordinator.start()
    await coordinator.create_topic("orders", 3, 1)
    ats = [TopicPartition("orders", number) for number in range(3)]

    async def committed(offset: int) -> list[BaseException | None]:
        commits = [coordinator.commit_offsets(f"g-{n % 2}", {ats[n % 3]: Committed(offset)}) for n in range(6)]
        return await asyncio.gather(*commits, return_exceptions=True)

    assert await committed(1) == [None] * 6
    assert journal.writes == 1
    journal.full = True
    assert [type(refused) for refused in await committed(2)] == [JournalFailed] * 6
    for group in ("g-0", "g-1"):
        assert set((await coordinator.committed_offsets(group)).values()) == {Committed(1)}
    assert coordinator.meter.calls()["commit"] == 12


@asynchronous
async def test_commits_in_memory_are_kept_at_once_and_nothing_is_written() -> None:
    journals = Journals()
    coordinator = StaticCoordinator(setup(journals, offsets="memory"))
    await coordinator.start()
    await coordinator.create_topic("orders", 1, 1)
    group = next(f"g-{n}" for n in range(99) if coordinator.group_coordinator(f"g-{n}") == 1)
    assert coordinator.begin_commit(group, {AT: Committed(7)}) is None
    assert await coordinator.committed_offsets(group) == {AT: Committed(7)}
    assert journals.of(addressed(1))("offsets").records == []


@asynchronous
async def test_a_broker_that_asks_itself_is_answered_in_a_later_turn() -> None:
    coordinator = StaticCoordinator(setup(Journals(), metadata="lookup"))
    await coordinator.start()
    await coordinator.create_topic("orders", 1, 1)
    assert coordinator.known_leader(AT) is None
    assert await coordinator.find_leader(AT) == coordinator.view().partition(AT)
    with pytest.raises(UnknownTopic):
        await coordinator.find_leader(TopicPartition("none", 0))
