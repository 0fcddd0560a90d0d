"""The partitions that this broker holds, and those that it has to lead because their leader is dead. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinators.dsbs.machine import topics

if TYPE_CHECKING:
    from collections.abc import Iterable

    from coordinators.dsbs.machine.ledger import Ledger
    from coordinators.dsbs.tables.rows import LeaderRow, TopicRow


class Leaders:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._held: dict[str, tuple[int, ...]] = {}
        for row in ledger.table.topics.values():
            self.topic_changed(row)

    def topic_changed(self, topic: TopicRow) -> None:
        me = self._ledger.me.broker.id
        numbers = tuple(number for number, replicas in enumerate(topic.replicas) if me in replicas)
        if numbers:
            self._held[topic.name] = numbers
        else:
            self._held.pop(topic.name, None)

    def inherited(self, names: Iterable[str]) -> list[LeaderRow]:
        """The rows by which this broker takes over what it is the heir of, in these topics."""
        table, me = self._ledger.table, self._ledger.me.broker.id
        rows = (topics.inheritance(table, topic, number, me) for topic, number in self._partitions(names))
        return [row for row in rows if row is not None]

    def all_inherited(self) -> list[LeaderRow]:
        return self.inherited(tuple(self._held))

    def renewed(self) -> list[LeaderRow]:
        """The rows by which a restarted broker goes on leading what it led."""
        table, me = self._ledger.table, self._ledger.me.broker.id
        rows = (topics.renewal(table, topic, number, me) for topic, number in self._partitions(tuple(self._held)))
        return [row for row in rows if row is not None]

    def lost(self) -> list[LeaderRow]:
        """The rows by which this broker, whose disk was lost, is in sync nowhere and leads nothing."""
        table, me = self._ledger.table, self._ledger.me.broker.id
        rows = (topics.loss(table, topic, number, me) for topic, number in self._partitions(tuple(self._held)))
        return [row for row in rows if row is not None]

    def _partitions(self, names: Iterable[str]) -> Iterable[tuple[TopicRow, int]]:
        for name in names:
            for number in self._held.get(name, ()):
                yield self._ledger.table.topics[name], number
