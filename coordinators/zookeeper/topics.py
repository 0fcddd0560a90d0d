"""Topics made and deleted: each in one transaction, so that no broker ever sees half of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from coordinators.errors import TopicExists, Unavailable, UnknownTopic, Unreadable
from coordinators.model import Topic, TopicPartition, TopicSettings
from coordinators.placement import place
from coordinators.zookeeper import znodes
from coordinators.zookeeper.requests import Conflict, Create, Delete, Exists, Missing, Operation, Write, together

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from coordinators.zookeeper.session import Session
    from coordinators.zookeeper.znodes import Tree

CREATE: Final = "create_topic"
DELETE: Final = "delete_topic"
DELETE_TRIES_MAX: Final = 5
ROWS_IN_ONE_TRANSACTION_MAX: Final = 1_000


class Topics:
    def __init__(self, session: Session, tree: Tree) -> None:
        self._session = session
        self._tree = tree

    async def create(
        self, name: str, partitions: int, replication_factor: int, settings: TopicSettings
    ) -> frozenset[int]:
        """Make it; the brokers that were live when it was placed."""
        path = self._tree.brokers
        children = await self._session.children(CREATE, path)
        if children is None:
            raise Unreadable(f"{path} is missing")
        live = frozenset(znodes.decode_id(f"{path}/{child}", child) for child in children)
        topic = Topic(name, place(name, partitions, replication_factor, live), settings)
        try:
            await self._session.commit(CREATE, *self._creation(topic))
        except Exists:
            raise TopicExists(f"topic {name!r} exists") from None
        except Missing as missing:
            raise Unreadable(f"{self._tree.topics} is missing") from missing
        return live

    def _creation(self, topic: Topic) -> Iterable[Operation]:
        tree = self._tree
        yield Create(tree.topic(topic.name), znodes.encode_topic(topic.partitions, topic.settings))
        yield Create(tree.partitions(topic.name))
        for number, partition in enumerate(topic.partitions):
            at = TopicPartition(topic.name, number)
            yield Create(tree.partition(at))
            yield Create(tree.state(at), znodes.encode_state(partition))

    async def delete(self, name: str) -> None:
        """All of its znodes and all that groups committed in it, in one transaction: a topic of the same name that is
        made later starts from nothing, whoever crashes meanwhile.

        The same transaction writes the folder of all topics: the version of that counts the deletions, so that a broker
        can tell a topic that was deleted from one that has vanished (`Mirror`).
        """
        counted, index = Write(self._tree.topics, b""), self._tree.groups_in(name)
        for _ in range(DELETE_TRIES_MAX):
            topic = await self._topic_rows(name)
            names = await self._session.children(DELETE, index)
            groups = await together(self._group_rows(znodes.decode_name(group), name) for group in names or [])
            if sum(map(len, groups)) > ROWS_IN_ONE_TRANSACTION_MAX:
                await together(self._delete_group_rows(rows) for rows in groups)
                continue
            rows = [row for found in groups for row in found] + ([] if names is None else [Delete(index)])
            try:
                await self._session.commit(DELETE, *rows, *topic, counted)
            except Conflict:
                continue  # somebody commits in it, or deletes it as well
            return
        raise Unavailable(f"topic {name!r} changed each of the {DELETE_TRIES_MAX} times that it was to be deleted")

    async def _topic_rows(self, name: str) -> list[Delete]:
        """Children first. Asked of the tree and not of its content: a damaged topic can be deleted."""
        folder = self._tree.partitions(name)
        if await self._session.get(DELETE, self._tree.topic(name)) is None:
            raise UnknownTopic(f"topic {name!r} does not exist")
        numbers = await self._session.children(DELETE, folder)
        states = await together(self._session.children(DELETE, f"{folder}/{number}") for number in numbers or [])
        rows = []
        for number, children in zip(numbers or [], states, strict=True):
            rows += [Delete(f"{folder}/{number}/{child}") for child in children or []]
            rows.append(Delete(f"{folder}/{number}"))
        return rows + ([] if numbers is None else [Delete(folder)]) + [Delete(self._tree.topic(name))]

    async def _group_rows(self, group: str, topic: str) -> list[Delete]:
        """What a group has in the topic, with its place in the index; and the group, where it has nothing else."""
        tree = self._tree
        folder = tree.offsets_in(group, topic)
        numbers = await self._session.children(DELETE, folder)
        rows = [Delete(f"{folder}/{number}") for number in numbers or []]
        if numbers is not None:
            rows.append(Delete(folder))
        if await self._session.children(DELETE, tree.offsets(group)) == [topic]:
            rows += [Delete(tree.offsets(group)), Delete(tree.group(group))]
        return [*rows, Delete(tree.group_in(group, topic))]

    async def _delete_group_rows(self, rows: Sequence[Delete]) -> None:
        """One group's alone, in one step: it stays in the index as long as it has rows."""
        try:
            await self._session.commit(DELETE, *rows)
        except Conflict:
            return  # it commits, or another deletes it: the next round sees to it
