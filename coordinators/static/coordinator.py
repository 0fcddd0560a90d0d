"""`static`: the control without coordination. Every broker computes every answer from its own config file.

A topic is placed by a rule that needs only its name and the list of brokers. Brokers speak with each other only when a
topic is made or deleted, so that all have the same ones (topics.py). Leadership never changes: when a leader dies, its
partitions wait for it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from coordinators.api import Coordinator
from coordinators.errors import InvalidRequest, JournalFailed, Unreadable, Unsupported
from coordinators.model import Creation, Partition, Topic, TopicPartition, TopicSettings
from coordinators.offsets import OffsetTable
from coordinators.placement import place
from coordinators.static.topics import Entry, StaticTopics
from coordinators.strict_json import decoded, encoded

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from coordinators.idleness import Stamps
    from coordinators.model import Committed
    from coordinators.registry import CoordinatorSetup


class StaticCoordinator(Coordinator):
    def __init__(self, setup: CoordinatorSetup) -> None:
        """Raises `InvalidRequest`: there is nothing to choose in an architecture that decides nothing."""
        super().__init__(setup.me)
        if setup.options:
            raise InvalidRequest(f"coordinator static has no options, and {', '.join(setup.options)} was given")
        self._brokers = {broker.id: broker for broker in setup.brokers}
        self._journal = setup.journal
        self._lives = setup.lives
        self._topics = StaticTopics(setup.me, self._brokers, self, setup.asking, self._count)

    async def start(self) -> None:
        """Raises `Unreadable` where a journal of an earlier run holds what this program never wrote."""
        self._topics_journal = self._journal("topics")
        # The latest of each name. Deleted ones are kept too: their lives are not given out again.
        self._latest: dict[str, Entry] = {}
        records = list(self._topics_journal.replay())
        for record in records:
            self._replay(record)
        if len(records) > len(self._latest):
            with suppress(JournalFailed):  # on a full disk, or a read-only one, what is there can still be read
                self._topics_journal.replace(map(_record, self._latest.values()))
        self._offsets = OffsetTable(self._journal("offsets"), self._life_of)
        self._kept = KeptOffsets(self._offsets, lambda at: self.view().partition(at))
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

    def _known_leader(self, at: TopicPartition) -> Partition:
        return self.view().partition(at)

    async def _find_leader(self, at: TopicPartition) -> Partition:
        return self._known_leader(at)

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


class KeptOffsets:
    """Offsets in the table on this broker's disk. `check` raises `UnknownTopic` for a partition that does not exist."""

    def __init__(self, table: OffsetTable, check: Callable[[TopicPartition], object]) -> None:
        self._table = table
        self._check = check

    def begin_commit(self, group: str, offsets: Mapping[TopicPartition, Committed]) -> None:
        for at in offsets:
            self._check(at)
        self._table.commit(group, offsets)

    async def committed(self, group: str) -> Mapping[TopicPartition, Committed]:
        return self._table.committed(group)

    async def stamps(self) -> Stamps:
        return self._table.stamps()

    async def stamp(self, group: str) -> None:
        self._table.stamp(group)

    async def forget(self, stamps: Mapping[str, int]) -> None:
        newest = self._table.stamps().of_groups
        self._table.forget_groups({group for group, at_ms in stamps.items() if newest.get(group) == at_ms})


def _record(entry: Entry) -> bytes:
    """A topic's line in the journal; one without partitions is a deleted topic."""
    return encoded(entry.as_data())
