"""`dsbs`: the paper's decentralized stateful brokers, as the contract's verbs.

Every broker holds all tables, so nothing is asked of anybody on the path of a produce, a fetch or a commit. What that
costs in promises is in docs/dsbs.md.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from coordinators.api import Coordinator
from coordinators.dsbs.group_offsets import GroupOffsets
from coordinators.dsbs.machine import topics
from coordinators.dsbs.machine.events import ChangeInSync, CreateTopic, DeleteTopic, Leave, Resign
from coordinators.dsbs.options import parse
from coordinators.dsbs.shell import Shell
from coordinators.dsbs.tables.table_dump import Tables, printed
from coordinators.errors import InvalidRequest, TopicExists
from coordinators.model import Creation
from coordinators.offsets import NoJournal, OffsetTable, TableOffsets

if TYPE_CHECKING:
    from coordinators.dsbs.tables.rows import TopicRow
    from coordinators.model import Partition, TopicPartition, TopicSettings
    from coordinators.offsets import OffsetStore
    from coordinators.registry import CoordinatorSetup


class DsbsCoordinator(Coordinator):
    def __init__(self, setup: CoordinatorSetup) -> None:
        """Raises `InvalidRequest`."""
        settings = parse(setup.options)
        super().__init__(setup.me, doubt_s=settings.doubt_ms / 1000, delay_us=settings.delay_us)
        if setup.peers is None:
            raise InvalidRequest("coordinator dsbs needs a transport between brokers, and was lent none")
        self._lives = setup.lives
        self._shell = Shell(setup, setup.peers, settings, self._clock, self.meter, self._views, self._lose)
        self._offsets = settings.offsets
        self._journal = setup.journal

    # --- life ---------------------------------------------------------------------------------------------

    async def start(self) -> None:
        await self._shell.start()
        self._kept = self._made_store()
        self._freshness.begin(self._clock())

    def _made_store(self) -> OffsetStore:
        """Once the topics are known, to which rows on the disk belong. Raises `Unreadable` where the journal holds what
        this program never wrote."""
        if self._offsets == "journal_copied":
            return GroupOffsets(self._shell, self)
        is_durable = self._offsets == "journal"
        table = OffsetTable(self._journal("group_offsets") if is_durable else NoJournal(), self._life_of)
        return TableOffsets(table, lambda at: self.view().partition(at), is_durable=is_durable)

    def _life_of(self, name: str) -> str | None:
        topic = self.view().topics.get(name)
        return None if topic is None else topic.life

    async def stop(self) -> None:
        await self._freshness.end()
        if self._shell.is_member:
            await self._shell.finished(Leave)
        self._shell.end("it has stopped")
        self._views.close()

    @property
    def lease_ends(self) -> float:
        """No lease: members lead until they learn of another leader. Any other broker leads nothing."""
        return inf if self._shell.is_member else -inf

    def _awake(self) -> None:
        """A broker that was not away has heard of every change as it came."""
        if self._doubt.sure:
            self._doubt.trust(self._clock(), self._doubt.naps)
        else:
            self._freshness.begin_hearing()

    async def _hear(self) -> None:
        naps = self._doubt.naps
        await self._shell.hear()
        self._doubt.trust(self._clock(), naps)

    # --- what is known here -------------------------------------------------------------------------------

    def _known_leader(self, at: TopicPartition) -> Partition:
        return self.view().partition(at)

    async def _find_leader(self, at: TopicPartition) -> Partition:
        return self._known_leader(at)

    def tables(self) -> Tables:
        """The tables as this broker holds them, for people. Raises `Unavailable`."""
        return printed(self._shell.running)

    # --- changes ------------------------------------------------------------------------------------------

    async def _create_topic(
        self, name: str, partitions: int, replication_factor: int, settings: TopicSettings
    ) -> Creation:
        taken = frozenset(self._lives(name))
        finished = await self._shell.finished(
            lambda token: CreateTopic(token, name, partitions, replication_factor, settings, taken)
        )
        row = topics.live_topic(self._shell.running.table, name)
        if not _is_as_asked(row, partitions, replication_factor, settings):
            raise TopicExists(f"topic {name!r} was made in the same moment, otherwise, through broker {row.creator}")
        return Creation(self.view().topic(name), finished.known_to)

    async def _delete_topic(self, name: str) -> None:
        await self._shell.finished(lambda token: DeleteTopic(token, name))

    async def _change_in_sync(self, at: TopicPartition, in_sync: frozenset[int], epoch: int) -> Partition:
        self._shell.do(ChangeInSync(at, in_sync, epoch))
        return self.view().partition(at)

    async def _resign(self, at: TopicPartition, epoch: int) -> Partition:
        self._shell.do(Resign(at, epoch))
        return self.view().partition(at)


def _is_as_asked(row: TopicRow, partitions: int, replication_factor: int, settings: TopicSettings) -> bool:
    placed = (len(row.replicas), len(row.replicas[0]), row.settings)
    return placed == (partitions, replication_factor, settings)
