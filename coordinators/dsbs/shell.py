"""The shell around a broker's machine: it keeps the machine's time, writes what it persists, and sends what it says.

On a disk that refuses, what this broker's clients ask that must be written is refused, and nothing has happened. What
the broker hears it knows, and it tells nobody that it keeps it. Where it comes to lead, it does so once that is
written: it could lead twice at an epoch that a crash makes it forget.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from random import SystemRandom
from typing import TYPE_CHECKING, Final

from coordinators.dsbs.disk import Disk
from coordinators.dsbs.machine import topics
from coordinators.dsbs.machine.events import (
    Changed,
    Finished,
    Hear,
    Heard,
    Joined,
    Lost,
    Persist,
    Received,
    Refused,
    Send,
    Start,
    Wake,
)
from coordinators.dsbs.machine.ledger import Phase
from coordinators.dsbs.machine.machine import Machine
from coordinators.dsbs.tables.messages import Kept, Known, encode
from coordinators.dsbs.tables.rows import LeaderRow
from coordinators.errors import BrokerIdTaken, Unavailable, lost_disk
from coordinators.model import NO_LEADER, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from coordinators.dsbs.machine.events import Action, Event
    from coordinators.dsbs.options import Settings
    from coordinators.dsbs.tables.rows import Row
    from coordinators.errors import CoordinationError
    from coordinators.meter import Meter
    from coordinators.model import Topic
    from coordinators.registry import CoordinatorSetup, Transport
    from coordinators.views import Views

SESSION_BITS: Final = 62
_UNASKED: Final = (Received, Wake, Start)  # by this broker's own clients
_LOG: Final = logging.getLogger(__name__)


class Shell:
    """`lose` is told when this broker can take part no more."""

    def __init__(
        self,
        setup: CoordinatorSetup,
        peers: Transport,
        settings: Settings,
        clock: Callable[[], float],
        meter: Meter,
        views: Views,
        lose: Callable[[CoordinationError], None],
    ) -> None:
        self._setup = setup
        self._me = setup.me.id
        self._peers = peers
        self._settings = settings
        self._clock = clock
        self._meter = meter
        self._views = views
        self._lose = lose
        self._machine: Machine | None = None
        self._topics: dict[str, Topic] = {}
        self._joined: asyncio.Future[None] | None = None
        self._heard: asyncio.Future[None] | None = None
        self._waiting: dict[int, asyncio.Future[Finished]] = {}
        self._token = 0
        self._timer: asyncio.TimerHandle | None = None
        self._due_ms = 0
        self._over: str | None = None
        self._withheld: frozenset[TopicPartition] = frozenset()  # which it would lead, were that written

    # --- life ---------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Return when this broker is a member. Raises as `Coordinator.start`."""
        self.disk = Disk(self._setup.journal)
        chance = SystemRandom()
        self._machine = Machine(
            self._setup.me,
            chance.getrandbits(SESSION_BITS),
            self._setup.brokers,
            self._settings,
            chance,
            self.disk.table,
            self.disk.offsets.values(),
        )
        self._joined = asyncio.get_running_loop().create_future()
        self._peers.listen(self._received)
        self._publish(members=True, names=())
        self.do(Start())
        self._check_written()
        await self._joined
        self._check_written()  # a broker that is new on its disk writes its own row when it has joined

    def _check_written(self) -> None:
        """What a process wrote tells it from the one before. Raises `JournalFailed`."""
        if self.disk.refusal is not None:
            raise self.disk.refusal

    def end(self, why: str) -> None:
        """Stop to act, and tell all waiters why."""
        self._over = self._over or why
        if self._timer is not None:
            self._timer.cancel()
        waiting, self._waiting = self._waiting, {}
        for future in (*waiting.values(), self._heard, self._joined):
            if future is not None and not future.done():
                future.set_exception(self._unavailable())
        if self._joined is not None and not self._joined.cancelled():
            self._joined.exception()  # where the first step failed, `start` raises that and nobody waits for this

    def _unavailable(self) -> Unavailable:
        return Unavailable(f"broker {self._me} is no member of the cluster: {self._over or 'it is joining'}")

    @property
    def is_member(self) -> bool:
        return self._machine is not None and self._machine.phase is Phase.MEMBER and self._over is None

    @property
    def running(self) -> Machine:
        """Raises `Unavailable`."""
        if self._machine is None or self._over is not None:
            raise self._unavailable()
        return self._machine

    # --- steps --------------------------------------------------------------------------------------------

    def do(self, event: Event) -> None:
        """One step. Raises `JournalFailed` where the disk refuses what has to be there first; nothing is done then."""
        machine = self.running
        first = () if isinstance(event, _UNASKED) else machine.prepare(event)
        if first:
            self.disk.write(first)
        self._perform(machine.step(event, self._now_ms()))
        if first:
            self.disk.compact(machine.table, machine.offsets.rows)
        if machine.phase is not Phase.OUT and self._over is None:
            self._plan(machine.wake_ms)

    def do_together(self, events: Sequence[Event]) -> None:
        """Steps whose rows are written in one go. They must touch different rows. Raises as `do`; none is done then."""
        machine = self.running
        prepared = [machine.prepare(event) for event in events]
        self.disk.write([row for rows in prepared for row in rows])
        for event, rows in zip(events, prepared, strict=True):
            machine.prepared(event, rows)
            self._perform(machine.step(event, self._now_ms()))
        self.disk.compact(machine.table, machine.offsets.rows)
        self._plan(machine.wake_ms)

    async def finished(self, event: Callable[[int], Event]) -> Finished:
        """Do what takes other brokers to finish, under a token; what came of it. Raises as `do`, and `Unavailable`."""
        self._token += 1
        token = self._token
        future: asyncio.Future[Finished] = asyncio.get_running_loop().create_future()
        self._waiting[token] = future
        try:
            self.do(event(token))
            return await future
        finally:
            self._waiting.pop(token, None)
            if future.done() and not future.cancelled():
                future.exception()  # where the step itself failed, nobody waits for it

    async def hear(self) -> None:
        """Learn of all that has happened by now. Raises `Unavailable`."""
        self._heard = asyncio.get_running_loop().create_future()
        self.do(Hear())
        await self._heard

    def _received(self, content: bytes) -> None:
        if self._over is None:
            self.do(Received(content))

    def _wake(self) -> None:
        self._timer = None
        if self._over is None:
            if self.disk.unwritten:
                self._catch_up(())
            self.do(Wake())

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

    # --- what a step asks for -----------------------------------------------------------------------------

    def _perform(self, actions: Iterable[Action]) -> None:
        for action in actions:
            match action:
                case Persist(rows):
                    self._catch_up(rows)
                    self.disk.compact(self.running.table, self.running.offsets.rows)
                case Changed(members, names):
                    self._publish(members=members, names=names)
                case Send(_, envelope) if self.disk.unwritten and isinstance(envelope.body, Kept | Known):
                    continue  # a peer that does not hear it asks again
                case Send(to, envelope):
                    content = encode(envelope)
                    for broker in to:
                        self._meter.sent(envelope.body.kind, len(content))
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
                    if self._heard is not None and not self._heard.done():
                        self._heard.set_result(None)
                case Lost(partitions):
                    _LOG.error("%s", lost_disk(self._me, partitions))

    def _catch_up(self, rows: Iterable[Row]) -> None:
        """Have on the disk what has happened, as far as it goes; lead what may be led by then."""
        refused_before = self.disk.refusal is not None
        self.disk.catch_up(rows)
        serves = self._joined is not None and self._joined.done()  # a start that fails says so by itself
        if serves and self.disk.refusal is not None and not refused_before:
            _LOG.error("broker %s: its tables cannot be written to the disk: %s", self._me, self.disk.refusal)
        elif refused_before and self.disk.refusal is None:
            _LOG.warning("broker %s: its tables are written to the disk again", self._me)
        before = self._withheld
        self._withheld = frozenset(
            TopicPartition(row.topic, row.partition)
            for row in self.disk.unwritten.values()
            if isinstance(row, LeaderRow) and row.leader == self._me
        )
        if self._withheld != before:
            self._publish(members=False, names={at.topic for at in self._withheld ^ before})

    def _refuse(self, reason: str) -> None:
        taken = BrokerIdTaken(reason)
        if self._joined is not None and not self._joined.done():
            self._joined.set_exception(taken)
        self.end(reason)
        self._lose(taken)

    def _publish(self, *, members: bool, names: Iterable[str]) -> None:
        """The live brokers decide who leads, so a change of members may show in every topic."""
        table = self.running.table
        for name in table.topics if members else names:
            topic = self._led(topics.topic_seen(table, name))
            if topic is None:
                self._topics.pop(name, None)
            else:
                self._topics[name] = topic
        brokers = topics.live_brokers(table) if members else None
        self._views.publish(brokers=brokers, topics=self._topics, controller=self._me)

    def _led(self, topic: Topic | None) -> Topic | None:
        """The topic as it is seen, without a leader where this broker does not lead yet."""
        if topic is None or not self._withheld:
            return topic
        partitions = tuple(
            replace(partition, leader=NO_LEADER) if (topic.name, number) in self._withheld else partition
            for number, partition in enumerate(topic.partitions)
        )
        return replace(topic, partitions=partitions)
