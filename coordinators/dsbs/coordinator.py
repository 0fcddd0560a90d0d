"""`dsbs`: the paper's decentralized stateful brokers. The shell around `machine`: it sends, waits and writes.

Every broker holds all tables, so nothing is asked of anybody on the path of a produce, a fetch or a commit. What that
costs in promises is in docs/dsbs.md.
"""

from __future__ import annotations

import asyncio
import logging
from math import inf
from random import SystemRandom
from typing import TYPE_CHECKING, Final

from coordinators.api import Coordinator
from coordinators.dsbs import topics
from coordinators.dsbs.disk import Disk
from coordinators.dsbs.events import (
    Changed,
    ChangeInSync,
    Commit,
    CreateTopic,
    DeleteTopic,
    Finished,
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
from coordinators.dsbs.machine import Machine
from coordinators.dsbs.messages import encode
from coordinators.dsbs.phases import Phase
from coordinators.dsbs.printed import Tables, printed
from coordinators.dsbs.settings import parse
from coordinators.errors import BrokerIdTaken, InvalidRequest, JournalFailed, TopicExists, Unavailable, lost_disk
from coordinators.model import Creation
from coordinators.placement import group_home
from coordinators.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from coordinators.config import CoordinatorSetup
    from coordinators.dsbs.events import Action, Event
    from coordinators.dsbs.rows import TopicRow
    from coordinators.model import ClusterView, Committed, Partition, Topic, TopicPartition, TopicSettings

SESSION_BITS: Final = 62
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
        await self._joined
        self._begin_doubting(self._clock())

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
        finished = await self._finished(
            lambda token: CreateTopic(token, name, partitions, replication_factor, settings)
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
        if group in self._running.offsets.gathered and group not in self._turns:
            self._do(Commit(group, offsets))
            return None
        return self._commit_in_turn(group, offsets)

    async def _commit_in_turn(self, group: str, offsets: Mapping[TopicPartition, Committed]) -> None:
        async with self._turns.at(group):
            if group not in self._running.offsets.gathered:
                await self._finished(lambda token: Gather(token, group))
            self._do(Commit(group, offsets))

    async def _committed_offsets(self, group: str) -> Mapping[TopicPartition, Committed]:
        if group not in self._running.offsets.gathered:
            await self._finished(lambda token: Gather(token, group))
        return self._running.offsets.committed(group)

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
        self._do_unasked(Received(content))

    def _wake(self) -> None:
        self._timer = None
        self._do_unasked(Wake())

    def _do_unasked(self, event: Event) -> None:
        """A step whose failure nobody waits for: `lost` tells of it."""
        if self._over is None:
            try:
                self._do(event)
            except JournalFailed:
                if self._loss is None:
                    raise

    def _do(self, event: Event) -> None:
        """One step. Where the disk refuses in the middle of it, this broker is out: it cannot keep its promises."""
        machine = self._running
        actions = machine.step(event, self._now_ms())
        try:
            self._perform(actions)
        except JournalFailed as error:
            self._end(f"its tables cannot be written to the disk: {error}")
            self._lose(self._unavailable())
            raise
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
                    self._disk.write(rows)
                    self._disk.compact(self._running.table, self._running.offsets.rows)
                case Changed(members, names):
                    self._publish(members=members, names=names)
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
            topic = topics.topic_seen(table, name)
            if topic is None:
                self._topics.pop(name, None)
            else:
                self._topics[name] = topic
        brokers = topics.live_brokers(table) if members else None
        self._views.publish(brokers=brokers, topics=self._topics, controller=self.me.id)


def _is_as_asked(row: TopicRow, partitions: int, replication_factor: int, settings: TopicSettings) -> bool:
    placed = (len(row.replicas), len(row.replicas[0]), row.settings)
    return placed == (partitions, replication_factor, settings)
