"""`dsbs`: the paper's decentralized stateful brokers. The shell around `machine`: it sends, waits and writes.

Every broker holds all tables, so nothing is asked of anybody on the path of a produce, a fetch or a commit. What that
costs in promises is in docs/dsbs.md.

On a disk that refuses, what this broker's clients ask that must be written is refused, and nothing has happened. What
it hears it knows, and says to nobody that it keeps it. Where it comes to lead, it does so once that is written: an
epoch that a crash would make it forget could be led at twice.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from math import inf
from random import SystemRandom
from typing import TYPE_CHECKING, Final

from coordinators.api import Coordinator
from coordinators.dsbs.disk import Disk
from coordinators.dsbs.machine import topics
from coordinators.dsbs.machine.events import (
    Changed,
    ChangeInSync,
    Commit,
    CreateTopic,
    DeleteTopic,
    Finished,
    Forget,
    Gather,
    Hear,
    Heard,
    Joined,
    Leave,
    Lost,
    Persist,
    Received,
    Refused,
    Resign,
    Send,
    Start,
    Wake,
)
from coordinators.dsbs.machine.ledger import Phase
from coordinators.dsbs.machine.machine import Machine
from coordinators.dsbs.options import parse
from coordinators.dsbs.tables.messages import Kept, Known, encode
from coordinators.dsbs.tables.rows import LeaderRow
from coordinators.dsbs.tables.table_dump import Tables, printed
from coordinators.errors import BrokerIdTaken, InvalidRequest, OutcomeUnknown, TopicExists, Unavailable, lost_disk
from coordinators.idleness import Stamps, now_ms
from coordinators.keyed_lock import Turns
from coordinators.model import NO_LEADER, Creation, TopicPartition
from coordinators.placement import group_home

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from coordinators.dsbs.machine.events import Action, Event
    from coordinators.dsbs.tables.rows import Row, TopicRow
    from coordinators.model import ClusterView, Committed, Partition, Topic, TopicSettings
    from coordinators.registry import CoordinatorSetup

SESSION_BITS: Final = 62
_UNASKED: Final = (Received, Wake, Start)  # by this broker's own clients
_LOG: Final = logging.getLogger(__name__)


class DsbsCoordinator(Coordinator):
    def __init__(self, setup: CoordinatorSetup) -> None:
        """Raises `InvalidRequest`."""
        self._settings = parse(setup.options)
        super().__init__(setup.me, doubt_s=self._settings.doubt_ms / 1000)
        if setup.peers is None:
            raise InvalidRequest("coordinator dsbs needs a transport between brokers, and was lent none")
        self._setup = setup
        self._peers = setup.peers
        self._machine: Machine | None = None
        self._topics: dict[str, Topic] = {}
        self._joined: asyncio.Future[None] | None = None
        self._heard_of: asyncio.Future[None] | None = None
        self._turns = Turns()  # at committing, of a group
        self._waiting: dict[int, asyncio.Future[Finished]] = {}
        self._token = 0
        self._timer: asyncio.TimerHandle | None = None
        self._due_ms = 0
        self._over: str | None = None
        self._withheld: frozenset[TopicPartition] = frozenset()  # which it would lead, were that written

    # --- life ---------------------------------------------------------------------------------------------

    async def start(self) -> None:
        self._disk = Disk(self._setup.journal)
        chance = SystemRandom()
        self._machine = Machine(
            self.me,
            chance.getrandbits(SESSION_BITS),
            self._setup.brokers,
            self._settings,
            chance,
            self._disk.table,
            self._disk.offsets.values(),
        )
        self._joined = asyncio.get_running_loop().create_future()
        self._peers.listen(self._received)
        self._publish(members=True, names=())
        self._do(Start())
        self._check_written()
        await self._joined
        self._check_written()  # who is new on its disk writes who it is when it has joined
        self._begin_doubting(self._clock())

    def _check_written(self) -> None:
        """A process is told from the one before by what it wrote. Raises `JournalFailed`."""
        if self._disk.refusal is not None:
            raise self._disk.refusal

    async def stop(self) -> None:
        await self._end_doubting()
        if self._machine is not None and self._machine.phase is Phase.MEMBER and self._over is None:
            await self._finished(Leave)
        self._end("it has stopped")
        self._views.close()

    def _end(self, why: str) -> None:
        """Act no more, and say why to all who wait."""
        self._over = self._over or why
        if self._timer is not None:
            self._timer.cancel()
        waiting, self._waiting = self._waiting, {}
        for future in waiting.values():
            if not future.done():
                future.set_exception(self._unavailable())
        if self._heard_of is not None and not self._heard_of.done():
            self._heard_of.set_exception(self._unavailable())
        if self._joined is not None and not self._joined.done():
            self._joined.set_exception(self._unavailable())
            self._joined.exception()  # where the first step failed, `start` raises that and nobody waits for this

    def _unavailable(self) -> Unavailable:
        return Unavailable(f"broker {self.me.id} is no member of the cluster: {self._over or 'it is joining'}")

    @property
    def lease_ends(self) -> float:
        """No lease: members lead until they learn of another. Who is no member, or no longer, leads nothing."""
        serves = self._machine is not None and self._machine.phase is Phase.MEMBER and self._over is None
        return inf if serves else -inf

    def _awake(self) -> None:
        """Who was not away has heard of every change as it came."""
        if self._doubt.sure:
            self._doubt.trust(self._clock(), self._doubt.naps)
        else:
            self._begin_hearing()

    async def _hear(self) -> None:
        naps = self._doubt.naps
        self._heard_of = asyncio.get_running_loop().create_future()
        self._do(Hear())
        await self._heard_of
        self._doubt.trust(self._clock(), naps)

    # --- what is known here -------------------------------------------------------------------------------

    def _known_leader(self, at: TopicPartition) -> Partition:
        return self.view().partition(at)

    async def _find_leader(self, at: TopicPartition) -> Partition:
        return self._known_leader(at)

    def _group_home(self, group: str, view: ClusterView) -> int:
        if not view.brokers:
            raise self._unavailable()
        return group_home(group, view.brokers)

    def tables(self) -> Tables:
        """The tables as this broker holds them, for people. Raises `Unavailable`."""
        return printed(self._running)

    # --- changes ------------------------------------------------------------------------------------------

    async def _create_topic(
        self, name: str, partitions: int, replication_factor: int, settings: TopicSettings
    ) -> Creation:
        taken = frozenset(self._setup.lives(name))
        finished = await self._finished(
            lambda token: CreateTopic(token, name, partitions, replication_factor, settings, taken)
        )
        row = topics.live_topic(self._running.table, name)
        if not _is_as_asked(row, partitions, replication_factor, settings):
            raise TopicExists(f"topic {name!r} was made in the same moment, otherwise, through broker {row.creator}")
        return Creation(self.view().topic(name), finished.known_to)

    async def _delete_topic(self, name: str) -> None:
        await self._finished(lambda token: DeleteTopic(token, name))

    async def _change_in_sync(self, at: TopicPartition, in_sync: frozenset[int], epoch: int) -> Partition:
        self._do(ChangeInSync(at, in_sync, epoch))
        return self.view().partition(at)

    async def _resign(self, at: TopicPartition, epoch: int) -> Partition:
        self._do(Resign(at, epoch))
        return self.view().partition(at)

    # --- offsets ------------------------------------------------------------------------------------------

    def _begin_commit(self, group: str, offsets: Mapping[TopicPartition, Committed]) -> Awaitable[None] | None:
        for at in offsets:
            self.view().partition(at)
        kept = self._running.offsets
        if group in kept.gathered and group not in self._turns and not kept.begins(group, offsets):
            self._do(Commit(group, offsets, 0, now_ms()))
            return None
        return self._commit_in_turn(group, offsets)

    async def _commit_in_turn(self, group: str, offsets: Mapping[TopicPartition, Committed]) -> None:
        async with self._turns.at(group):
            if group not in self._running.offsets.gathered:
                await self._finished(lambda token: Gather(token, group))
            if not self._running.offsets.begins(group, offsets):
                self._do(Commit(group, offsets, 0, now_ms()))
                return
            copied = await self._finished(lambda token: Commit(group, offsets, token, now_ms()))
            if copied.missing and copied.known_to == {self.me.id}:
                raise OutcomeUnknown(f"group {group!r} begins here, and no other broker says that it keeps a copy")

    async def _committed_offsets(self, group: str) -> Mapping[TopicPartition, Committed]:
        if group not in self._running.offsets.gathered:
            await self._finished(lambda token: Gather(token, group))
        return self._running.offsets.committed(group)

    async def _group_stamps(self) -> Stamps:
        """Of those whose copies are here, too: each broker forgets what it holds."""
        return Stamps(now_ms(), self._running.offsets.stamps())

    async def _stamp_group(self, group: str) -> None:
        if self.group_coordinator(group) == self.me.id:
            for at, place in list((await self._committed_offsets(group)).items())[:1]:
                self._do(Commit(group, {at: place}, 0, now_ms()))

    async def _forget_groups(self, stamps: Mapping[str, int]) -> None:
        kept = self._running.offsets
        newest = kept.stamps()
        groups = frozenset(group for group, at_ms in stamps.items() if newest.get(group) == at_ms)
        self._disk.rewrite_offsets(row for row in kept.rows() if row.group not in groups)
        self._do(Forget(groups))

    # --- the machine --------------------------------------------------------------------------------------

    @property
    def _running(self) -> Machine:
        if self._machine is None or self._over is not None:
            raise self._unavailable()
        return self._machine

    async def _finished(self, event: Callable[[int], Event]) -> Finished:
        """Let something happen that takes others to finish."""
        self._token += 1
        token = self._token
        future: asyncio.Future[Finished] = asyncio.get_running_loop().create_future()
        self._waiting[token] = future
        try:
            self._do(event(token))
            return await future
        finally:
            self._waiting.pop(token, None)
            if future.done() and not future.cancelled():
                future.exception()  # where the step itself failed, nobody waits for it

    def _received(self, content: bytes) -> None:
        if self._over is None:
            self._do(Received(content))

    def _wake(self) -> None:
        self._timer = None
        if self._over is None:
            if self._disk.unwritten:
                self._catch_up(())
            self._do(Wake())

    def _do(self, event: Event) -> None:
        """One step. Raises `JournalFailed` where the disk refuses what has to be there first; nothing is done then."""
        machine = self._running
        first = () if isinstance(event, _UNASKED) else machine.prepare(event)
        if first:
            self._disk.write(first)
        self._perform(machine.step(event, self._now_ms()))
        if first:
            self._disk.compact(machine.table, machine.offsets.rows)
        if machine.phase is not Phase.OUT and self._over is None:
            self._plan(machine.wake_ms)

    def _now_ms(self) -> int:
        return int(self._clock() * 1000)

    def _plan(self, due_ms: int) -> None:
        if self._timer is not None:
            if self._due_ms == due_ms:
                return
            self._timer.cancel()
        self._due_ms = due_ms
        delay_ms = max(1, due_ms - self._now_ms())
        self._timer = asyncio.get_running_loop().call_later(delay_ms / 1000, self._wake)

    def _perform(self, actions: Iterable[Action]) -> None:
        for action in actions:
            match action:
                case Persist(rows):
                    self._catch_up(rows)
                    self._disk.compact(self._running.table, self._running.offsets.rows)
                case Changed(members, names):
                    self._publish(members=members, names=names)
                case Send(_, envelope) if self._disk.unwritten and isinstance(envelope.body, Kept | Known):
                    continue  # who does not hear it asks again
                case Send(to, envelope):
                    content = encode(envelope)
                    for broker in to:
                        self.meter.sent(envelope.body.kind, len(content))
                        self._peers.send(broker, content)
                case Finished(token):
                    if token in self._waiting and not self._waiting[token].done():
                        self._waiting[token].set_result(action)
                case Joined():
                    assert self._joined is not None, "joined before it started"
                    self._joined.set_result(None)
                case Refused(reason):
                    self._refuse(reason)
                case Heard():
                    if self._heard_of is not None and not self._heard_of.done():
                        self._heard_of.set_result(None)
                case Lost(partitions):
                    _LOG.error("%s", lost_disk(self.me.id, partitions))

    def _catch_up(self, rows: Iterable[Row]) -> None:
        """Have on the disk what has happened, as far as it goes; lead what may be led by then."""
        refused_before = self._disk.refusal is not None
        self._disk.catch_up(rows)
        serves = self._joined is not None and self._joined.done()  # a start that fails says so by itself
        if serves and self._disk.refusal is not None and not refused_before:
            _LOG.error("broker %s: its tables cannot be written to the disk: %s", self.me.id, self._disk.refusal)
        elif refused_before and self._disk.refusal is None:
            _LOG.warning("broker %s: its tables are written to the disk again", self.me.id)
        before = self._withheld
        self._withheld = frozenset(
            TopicPartition(row.topic, row.partition)
            for row in self._disk.unwritten.values()
            if isinstance(row, LeaderRow) and row.leader == self.me.id
        )
        if self._withheld != before:
            self._publish(members=False, names={at.topic for at in self._withheld ^ before})

    def _refuse(self, reason: str) -> None:
        taken = BrokerIdTaken(reason)
        if self._joined is not None and not self._joined.done():
            self._joined.set_exception(taken)
        self._end(reason)
        self._lose(taken)

    def _publish(self, *, members: bool, names: Iterable[str]) -> None:
        """Who is live decides who leads, so a change there may show in every topic."""
        table = self._running.table
        for name in table.topics if members else names:
            topic = self._led(topics.topic_seen(table, name))
            if topic is None:
                self._topics.pop(name, None)
            else:
                self._topics[name] = topic
        brokers = topics.live_brokers(table) if members else None
        self._views.publish(brokers=brokers, topics=self._topics, controller=self.me.id)

    def _led(self, topic: Topic | None) -> Topic | None:
        """As it is seen, but for what this broker does not lead yet."""
        if topic is None or not self._withheld:
            return topic
        partitions = tuple(
            replace(partition, leader=NO_LEADER) if (topic.name, number) in self._withheld else partition
            for number, partition in enumerate(topic.partitions)
        )
        return replace(topic, partitions=partitions)


def _is_as_asked(row: TopicRow, partitions: int, replication_factor: int, settings: TopicSettings) -> bool:
    placed = (len(row.replicas), len(row.replicas[0]), row.settings)
    return placed == (partitions, replication_factor, settings)
