"""`static`: the control without coordination. Every broker computes every answer from its own config file.

Nothing is sent to anybody. A topic is placed by a rule that needs only its name and the list of brokers, so a
client that makes it on each broker finds the same leaders on all. Leadership never changes: when a leader dies its
partitions wait for it.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from coordinators.api import Coordinator
from coordinators.errors import InvalidRequest, JournalFailed, TopicExists, Unreadable, Unsupported
from coordinators.model import (
    OFFSET_MAX,
    PARTITIONS_MAX,
    Creation,
    Partition,
    Topic,
    TopicPartition,
    TopicSettings,
    is_whole,
    topic_name_fault,
)
from coordinators.offsets import OffsetTable
from coordinators.placement import group_home, place

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from coordinators.config import CoordinatorSetup
    from coordinators.idleness import Stamps
    from coordinators.model import ClusterView, Committed


class StaticCoordinator(Coordinator):
    def __init__(self, setup: CoordinatorSetup) -> None:
        """Raises `InvalidRequest`: there is nothing to choose in an architecture that decides nothing."""
        super().__init__(setup.me)
        if setup.options:
            raise InvalidRequest(f"coordinator static has no options, and {', '.join(setup.options)} was given")
        self._brokers = {broker.id: broker for broker in setup.brokers}
        self._journal = setup.journal

    async def start(self) -> None:
        """Raises `Unreadable` where a journal of an earlier run holds what this program never wrote."""
        self._topics_journal = self._journal("topics")
        # The latest of each name. Deleted ones are kept too, without partitions: their lives are not given out again.
        self._latest: dict[str, Topic] = {}
        records = list(self._topics_journal.replay())
        for record in records:
            self._replay(record)
        if len(records) > len(self._latest):
            with suppress(JournalFailed):  # on a full disk, or a read-only one, what is there can still be read
                self._topics_journal.replace(map(_record, self._latest.values()))
        self._offsets = OffsetTable(self._journal("offsets"), self._life_of)
        topics = {name: topic for name, topic in self._latest.items() if topic.partitions}
        self._views.publish(brokers=self._brokers, topics=topics, controller=self.me.id)

    def _replay(self, record: bytes) -> None:
        try:
            topic = _recorded(json.loads(record))
            self._latest[topic.name] = self._placed(*topic)
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise Unreadable(f"journal topics holds {record[:100]!r}, which is no topic: {error}") from error

    async def stop(self) -> None:
        """Nobody was told of the start."""
        self._views.close()

    def _known_leader(self, at: TopicPartition) -> Partition:
        return self.view().partition(at)

    async def _find_leader(self, at: TopicPartition) -> Partition:
        return self._known_leader(at)

    def _group_home(self, group: str, view: ClusterView) -> int:
        return group_home(group, self._brokers)

    async def _create_topic(
        self, name: str, partitions: int, replication_factor: int, settings: TopicSettings
    ) -> Creation:
        if name in self.view().topics:
            raise TopicExists(f"topic {name!r} exists")
        former = self._latest.get(name)
        life = "1" if former is None else str(int(former.life) + 1)
        topic = self._placed(name, partitions, replication_factor, settings, life)
        self._note(topic)
        self._views.publish(topics={**self.view().topics, name: topic})
        return Creation(topic, frozenset({self.me.id}))

    async def _delete_topic(self, name: str) -> None:
        self._note(replace(self.view().topic(name), partitions=()))
        self._offsets.forget_topic(name)
        self._views.publish(topics={other: topic for other, topic in self.view().topics.items() if other != name})

    async def _change_in_sync(self, at: TopicPartition, in_sync: frozenset[int], epoch: int) -> Partition:
        raise Unsupported("static: the in-sync replicas are those of the config file and never change")

    async def _resign(self, at: TopicPartition, epoch: int) -> Partition:
        raise Unsupported("static: leadership follows from the config file and never passes on")

    def _begin_commit(self, group: str, offsets: Mapping[TopicPartition, Committed]) -> Awaitable[None] | None:
        for at in offsets:
            self.view().partition(at)
        self._offsets.commit(group, offsets)
        return None

    async def _committed_offsets(self, group: str) -> Mapping[TopicPartition, Committed]:
        return self._offsets.committed(group)

    async def _group_stamps(self) -> Stamps:
        return self._offsets.stamps()

    async def _stamp_group(self, group: str) -> None:
        self._offsets.stamp(group)

    async def _forget_groups(self, stamps: Mapping[str, int]) -> None:
        newest = self._offsets.stamps().of_groups
        self._offsets.forget_groups({group for group, at_ms in stamps.items() if newest.get(group) == at_ms})

    def _life_of(self, name: str) -> str | None:
        """Of a topic that exists."""
        topic = self._latest.get(name)
        return topic.life if topic is not None and topic.partitions else None

    def _note(self, topic: Topic) -> None:
        self._topics_journal.append(_record(topic))
        self._latest[topic.name] = topic

    def _placed(self, name: str, partitions: int, replication_factor: int, settings: TopicSettings, life: str) -> Topic:
        placed = place(name, partitions, replication_factor, self._brokers) if partitions else ()
        return Topic(name, placed, settings, life)


class _Recorded(NamedTuple):
    """A topic's line in the journal, read back."""

    name: str
    partitions: int
    replication_factor: int
    settings: TopicSettings
    life: str


def _recorded(change: dict[str, Any]) -> _Recorded:
    """Raises ValueError, TypeError or KeyError for what `_record` does not make."""
    name, partitions, replicas = change["name"], change["partitions"], change["replication_factor"]
    if not isinstance(name, str) or topic_name_fault(name) is not None:
        raise ValueError(f"its name is {name!r:.100}")
    if not is_whole(partitions, 0, PARTITIONS_MAX) or not is_whole(replicas, 1 if partitions else 0, PARTITIONS_MAX):
        raise ValueError("its partitions or replicas are not numbers that a topic has")
    settings = TopicSettings(**change["settings"])
    bounds = [bound for bound in (settings.retention_bytes, settings.retention_ms) if bound is not None]
    if not all(is_whole(value, 0, OFFSET_MAX) for value in (settings.fetch_records_max, *bounds)):
        raise ValueError("its settings are not numbers that a topic has")
    life = int(change.get("life", 1))
    if life < 0:
        raise ValueError("its life is a negative number")
    return _Recorded(name, partitions, replicas, settings, str(life))


def _record(topic: Topic) -> bytes:
    """A topic's line in the journal; one without partitions is a deleted topic."""
    change = {
        "name": topic.name,
        "partitions": len(topic.partitions),
        "replication_factor": len(topic.partitions[0].replicas) if topic.partitions else 0,
        "settings": asdict(topic.settings),
        "life": topic.life,
    }
    return json.dumps(change).encode()
