"""What consumer groups have committed: each commit a write, or all that is new written at an interval; and which groups
nobody has used for long."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from coordinators.errors import CoordinationError, Unavailable, UnknownTopic
from coordinators.idleness import Stamps
from coordinators.keyed_lock import Turns
from coordinators.model import Committed, TopicPartition
from coordinators.offsets import OffsetTable, TableOffsets
from coordinators.zookeeper import znodes
from coordinators.zookeeper.requests import Check, Conflict, Create, Delete, Exists, Missing, Write, together

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping, Set

    from coordinators.zookeeper.requests import Node
    from coordinators.zookeeper.session import Session
    from coordinators.zookeeper.znodes import Tree

COMMIT: Final = "commit"
COMMITTED: Final = "committed"
EXPIRE: Final = "expire_groups"
PENDING_MAX: Final = 100_000
ROWS_KNOWN_MAX: Final = 100_000
FIRST_TRIES_MAX: Final = 5
_LOG: Final = logging.getLogger(__name__)


class WrittenOffsets:
    """A row is a znode. It comes to be with its first commit, and only while its partition exists.

    A write to a row that is known to be there leaves at once, however many are under way: ZooKeeper carries out what a
    session sends in the order of sending. What takes several requests waits for its turn.
    """

    def __init__(self, session: Session, tree: Tree) -> None:
        self._session = session
        self._tree = tree
        self._known: set[str] = set()
        self._turns = Turns()

    def begin_commit(self, group: str, offsets: Mapping[TopicPartition, Committed]) -> Awaitable[None] | None:
        """As the contract has it. Raises `UnknownTopic`, `Unavailable`, `OutcomeUnknown`, when it is awaited too."""
        if len(offsets) == 1:
            return self._put(group, *next(iter(offsets.items())))
        return self._write(group, offsets)

    async def _write(self, group: str, offsets: Mapping[TopicPartition, Committed]) -> None:
        await together(self._put(group, at, place) for at, place in offsets.items())

    async def _put(self, group: str, at: TopicPartition, place: Committed) -> None:
        path, data = self._tree.offset(group, at), znodes.encode_committed(place)
        if path in self._known and path not in self._turns:
            try:
                await self._session.commit(COMMIT, Write(path, data))
            except Missing:  # its topic has been deleted since
                self._known.discard(path)
            else:
                return
        async with self._turns.at(path):
            try:
                await self._session.commit(COMMIT, Write(path, data))
            except Missing:
                await self._put_first(group, at, data)
            if len(self._known) >= ROWS_KNOWN_MAX:
                self._known.clear()
            self._known.add(path)

    async def _put_first(self, group: str, at: TopicPartition, data: bytes) -> None:
        """The row comes to be while its partition exists, and its folder with the group's place in the topic's index:
        so whoever deletes the topic finds them, or they are not made."""
        path = self._tree.offset(group, at)
        for _ in range(FIRST_TRIES_MAX):
            if await self._made(at, path, data):
                return
            with suppress(Exists, Missing):  # others make and delete them too: the next round sees what there is
                await self._make_folders(group, at.topic)
        raise Unavailable(f"{path} came and went each of the {FIRST_TRIES_MAX} times that it was to be made")

    async def _made(self, at: TopicPartition, path: str, data: bytes) -> bool:
        """False where there is nothing for it to be in. Raises `UnknownTopic`."""
        partition = self._tree.partition(at)
        try:
            await self._session.commit(COMMIT, Check(partition), Create(path, data))
        except Exists:  # a commit beside this one was faster; the later one of a group's two counts
            try:
                await self._session.commit(COMMIT, Write(path, data))
            except Missing:
                return False
        except Missing as missing:
            if missing.path == partition:
                raise UnknownTopic(f"{at.topic}-{at.partition} does not exist") from missing
            return False
        return True

    async def _make_folders(self, group: str, topic: str) -> None:
        """Raises `Missing` where the topic or the group is deleted meanwhile, `Exists` where the group commits."""
        tree = self._tree
        for folder in (tree.groups_in(topic), tree.group(group), tree.offsets(group)):
            with suppress(Exists):
                await self._session.commit(COMMIT, Create(folder))
        place, rows = Create(tree.group_in(group, topic)), Create(tree.offsets_in(group, topic))
        try:
            await self._session.commit(COMMIT, place, rows)
        except Exists as one:  # one of the two alone was left by somebody's hand, or by an earlier version
            rest = (place,) if one.path == rows.path else (Check(place.path), rows)
            await self._session.commit(COMMIT, *rest)

    async def committed(self, group: str) -> Mapping[TopicPartition, Committed]:
        topics = await self._session.children(COMMITTED, self._tree.offsets(group)) or []
        rows = await together(self._in_topic(group, topic) for topic in topics)
        return {at: place for row in rows for at, place in row.items()}

    async def _in_topic(self, group: str, topic: str) -> Mapping[TopicPartition, Committed]:
        folder = self._tree.offsets_in(group, topic)
        numbers = await self._session.children(COMMITTED, folder) or []
        ats = [TopicPartition(topic, znodes.decode_id(f"{folder}/{number}", number)) for number in numbers]
        nodes = await together(self._session.get(COMMITTED, self._tree.offset(group, at)) for at in ats)
        return {
            at: znodes.decode_committed(self._tree.offset(group, at), node.data)
            for at, node in zip(ats, nodes, strict=True)
            if node is not None
        }

    async def flush(self) -> None:
        """Everything is written already."""

    def groups_unwritten(self) -> Set[str]:
        """Those that have committed what is not written yet."""
        return frozenset()

    def forget_groups(self, groups: Collection[str]) -> None:
        """Nothing is kept here."""


class IntervalOffsets(WrittenOffsets):
    """Commits are kept here until `flush` writes them; a read answers the newest, written or not. A group's first in a
    partition is written before it is acknowledged.

    A crash loses what was committed since the last flush, and so does a group that passes to another broker: it reads
    on from the commit before, which is there, and gets messages again. It never misses any.
    """

    def __init__(
        self,
        session: Session,
        tree: Tree,
        is_known: Callable[[TopicPartition], bool],
        check: Callable[[TopicPartition], Awaitable[object]],
        serves: Callable[[str], bool],
    ) -> None:
        super().__init__(session, tree)
        self._is_known = is_known
        self._check = check
        self._serves = serves
        self._pending: dict[tuple[str, TopicPartition], Committed] = {}
        self._begun: set[tuple[str, TopicPartition]] = set()  # rows of groups served here that are in ZooKeeper

    def begin_commit(self, group: str, offsets: Mapping[TopicPartition, Committed]) -> Awaitable[None] | None:
        if group in self._turns or not all(self._is_known(at) and (group, at) in self._begun for at in offsets):
            return self._commit_in_turn(group, offsets)
        self._pend(group, offsets)
        return None

    async def _commit_in_turn(self, group: str, offsets: Mapping[TopicPartition, Committed]) -> None:
        async with self._turns.at(group):
            for at in offsets:
                await self._check(at)
            first = {at: place for at, place in offsets.items() if (group, at) not in self._begun}
            await together(self._begin(group, at, place) for at, place in first.items())
            self._pend(group, {at: place for at, place in offsets.items() if at not in first})

    async def _begin(self, group: str, at: TopicPartition, place: Committed) -> None:
        """Write the first one. What waits, of an earlier time as the group's broker, is older."""
        older = self._pending.pop((group, at), None)
        try:
            await self._put(group, at, place)
        except CoordinationError:
            if older is not None:
                self._pending[group, at] = older
            raise
        if len(self._begun) >= ROWS_KNOWN_MAX:
            self._begun.clear()
        self._begun.add((group, at))

    def _pend(self, group: str, offsets: Mapping[TopicPartition, Committed]) -> None:
        if len(self._pending) + len(offsets) > PENDING_MAX:
            raise Unavailable(f"{PENDING_MAX} offsets wait to be written to ZooKeeper")
        for at, place in offsets.items():
            self._pending[group, at] = place

    async def committed(self, group: str) -> Mapping[TopicPartition, Committed]:
        waited = self._waiting(group)  # what a flush writes meanwhile may be newer than what is read
        written = dict(await super().committed(group))
        return written | waited | self._waiting(group)

    def _waiting(self, group: str) -> dict[TopicPartition, Committed]:
        return {at: place for (owner, at), place in self._pending.items() if owner == group}

    async def flush(self) -> None:
        """Write what is new. What cannot be written now is written by a later flush. Raises nothing."""
        for key in [key for key in self._pending if not self._serves(key[0])]:
            del self._pending[key]  # its new broker has written newer ones, or will
        await together(self._flush_row(*key) for key in list(self._pending))

    async def _flush_row(self, group: str, at: TopicPartition) -> None:
        place = self._pending.get((group, at))
        if place is None or not self._serves(group):
            return  # something newer may have been written while this row's turn had not come
        try:
            await self._put(group, at, place)
        except UnknownTopic:  # deleted, with all of its rows
            pass
        except CoordinationError as error:
            _LOG.warning("group %r: an offset is not written yet: %s", group, error)
            return
        if self._pending.get((group, at)) is place:
            del self._pending[group, at]

    def forget_topic(self, topic: str) -> None:
        for key in [key for key in self._pending if key[1].topic == topic]:
            del self._pending[key]
        self._begun = {key for key in self._begun if key[1].topic != topic}

    def groups_unwritten(self) -> Set[str]:
        """As this is asked before groups are forgotten, it is where those that pass on are let go of."""
        self._begun = {key for key in self._begun if self._serves(key[0])}
        return {group for group, _ in self._pending}

    def forget_groups(self, groups: Collection[str]) -> None:
        self._begun = {key for key in self._begun if key[0] not in groups}


class MemoryOffsets(TableOffsets):
    """Commits are kept here and nowhere else."""

    def __init__(
        self,
        table: OffsetTable,
        is_known: Callable[[TopicPartition], bool],
        check: Callable[[TopicPartition], Awaitable[object]],
    ) -> None:
        super().__init__(table, is_known, is_durable=False)
        self._is_known = is_known
        self._find = check

    def begin_commit(self, group: str, offsets: Mapping[TopicPartition, Committed]) -> Awaitable[None] | None:
        if all(self._is_known(at) for at in offsets):
            return super().begin_commit(group, offsets)
        return self._commit_when_known(group, offsets)

    async def _commit_when_known(self, group: str, offsets: Mapping[TopicPartition, Committed]) -> None:
        """Another broker made a topic a moment ago."""
        for at in offsets:
            await self._find(at)
        super().begin_commit(group, offsets)


class StoredGroups:
    """`serves` says whether a group is this broker's: each of them looks after its own. A group's stamp is the newest
    time at which one of its rows was written, by ZooKeeper's own clock: a commit needs to say nothing of it."""

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
