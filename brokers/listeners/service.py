"""What every connection of the Kafka listener works with."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from brokers.log.errors import LogError
from brokers.replication.store import NotLeader
from brokers.slices import Slices
from brokers.wire.errors import ErrorCode
from coordinators.errors import (
    CoordinationError,
    InvalidRequest,
    NotCoordinator,
    NotEnoughBrokers,
    TopicExists,
    UnknownTopic,
)
from coordinators.model import Partition

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from brokers.config import TopicDefaults
    from brokers.groups.groups import Groups
    from brokers.listeners.config import ListenerLimits
    from brokers.metrics import Metrics
    from brokers.replication.store import Store
    from brokers.topics import TopicAdmin
    from brokers.wire.budget import Budget
    from coordinators.api import Coordinator, Standing
    from coordinators.model import TopicPartition

CLUSTER_ID: Final = "brokerlab"
Leaders = list[Partition | ErrorCode]


@dataclass(frozen=True, slots=True)
class Service:
    coordinator: Coordinator
    store: Store
    topics: TopicAdmin
    groups: Groups
    metrics: Metrics
    defaults: TopicDefaults
    limits: ListenerLimits
    budget: Budget
    slices: Slices = field(default_factory=Slices)

    def known_leader(self, at: TopicPartition) -> Partition | ErrorCode | None:
        """Who leads, or why that cannot be said; None where `leaders` has to wait: for a look-up, or for a log of this
        broker's that is still being opened."""
        try:
            leader = self.coordinator.known_leader(at)
        except CoordinationError as error:
            return code_of(error)
        if leader is None or leader.leader != self.coordinator.me.id or (opening := self.store.opening(at)) is None:
            return leader
        return None if opening.error is None else ErrorCode.KAFKA_STORAGE_ERROR

    def leaders(self, wanted: Sequence[TopicPartition]) -> Coroutine[Any, Any, Leaders]:
        """The same for all that one request names, after what there is to wait for."""
        return self._leader(wanted[0]) if len(wanted) == 1 else self._leaders(wanted)

    def confirmed(self, wanted: Sequence[TopicPartition], found: Leaders, standing: Standing) -> Leaders | None:
        """What leaders that were looked up at `standing` are worth now; None where they must be looked up again. That
        one is refused stays so."""
        now: Leaders = []
        for at, leader in zip(wanted, found, strict=True):
            worth: Partition | ErrorCode | None = leader
            if isinstance(leader, Partition):
                try:
                    worth = self.coordinator.confirmed(at, leader, standing)
                except CoordinationError as error:
                    worth = code_of(error)
            if worth is None:
                return None
            now.append(worth)
        return now

    async def leaders_now(self, wanted: Sequence[TopicPartition]) -> Leaders:
        """Leaders of this moment, asked for as often as that takes."""
        while True:
            standing = self.coordinator.standing
            now = self.confirmed(wanted, await self.leaders(wanted), standing)
            if now is not None:
                return now

    def leads_still(self, at: TopicPartition, leader: Partition, tenure: int) -> ErrorCode:
        """Whether this broker, which was answered that it leads, still does; if not, why."""
        now = self.known_leader(at)
        if now is None:
            same = tenure == self.coordinator.standing.tenure
        elif isinstance(now, Partition):
            same = (now.leader, now.epoch) == (leader.leader, leader.epoch)
        else:
            return now
        return ErrorCode.NONE if same else ErrorCode.NOT_LEADER_OR_FOLLOWER

    async def _leader(self, at: TopicPartition) -> Leaders:
        try:
            leader = await self._looked_up(at)
            if leader.leader == self.coordinator.me.id and self.store.opening(at) is not None:
                await self.store.opened(at)
                leader = await self._looked_up(at)  # it may have passed on meanwhile
        except CoordinationError as error:
            return [code_of(error)]
        except NotLeader:
            return [ErrorCode.NOT_LEADER_OR_FOLLOWER]
        except LogError:
            return [ErrorCode.KAFKA_STORAGE_ERROR]
        return [leader]

    async def _looked_up(self, at: TopicPartition) -> Partition:
        found = self.coordinator.leader(at)
        return found if isinstance(found, Partition) else await found

    async def _leaders(self, wanted: Sequence[TopicPartition]) -> Leaders:
        """Asked for together, each of them once."""
        asked = tuple(dict.fromkeys(wanted))
        found = dict(zip(asked, await asyncio.gather(*map(self._leader, asked)), strict=True))
        return [found[at][0] for at in wanted]


class LookUp:
    """Leaders that a request needs, asked for before its turn. `spawn` holds the task that asks."""

    __slots__ = ("_service", "_standing", "_wanted", "answer")

    def __init__(
        self,
        service: Service,
        wanted: Sequence[TopicPartition],
        spawn: Callable[[Coroutine[Any, Any, Leaders]], asyncio.Task[Leaders]],
    ) -> None:
        self._service = service
        self._wanted = wanted
        self._standing = service.coordinator.standing
        self.answer = spawn(service.leaders(wanted))

    def worth(self) -> Leaders | None:
        """What the answer is worth now that the request has its turn; None: it must be asked for again."""
        return self._service.confirmed(self._wanted, self.answer.result(), self._standing)


class Caller(NamedTuple):
    """Who sent a request, and in which version of its API."""

    client_id: str
    host: str
    version: int


_CODES: Final[dict[type[CoordinationError], ErrorCode]] = {
    UnknownTopic: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    TopicExists: ErrorCode.TOPIC_ALREADY_EXISTS,
    NotEnoughBrokers: ErrorCode.INVALID_REPLICATION_FACTOR,
    NotCoordinator: ErrorCode.NOT_COORDINATOR,
    InvalidRequest: ErrorCode.INVALID_REQUEST,
}


def code_of(error: CoordinationError) -> ErrorCode:
    """The number for it; what has none of its own passes with time, and clients try again."""
    if not error.definite:
        return ErrorCode.REQUEST_TIMED_OUT
    return _CODES.get(type(error), ErrorCode.LEADER_NOT_AVAILABLE)
