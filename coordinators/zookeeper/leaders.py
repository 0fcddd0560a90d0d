"""Who leads a partition as ZooKeeper's tree has it: from what was read, or asked for, or changed by compare and set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from coordinators.errors import Unavailable, UnknownTopic
from coordinators.model import topic_name_fault
from coordinators.zookeeper import znodes
from coordinators.zookeeper.requests import Changed, Missing, Write, together

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from coordinators.model import Partition, TopicPartition
    from coordinators.views import Views
    from coordinators.zookeeper.mirror import Mirror
    from coordinators.zookeeper.requests import Node
    from coordinators.zookeeper.session import Session
    from coordinators.zookeeper.znodes import Tree

CHANGE_TRIES_MAX: Final = 5


class Leaders:
    """`on_life_ended` is told the name of each topic that the view had, and has no more or in another life."""

    def __init__(self, session: Session, tree: Tree, mirror: Mirror, views: Views) -> None:
        self._session = session
        self._tree = tree
        self._mirror = mirror
        self._views = views
        self.on_life_ended: Callable[[str], None] = lambda name: None
        self.lives_ended = 0

    def publish(self) -> None:
        """Show what was read."""
        before, read = self._views.present.topics, self._mirror.topics.read
        self._mirror.shown()
        self._views.publish(brokers=self._mirror.brokers, topics=read, controller=self._mirror.controller)
        for name, topic in before.items():
            if name not in read or read[name].life != topic.life:
                self.lives_ended += 1
                self.on_life_ended(name)

    # --- found --------------------------------------------------------------------------------------------

    def known(self, at: TopicPartition) -> Partition | None:
        """None where the view has not got it, or no longer as it is. Raises `Unreadable`, `UnknownTopic`."""
        if at.topic not in self._views.present.topics or at.topic in self._mirror.changing:
            return None
        if (fault := self._mirror.faults.at(self._tree.state(at))) is not None:
            raise fault
        return self._views.present.partition(at)

    async def find(self, at: TopicPartition) -> Partition:
        path = self._tree.state(at)
        node = await self._session.get("lookup", path) if topic_name_fault(at.topic) is None else None
        if node is None:
            node = await self._find_state(at, path)
        if self._mirror.topics.made_by.get(at) != node.made_by:
            await self._mirror.topics.read_topic(at.topic)  # made since, and perhaps not for the first time
            if (fault := self._mirror.faults.at(path)) is not None:
                raise fault
        read, seen = self._mirror.topics.read.get(at.topic), self._views.present.topics.get(at.topic)
        if read is not None and (seen is None or seen.life != read.life):
            self.publish()  # what is to be held of it can be opened
        return znodes.decode_state(path, node.data)

    async def _include(self, topic: str) -> None:
        """Have a topic in the view that another broker made a moment ago: what is to be held of it can be opened."""
        if topic not in self._mirror.topics.read:
            await self._mirror.topics.read_topic(topic)
        if topic not in self._views.present.topics:  # it may be read already, and something else not yet
            self.publish()

    async def find_topics(self, names: Collection[str]) -> None:
        await together(self._find_topic(name) for name in names)

    async def _find_topic(self, name: str) -> None:
        await self._include(name)
        if name not in self._mirror.topics.read:
            await self._session.sync("refresh", self._tree.topics)  # the server that was asked may lag
            await self._include(name)

    def is_known(self, at: TopicPartition) -> bool:
        """False where only ZooKeeper can tell. Raises `UnknownTopic` for a partition that a known topic has not got."""
        return at.topic in self._views.present.topics and self._views.present.partition(at) is not None

    async def check_exists(self, at: TopicPartition) -> None:
        if at.topic not in self._views.present.topics:
            await self.find(at)
        self._views.present.partition(at)

    async def _find_state(self, at: TopicPartition, path: str) -> Node:
        """Of a partition that was not there when it was asked for first."""
        node = None
        if topic_name_fault(at.topic) is None:
            await self._session.sync("lookup", path)  # the server that was asked may lag behind the others
            node = await self._session.get("lookup", path)
        if node is None:
            raise UnknownTopic(f"{at.topic}-{at.partition} does not exist")
        return node

    # --- compare and set ----------------------------------------------------------------------------------

    async def change(self, kind: str, at: TopicPartition, decide: Callable[[Partition], Partition]) -> Partition:
        """Read a partition's state, decide, and write at the version that was read; again if it changed meanwhile."""
        path = self._tree.state(at)
        for _ in range(CHANGE_TRIES_MAX):
            node = await self._session.get(kind, path) if topic_name_fault(at.topic) is None else None
            if node is None:
                break
            new = decide(znodes.decode_state(path, node.data))
            try:
                await self._session.commit(kind, Write(path, znodes.encode_state(new), node.version))
            except Changed:
                continue
            except Missing:
                break
            await self._include(at.topic)
            if at.topic in self._mirror.topics.read:
                self._mirror.topics.put_state(at, new, node.version + 1)
                self.publish()
            return new
        else:
            raise Unavailable(f"{path} changed each of the {CHANGE_TRIES_MAX} times that it was to be written")
        raise UnknownTopic(f"{at.topic}-{at.partition} does not exist")
