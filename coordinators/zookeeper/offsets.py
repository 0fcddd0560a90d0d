"""Consumer offsets in ZooKeeper: each commit a write, or all that is new written at an interval."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from coordinators.errors import CoordinationError, Unavailable, UnknownTopic
from coordinators.model import Committed, TopicPartition
from coordinators.turns import Turns
from coordinators.zookeeper import znodes
from coordinators.zookeeper.pipeline import together
from coordinators.zookeeper.requests import Check, Create, Exists, Missing, Write

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from coordinators.zookeeper.session import Session
    from coordinators.zookeeper.znodes import Tree

COMMIT: Final = "commit"
COMMITTED: Final = "committed"
PENDING_MAX: Final = 100_000
ROWS_KNOWN_MAX: Final = 100_000
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
        tree = self._tree
        if await self._session.get(COMMIT, tree.partition(at)) is None:
            raise UnknownTopic(f"{at.topic}-{at.partition} does not exist")
        for folder in (tree.group(group), tree.offsets(group), tree.offsets_in(group, at.topic)):
            try:
                await self._session.commit(COMMIT, Create(folder))
            except Exists:
                continue
        path = tree.offset(group, at)
        try:
            await self._session.commit(COMMIT, Check(tree.partition(at)), Create(path, data))
        except Exists:  # a commit beside this one was faster; the later one of a group's two counts
            await self._session.commit(COMMIT, Write(path, data))
        except Missing as missing:
            raise UnknownTopic(f"{at.topic}-{at.partition} is being deleted: {missing}") from missing

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

    def forget_topic(self, topic: str) -> None:
        """Nothing is kept here."""


class IntervalOffsets(WrittenOffsets):
    """Commits are kept here until `flush` writes them; a read answers the newest, written or not.

    A crash loses what was committed since the last flush, and so does a group that passes to another broker: it reads
    on from the commit before, and gets messages again. It never misses any.
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

    def begin_commit(self, group: str, offsets: Mapping[TopicPartition, Committed]) -> Awaitable[None] | None:
        if group in self._turns or not all(map(self._is_known, offsets)):
            return self._commit_in_turn(group, offsets)
        self._pend(group, offsets)
        return None

    async def _commit_in_turn(self, group: str, offsets: Mapping[TopicPartition, Committed]) -> None:
        async with self._turns.at(group):
            for at in offsets:
                await self._check(at)
            self._pend(group, offsets)

    def _pend(self, group: str, offsets: Mapping[TopicPartition, Committed]) -> None:
        if len(self._pending) + len(offsets) > PENDING_MAX:
            raise Unavailable(f"{PENDING_MAX} offsets wait to be written to ZooKeeper")
        for at, place in offsets.items():
            self._pending[group, at] = place

    async def committed(self, group: str) -> Mapping[TopicPartition, Committed]:
        written = dict(await super().committed(group))
        return written | {at: place for (owner, at), place in self._pending.items() if owner == group}

    async def flush(self) -> None:
        """Write what is new. What cannot be written now is written by a later flush. Raises nothing."""
        for key in [key for key in self._pending if not self._serves(key[0])]:
            del self._pending[key]  # its new broker has written newer ones, or will
        await together(self._flush_row(*key, place) for key, place in list(self._pending.items()))

    async def _flush_row(self, group: str, at: TopicPartition, place: Committed) -> None:
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
