"""Consumer groups that nobody uses any more, and all that they left in ZooKeeper's tree.

A group's stamp is the newest time at which one of its rows was written, by ZooKeeper's own clock: a commit needs to say
nothing of it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from coordinators.idleness import Stamps
from coordinators.zookeeper import znodes
from coordinators.zookeeper.pipeline import together
from coordinators.zookeeper.requests import Conflict, Delete, Write

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from coordinators.zookeeper.requests import Node
    from coordinators.zookeeper.session import Session
    from coordinators.zookeeper.znodes import Tree

EXPIRE: Final = "expire_groups"


class StoredGroups:
    """`serves` says whether a group is this broker's: each of them looks after its own."""

    def __init__(self, session: Session, tree: Tree, serves: Callable[[str], bool]) -> None:
        self._session = session
        self._tree = tree
        self._serves = serves

    async def stamps(self) -> Stamps:
        """Raises `Unavailable`, `OutcomeUnknown`."""
        consumers = self._tree.consumers
        await self._session.commit(EXPIRE, Write(consumers, b""))  # when that was is the time now, by the same clock
        node = await self._session.get(EXPIRE, consumers)
        names = await self._session.children(EXPIRE, consumers) or []
        found = {}
        for group in filter(self._is_ours, map(znodes.decode_name, names)):
            at_ms = await self._stamp(group)
            if at_ms is not None:
                found[group] = at_ms
        return Stamps(0 if node is None else node.changed_ms, found)

    def _is_ours(self, group: str) -> bool:
        return bool(group) and self._serves(group)

    async def _stamp(self, group: str) -> int | None:
        """Of a group that has no rows, its own: whoever made it never came to write the first."""
        rows = await self._rows(group)
        if rows:
            return max(node.changed_ms for found in rows.values() for node in found.values())
        node = await self._session.get(EXPIRE, self._tree.group(group))
        return None if node is None else node.changed_ms

    async def _rows(self, group: str) -> dict[str, dict[str, Node]]:
        """Topic -> path -> what stands there, of topics in which the group has rows."""
        topics = await self._session.children(EXPIRE, self._tree.offsets(group)) or []
        found = await together(self._rows_in(group, topic) for topic in topics)
        return {topic: rows for topic, rows in zip(topics, found, strict=True) if rows}

    async def _rows_in(self, group: str, topic: str) -> dict[str, Node]:
        folder = self._tree.offsets_in(group, topic)
        paths = [f"{folder}/{number}" for number in await self._session.children(EXPIRE, folder) or []]
        nodes = await together(self._session.get(EXPIRE, path) for path in paths)
        return {path: node for path, node in zip(paths, nodes, strict=True) if node is not None}

    async def stamp(self, group: str) -> None:
        """Write one of its rows again, unless somebody else does."""
        for rows in (await self._rows(group)).values():
            for path, node in rows.items():
                with suppress(Conflict):
                    await self._session.commit(EXPIRE, Write(path, node.data, node.version))
                return

    async def forget(self, stamps: Mapping[str, int]) -> None:
        """Whoever commits meanwhile is heard: nothing is deleted that is not as it was judged."""
        for group, at_ms in stamps.items():
            if await self._stamp(group) == at_ms:
                with suppress(Conflict):
                    await self._forget(group)

    async def _forget(self, group: str) -> None:
        """A topic's rows in one transaction, then what held them. What is left half done is done by a later call."""
        tree, rows = self._tree, await self._rows(group)
        for topic in await self._session.children(EXPIRE, tree.offsets(group)) or []:
            operations = [Delete(path, node.version) for path, node in rows.get(topic, {}).items()]
            operations.append(Delete(tree.offsets_in(group, topic)))
            index = tree.group_in(group, topic)
            if await self._session.get(EXPIRE, index) is not None:
                operations.append(Delete(index))
            await self._session.commit(EXPIRE, *operations)
        if await self._session.get(EXPIRE, tree.offsets(group)) is not None:
            await self._session.commit(EXPIRE, Delete(tree.offsets(group)))
        await self._session.commit(EXPIRE, Delete(tree.group(group)))
