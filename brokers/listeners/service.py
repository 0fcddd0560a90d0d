"""The parts that every connection of the Kafka listener works with."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from brokers.log.errors import LogError
from brokers.replication.errors import LeadershipEnded, NotLeader, ReplicaError, TooFewInSync
from brokers.replication.replica import Leadership
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
    from brokers.replication.leaderships import Leaderships
    from brokers.topics import TopicAdmin
    from brokers.wire.budget import Budget
    from coordinators.api import Coordinator, Standing
    from coordinators.model import TopicPartition

CLUSTER_ID: Final = "brokerlab"
Found = list[Partition | ErrorCode]
"""The leader, as it was looked up for a request before its turn."""
Leaders = list[Leadership | ErrorCode]
"""The value of that look-up to this broker when the turn has come."""
REFUSALS: Final = (CoordinationError, ReplicaError, LogError)


@dataclass(frozen=True, slots=True)
class Service:
    coordinator: Coordinator
    leaderships: Leaderships
    topics: TopicAdmin
    groups: Groups
    metrics: Metrics
    defaults: TopicDefaults
    limits: ListenerLimits
    budget: Budget
    slices: Slices = field(default_factory=Slices)

    def known_leader(self, at: TopicPartition) -> Leadership | ErrorCode | None:
        """This broker's leadership, or why there is none; None where `leaders` has to wait: for a look-up, or for a log
        that is still being opened."""
        try:
            return self.leaderships.known(at)
        except REFUSALS as error:
            return code_of(error)

    def leaders(self, wanted: Sequence[TopicPartition]) -> Coroutine[Any, Any, Found]:
        """The leaders of all partitions that one request names, after a wait where one is needed."""
        return self._leader(wanted[0]) if len(wanted) == 1 else self._leaders(wanted)

    def confirmed(self, wanted: Sequence[TopicPartition], found: Found, standing: Standing) -> Leaders | None:
        """What leaders that were looked up at `standing` are worth now; None where they must be looked up again. That
        one is refused stays so."""
        now: Leaders = []
        for at, leader in zip(wanted, found, strict=True):
            worth: Leadership | ErrorCode | None
            if isinstance(leader, Partition):
                try:
                    worth = self.leaderships.confirmed(at, leader, standing)
                except REFUSALS as error:
                    worth = code_of(error)
            else:
                worth = leader
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

    def leads_still(self, leadership: Leadership, tenure: int) -> ErrorCode:
        """Whether a leadership goes on that was answered at `tenure`; if not, why."""
        try:
            self.leaderships.check(leadership, tenure)
        except REFUSALS as error:
            return code_of(error)
        return ErrorCode.NONE

    async def _leader(self, at: TopicPartition) -> Found:
        try:
            return [await self.leaderships.find(at)]
        except REFUSALS as error:
            return [code_of(error)]

    async def _leaders(self, wanted: Sequence[TopicPartition]) -> Found:
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
        spawn: Callable[[Coroutine[Any, Any, Found]], asyncio.Task[Found]],
    ) -> None:
        self._service = service
        self._wanted = wanted
        self._standing = service.coordinator.standing
        self.answer = spawn(service.leaders(wanted))

    def worth(self) -> Leaders | None:
        """The value of the answer now that the request has its turn; None: ask for it again."""
        return self._service.confirmed(self._wanted, self.answer.result(), self._standing)


class Caller(NamedTuple):
    """The sender of a request, and the version of its API."""

    client_id: str
    host: str
    version: int


_CODES: Final[dict[type[Exception], ErrorCode]] = {
    UnknownTopic: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    TopicExists: ErrorCode.TOPIC_ALREADY_EXISTS,
    NotEnoughBrokers: ErrorCode.INVALID_REPLICATION_FACTOR,
    NotCoordinator: ErrorCode.NOT_COORDINATOR,
    InvalidRequest: ErrorCode.INVALID_REQUEST,
    NotLeader: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    LeadershipEnded: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    TooFewInSync: ErrorCode.NOT_ENOUGH_REPLICAS,
}


def code_of(error: CoordinationError | ReplicaError | LogError) -> ErrorCode:
    """The number for it; what has none of its own passes with time, and clients try again."""
    if isinstance(error, LogError):
        return ErrorCode.KAFKA_STORAGE_ERROR
    return _CODES.get(type(error), ErrorCode.LEADER_NOT_AVAILABLE if error.definite else ErrorCode.REQUEST_TIMED_OUT)


def epoch_fault(leadership: Leadership, epoch: int) -> ErrorCode:
    """Why a request that names an epoch is not served under this leadership; a negative one names none."""
    if epoch < 0 or epoch == leadership.epoch:
        return ErrorCode.NONE
    return ErrorCode.FENCED_LEADER_EPOCH if epoch < leadership.epoch else ErrorCode.UNKNOWN_LEADER_EPOCH
