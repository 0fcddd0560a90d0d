"""`static`: the control without coordination. Every broker computes every answer from its own config file.

A topic is placed by a rule that needs only its name and the list of brokers. Brokers speak with each other only when a
topic is made or deleted, so that all have the same ones (topics.py). Leadership never changes: when a leader dies, its
partitions wait for it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from coordinators.api import Coordinator
from coordinators.errors import JournalFailed, UnknownTopic, Unreadable, Unsupported
from coordinators.model import Creation, Partition, Topic, TopicPartition, TopicSettings
from coordinators.offsets import NoJournal, OffsetTable, TableOffsets
from coordinators.placement import place
from coordinators.settings import DELAY_US, read, word
from coordinators.static.topics import Entry, StaticTopics
from coordinators.strict_json import decoded, encoded

if TYPE_CHECKING:
    from collections.abc import Awaitable, Collection

    from coordinators.registry import CoordinatorSetup


@dataclass(frozen=True, slots=True)
class Options:
    """With `metadata: lookup` each request waits for its answer, though it comes from memory: the path of a broker that
    has to ask, without whoever is asked."""

    metadata: Annotated[Literal["memory", "lookup"], word("memory", "lookup")] = "memory"
    offsets: Annotated[Literal["memory", "journal"], word("memory", "journal")] = "journal"
    delay_us: Annotated[int, DELAY_US] = 0


class StaticCoordinator(Coordinator):
    def __init__(self, setup: CoordinatorSetup) -> None:
        """Raises `InvalidRequest` for an option."""
        self._options = read(Options, setup.options, "coordinator static")
        super().__init__(setup.me, delay_us=self._options.delay_us)
        self._brokers = {broker.id: broker for broker in setup.brokers}
        self._journal = setup.journal
        self._lives = setup.lives
        self._topics = StaticTopics(setup.me, self._brokers, self, setup.asking, self._count)

    async def start(self) -> None:
        """Raises `Unreadable` where a journal of an earlier run holds what this program never wrote."""
        self._loop = asyncio.get_running_loop()
        self._topics_journal = self._journal("topics")
        # The latest of each name. Deleted ones are kept too: their lives are not given out again.
        self._latest: dict[str, Entry] = {}
        records = list(self._topics_journal.replay())
        for record in records:
            self._replay(record)
        if len(records) > len(self._latest):
            with suppress(JournalFailed):  # on a full disk, or a read-only one, what is there can still be read
                self._topics_journal.replace(map(_record, self._latest.values()))
        is_durable = self._options.offsets == "journal"
        self._offsets = OffsetTable(self._journal("offsets") if is_durable else NoJournal(), self._life_of)
        self._kept = TableOffsets(self._offsets, lambda at: self.view().partition(at), is_durable=is_durable)
        topics = {name: self._topic(entry) for name, entry in self._latest.items() if entry.live}
        self._views.publish(brokers=self._brokers, topics=topics, controller=self.me.id)
        self._topics.open()

    def _replay(self, record: bytes) -> None:
        try:
            entry = Entry.of(decoded(record))
        except (ValueError, TypeError, KeyError) as error:
            raise Unreadable(f"journal topics holds {record[:100]!r}, which is no topic: {error}") from error
        self._latest[entry.name] = entry

    async def stop(self) -> None:
        """Nobody was told of the start."""
        await self._topics.close()
        self._views.close()

    def _known_leader(self, at: TopicPartition) -> Partition | None:
        return self.view().partition(at) if self._options.metadata == "memory" else None

    def _find_leader(self, at: TopicPartition) -> Awaitable[Partition]:
        """An answer that is there, and is heard in the next turn of the event loop."""
        answer: asyncio.Future[Partition] = self._loop.create_future()
        try:
            answer.set_result(self.view().partition(at))
        except UnknownTopic as error:
            answer.set_exception(error)
        return answer

    async def _create_topic(
        self, name: str, partitions: int, replication_factor: int, settings: TopicSettings
    ) -> Creation:
        made = await self._topics.create(Entry(name, partitions, replication_factor, settings, 0))
        return Creation(self._topic(made), self._topics.known_to)

    async def _delete_topic(self, name: str) -> None:
        await self._topics.delete(name)

    def entry(self, name: str) -> Entry | None:
        return self._latest.get(name)

    def lives(self, name: str) -> Collection[str]:
        return self._lives(name)

    def keep(self, entry: Entry) -> None:
        """Raises `NotEnoughBrokers`, `JournalFailed`."""
        topics = {name: topic for name, topic in self.view().topics.items() if name != entry.name}
        if entry.live:
            topics[entry.name] = self._topic(entry)
        self._topics_journal.append(_record(entry))
        self._latest[entry.name] = entry
        if not entry.live:
            self._offsets.forget_topic(entry.name)
        self._views.publish(topics=topics)

    async def _change_in_sync(self, at: TopicPartition, in_sync: frozenset[int], epoch: int) -> Partition:
        raise Unsupported("static: the in-sync replicas are those of the config file and never change")

    async def _resign(self, at: TopicPartition, epoch: int) -> Partition:
        raise Unsupported("static: leadership follows from the config file and never passes on")

    def _life_of(self, name: str) -> str | None:
        """The life of a topic that exists, or None."""
        entry = self._latest.get(name)
        return str(entry.life) if entry is not None and entry.live else None

    def _count(self, verb: str, size_bytes: int, requests: int) -> None:
        self.meter.sent(verb, size_bytes, requests=requests)

    def _topic(self, entry: Entry) -> Topic:
        placed = place(entry.name, entry.partitions, entry.replication_factor, self._brokers)
        return Topic(entry.name, placed, entry.settings, str(entry.life))


def _record(entry: Entry) -> bytes:
    """A topic's line in the journal; one without partitions is a deleted topic."""
    return encoded(entry.as_data())
