"""The contract between a broker and its coordination layer.

A broker speaks the domain (who leads this partition, keep this group's offsets); the back end decides how it gets the
answer, and the architectures differ in nothing else. Guarantees, by group:

=====================  ==========================================================================================
eventually visible     `view`, `views`, `group_coordinator`. Snapshots of what this broker knows; they never wait. A
                       change anywhere shows in them some time later: how long is what the experiments measure.
at this moment         `leader`, `known_leader`, `find_leader`. On the path of every produce and fetch. Answered only
                       under a lease that has not ended; by then at the latest nobody else leads where ZooKeeper
                       decides. An architecture that holds its metadata in the broker answers at once, one that
                       looks up is awaited: by a look-up that begins after the request came (`waits/look_ups.py`).
                       An answer is good at once; one that waited is worth what `confirmed` says, and `serves` is
                       asked right before something is appended.
agreed                 `create_topic`, `delete_topic`. When they return, the change has happened; a creation says
                       which brokers certainly know of it, or will find it when asked (`find_topics`, `leader`).
                       `zookeeper`: linearizable. `dsbs`: eventually the same everywhere. `static`: on all brokers or
                       on none, one change of a name at a time; refused while a broker is away.
compare and set        `change_in_sync`, `resign`. They happen only if this broker leads at the epoch that it names.
                       `zookeeper`: linearizable. `dsbs`: compared with what this broker knows. `static` refuses.
durable                `commit_offsets`, `committed_offsets`, `expire_groups`. What a commit that returned promises is
                       the option `offsets`: `memory`, it is lost with the broker's process; `journal`, it survives a
                       restart of that broker; `journal_copied`, and is copied to the brokers next in succession;
                       `zookeeper_each`, ZooKeeper has it; `zookeeper_interval`, ZooKeeper has it after the interval
                       or an orderly stop. With the last three a group's first commit in a partition outlives its
                       broker, however it ends: before it, a consumer might begin at the latest message and skip.
                       What groups committed goes with its topic, and with the group, when nobody has used it for long.
=====================  ==========================================================================================

Leadership passes without being asked for: the back ends see to it that the partitions of a dead broker get the leader
that `leadership.succession` names, at a higher epoch. Brokers learn of it from `views`.

Errors are those of `errors.py`: a definite one means that nothing happened, `OutcomeUnknown` that it may have. Every
verb may raise `Unavailable` (nothing happened; clients retry), and `Unreadable` where what is stored makes no sense.

What coordination costs is counted by `meter`: the public methods here count calls and waiting, so that no back end
can forget to, and whoever sends something counts what it sends.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from functools import partial
from math import inf
from time import monotonic, monotonic_ns
from typing import TYPE_CHECKING, Final, NamedTuple

from coordinators.errors import CoordinationError, InvalidRequest, NotCoordinator, Unavailable
from coordinators.freshness import Doubt, Freshness
from coordinators.idleness import Idleness
from coordinators.meter import Meter
from coordinators.model import (
    DEFAULT_SETTINGS,
    PARTITIONS_MAX,
    Broker,
    ClusterView,
    Committed,
    Creation,
    Partition,
    TopicPartition,
    TopicSettings,
    committed_fault,
    group_name_fault,
    topic_name_fault,
)
from coordinators.placement import GroupHomes
from coordinators.views import Views
from coordinators.waits.delay import Delay
from coordinators.waits.look_ups import LookUps, SharedLookUps

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping

    from coordinators.offsets import OffsetStore
    from coordinators.waits.look_ups import Found, Told


class Standing(NamedTuple):
    """While `tenure` stays the same and the lease holds, no leadership that was answered has passed to another; while
    `lives` does, no topic has come to its end. Both only grow."""

    tenure: int
    lives: int


FOR_EVER: Final = Standing(0, 0)


class Coordinator(ABC):
    """One broker's end of the coordination layer. One event loop uses it; it is not shared between threads.

    A back end overrides what is abstract, publishes what it knows through `self._views.publish`, keeps what groups
    commit in `self._kept`, and overrides `lease_ends` where its leadership ends by itself. `clock` is monotonic, in
    seconds. One that answers from memory what others may change has a `doubt_s` (`freshness.py`): it calls
    `self._freshness.begin` in `start` and `end` in `stop`, and overrides `_hear` and `_awake`.
    """

    _kept: OffsetStore

    def __init__(
        self,
        me: Broker,
        *,
        clock: Callable[[], float] = monotonic,
        doubt_s: float = inf,
        delay_us: int = 0,
        look_ups: type[LookUps] = SharedLookUps,
    ) -> None:
        self.me = me
        self.meter = Meter()
        self._delay = Delay(delay_us)
        self._look_ups = look_ups(self._ask, self._lease_fault, self.meter)
        self._clock = clock
        self._views = Views()
        self._homes = GroupHomes()
        self._idleness = Idleness()
        self._loss: CoordinationError | None = None
        self._lost = asyncio.Event()
        self._doubt = Doubt(doubt_s)
        self._freshness = Freshness(me.id, self._doubt, clock, self._awake, self._hear)

    # --- life ---------------------------------------------------------------------------------------------

    @abstractmethod
    async def start(self) -> None:
        """Join the cluster. When it returns, `view` holds this broker.

        Raises `BrokerIdTaken` (another live broker has the id), `Unavailable`, `InvalidRequest` (an option).
        """

    @abstractmethod
    async def stop(self) -> None:
        """Leave in an orderly way: what this broker led passes on at once. Safe to call twice, after a failed start,
        and while the coordination service is away. `views` ends."""

    async def lost(self) -> CoordinationError:
        """Wait until this broker can take part no more before a restart, and say why. Most brokers are never lost:
        a fault that passes by itself (a service that is away, a session that ended) is no loss, nor an orderly stop."""
        await self._lost.wait()
        assert self._loss is not None, "set before the event"
        return self._loss

    def _lose(self, why: CoordinationError) -> None:
        self._loss = self._loss or why
        self._lost.set()

    # --- eventually visible -------------------------------------------------------------------------------

    def view(self) -> ClusterView:
        """What this broker knows now. Never waits."""
        return self._views.present

    def views(self) -> AsyncIterator[ClusterView]:
        """The present view, then every newer one, the newest alone where several came at once. Ends with `stop`."""
        return self._views.follow()

    def group_coordinator(self, group: str) -> int:
        """Id of the broker that serves the consumer group, the same on every broker with the same view.

        Raises `Unavailable` where no live broker is known.
        """
        return self._homes.of(group, self.view().brokers)

    # --- at this moment -----------------------------------------------------------------------------------

    @property
    def lease_ends(self) -> float:
        """When, by `clock`, this broker must have stopped to act as a leader unless the lease is renewed by then."""
        return inf

    def leader(self, at: TopicPartition) -> Partition | Awaitable[Partition]:
        """Who leads `at`: the answer, or what to await for it. On the path of every produce and fetch.

        Raises `UnknownTopic`; `Unavailable` where the lease has ended, or the metadata lives elsewhere and cannot be
        reached. All are definite, and clients retry.
        """
        known = self.known_leader(at)
        return known if known is not None else self.find_leader(at)

    def known_leader(self, at: TopicPartition) -> Partition | None:
        """The answer as it lies in this broker's memory, or None where `find_leader` must ask. Raises as `leader`."""
        now = self._clock()
        if now >= self.lease_ends:
            raise self._out_of_touch()
        return self._known_leader(at) if now < self._doubt.sure_until else None

    async def find_leader(self, at: TopicPartition) -> Partition:
        """Ask whoever holds the metadata. Called only where `known_leader` says None. Raises as `leader`.

        An answer that took longer than the lease lasts is no answer.
        """
        answer: asyncio.Future[Partition] = asyncio.get_running_loop().create_future()
        self.ask_leader(at, 1, partial(_tell, answer))
        return await answer

    def ask_leader(self, at: TopicPartition, requests: int, told: Told) -> None:
        """The same for `requests` that name the partition and came just now. `told` hears the answer or the error, in a
        later turn of the event loop."""
        self._look_ups.find(at, requests, told)

    def _ask(self, at: TopicPartition) -> Awaitable[Partition]:
        if self._delay or self._clock() >= self._doubt.sure_until:
            return self._ask_late(at)
        return self._find_leader(at)

    async def _ask_late(self, at: TopicPartition) -> Partition:
        if self._clock() >= self._doubt.sure_until:
            await self._freshness.heard()
        return await self._delay.after(self._find_leader(at))

    @property
    def standing(self) -> Standing:
        """What an answer of `find_leader` rests on that is asked for now."""
        return FOR_EVER

    def confirmed(self, at: TopicPartition, found: Partition, standing: Standing) -> Partition | None:
        """What an answer is worth now that was asked for at `standing`: the newest where it lies in memory, the same
        where nothing can have passed to another since; None where it must be asked for again. Raises as `leader`."""
        known = self.known_leader(at)
        return found if known is None and standing == self.standing and self.serves() else known

    def serves(self) -> bool:
        """Whether what was answered in this turn of the event loop still holds: the process may have been stopped since
        then. It costs a look at the clock."""
        now = self._clock()
        return now < self.lease_ends and now < self._doubt.sure_until

    def _lease_fault(self) -> Unavailable | None:
        return self._out_of_touch() if self._clock() >= self.lease_ends else None

    def _check_lease(self) -> None:
        if (fault := self._lease_fault()) is not None:
            raise fault

    def _out_of_touch(self) -> Unavailable:
        return Unavailable(f"broker {self.me.id} has lost touch with the coordination service")

    @abstractmethod
    def _known_leader(self, at: TopicPartition) -> Partition | None: ...

    @abstractmethod
    def _find_leader(self, at: TopicPartition) -> Awaitable[Partition]: ...

    def _awake(self) -> None:
        """The event loop turns. Keep sure, or begin to hear."""
        raise NotImplementedError

    async def _hear(self) -> None:
        """Learn of all that has happened by now. Raises `Unavailable`."""
        raise NotImplementedError

    # --- agreed -------------------------------------------------------------------------------------------

    async def create_topic(
        self, name: str, partitions: int, replication_factor: int, settings: TopicSettings = DEFAULT_SETTINGS
    ) -> Creation:
        """Make a topic, placed by `placement.place` on the live brokers; this broker's view holds it on return.

        Raises `InvalidRequest`, `TopicExists`, `NotEnoughBrokers`, `Unavailable` (all definite); `OutcomeUnknown`.
        """
        fault = topic_name_fault(name)
        if fault is not None:
            raise InvalidRequest(fault)
        if not 1 <= partitions <= PARTITIONS_MAX:
            raise InvalidRequest(f"topic {name!r}: partitions must be 1 to {PARTITIONS_MAX}, not {partitions}")
        if replication_factor < 1:
            raise InvalidRequest(f"topic {name!r}: replication factor must be at least 1, not {replication_factor}")
        return await self.meter.waited(
            "create_topic", self._create_topic(name, partitions, replication_factor, settings)
        )

    async def delete_topic(self, name: str) -> None:
        """Forget a topic, with all that groups committed in it; this broker's view is without it on return.

        Raises `UnknownTopic`, `Unavailable` (definite); `OutcomeUnknown`.
        """
        await self.meter.waited("delete_topic", self._delete_topic(name))

    async def find_topics(self, names: Collection[str]) -> None:
        """Have those of `names` that exist in `view`. For requests that describe topics which the view lacks: another
        broker may have made them a moment ago, and an architecture that can ask does. Raises `Unavailable`."""
        missing = [name for name in names if name not in self.view().topics and topic_name_fault(name) is None]
        if missing:
            await self.meter.waited("find_topics", self._find_topics(missing))

    async def _find_topics(self, names: Collection[str]) -> None:  # noqa: B027 - most have nobody to ask
        """Nobody to ask: the view is all that there is to know."""

    @abstractmethod
    async def _create_topic(
        self, name: str, partitions: int, replication_factor: int, settings: TopicSettings
    ) -> Creation: ...

    @abstractmethod
    async def _delete_topic(self, name: str) -> None: ...

    # --- compare and set ----------------------------------------------------------------------------------

    async def change_in_sync(self, at: TopicPartition, in_sync: Collection[int], epoch: int) -> Partition:
        """Make `in_sync` the in-sync replicas of a partition that this broker leads at `epoch`. The epoch stays.

        Raises `InvalidRequest` (not replicas, or without the leader), `StaleEpoch` (this broker does not lead at
        `epoch`: it stops acting as leader), `UnknownTopic`, `Unsupported`, `Unavailable` (all definite);
        `OutcomeUnknown`: neither set may be relied on before a later call succeeds.
        """
        self._check_lease()
        return await self.meter.waited("change_in_sync", self._change_in_sync(at, frozenset(in_sync), epoch))

    async def resign(self, at: TopicPartition, epoch: int) -> Partition:
        """Give up leading a partition at `epoch`, as in an orderly stop. What `leadership.succession` makes of it
        without this broker is the answer; where no other replica is in sync, nobody leads until this broker returns.

        Raises `StaleEpoch` (it is given up already), `UnknownTopic`, `Unsupported`, `Unavailable` (definite);
        `OutcomeUnknown`.
        """
        return await self.meter.waited("resign", self._resign(at, epoch))

    @abstractmethod
    async def _change_in_sync(self, at: TopicPartition, in_sync: frozenset[int], epoch: int) -> Partition: ...

    @abstractmethod
    async def _resign(self, at: TopicPartition, epoch: int) -> Partition: ...

    # --- durable ------------------------------------------------------------------------------------------

    async def commit_offsets(self, group: str, offsets: Mapping[TopicPartition, Committed]) -> None:
        """Keep a group's offsets. To commit the same again is always safe. Commits of one and the same single partition
        count in the order in which they were begun, whether or not those before have returned.

        Raises `InvalidRequest`, `NotCoordinator` (another broker serves the group), `Unavailable` (all definite);
        `UnknownTopic` (those of other partitions are kept), `OutcomeUnknown` (some may be kept).
        """
        rest = self.begin_commit(group, offsets)
        if rest is not None:
            await asyncio.shield(rest)

    def begin_commit(self, group: str, offsets: Mapping[TopicPartition, Committed]) -> asyncio.Future[None] | None:
        """`commit_offsets` up to where it has to wait: None where the offsets are kept already, else a future, which
        other commits may share. On the path of every consumed batch where the experiment commits after each. Raises as
        `commit_offsets`."""
        self._check_serves(group)
        for at, place in offsets.items():
            if (fault := committed_fault(place)) is not None:
                raise InvalidRequest(f"{at.topic}-{at.partition}: {fault}")
        start = monotonic_ns()
        rest = None
        try:
            rest = self._kept.begin_commit(group, offsets)
        finally:
            if rest is None:
                self.meter.called("commit", monotonic_ns() - start)
        if rest is None:
            return None
        kept = asyncio.ensure_future(self._delay.after(rest) if self._delay else rest)
        self.meter.waits("commit", kept, start)
        return kept

    async def committed_offsets(self, group: str) -> Mapping[TopicPartition, Committed]:
        """All that a group has committed; empty for a group that is not known.

        Raises `InvalidRequest`, `NotCoordinator`, `Unavailable`.
        """
        self._check_serves(group)
        return await self.meter.waited("committed", self._kept.committed(group))

    async def expire_groups(self, retention_ms: int, members: Collection[str]) -> None:
        """Forget the groups that have had no members and committed nothing for `retention_ms`, with all that they
        committed; `members` are the groups that have some here. For a broker to call some times in that while.

        Raises `Unavailable`, `OutcomeUnknown`, `JournalFailed`: the rest is forgotten by a later call.
        """
        expiring = self._idleness.expire(self._kept, members, retention_ms, self._clock)
        await self.meter.waited("expire_groups", expiring)

    def _check_serves(self, group: str) -> None:
        if (fault := group_name_fault(group)) is not None:
            raise InvalidRequest(fault)
        self._check_lease()
        home = self.group_coordinator(group)
        if home != self.me.id:
            raise NotCoordinator(f"group {group!r} is served by broker {home}, not {self.me.id}")

    # --- counting -----------------------------------------------------------------------------------------

    @property
    def client_cpu_ns(self) -> int:
        """Processor time, since the start, of the library behind this coordinator, as far as it can be told from what
        else the broker does. 0 where there is none."""
        return 0


def _tell(answer: asyncio.Future[Partition], found: Found) -> None:
    if answer.done():
        return
    if isinstance(found, Partition):
        answer.set_result(found)
    else:
        answer.set_exception(found)
