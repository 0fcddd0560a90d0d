"""The parts that every connection of the Kafka listener works with."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

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
    from collections.abc import Callable, Mapping, Sequence

    from brokers.config import TopicDefaults
    from brokers.groups.groups import Groups
    from brokers.listeners.config import ListenerLimits
    from brokers.metrics import Metrics
    from brokers.replication.leaderships import Leaderships
    from brokers.topics import TopicAdmin
    from brokers.wire.budget import Budget
    from coordinators.api import Coordinator
    from coordinators.model import TopicPartition

CLUSTER_ID: Final = "brokerlab"
REFUSALS: Final = (CoordinationError, ReplicaError, LogError)


class Leaders(Protocol):
    """Who answers for partitions: the service itself, or a look-up that is over."""

    def known_leader(self, at: TopicPartition) -> Leadership | ErrorCode | None: ...


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
        """This broker's leadership, or why there is none; None where a `LookUp` waits: for an answer, or for a log that
        is still being opened."""
        try:
            return self.leaderships.known(at)
        except REFUSALS as error:
            return code_of(error)

    async def leaders_now(self, wanted: Sequence[TopicPartition]) -> list[Leadership | ErrorCode]:
        """Leaders of this moment, asked for as often as that takes."""
        leaders: Leaders = self
        while True:
            found = {at: leaders.known_leader(at) for at in wanted}
            missing = dict.fromkeys((at for at, leader in found.items() if leader is None), 1)
            if not missing:
                return [leader for at in wanted if (leader := found[at]) is not None]
            leaders = await self._looked_up(missing)

    async def _looked_up(self, named: Mapping[TopicPartition, int]) -> LookUp:
        over = asyncio.Event()
        look_up = LookUp(self, named, over.set)
        await over.wait()
        if look_up.fault is not None:
            raise look_up.fault
        return look_up

    def leads_still(self, leadership: Leadership, tenure: int) -> ErrorCode:
        """Whether a leadership goes on that was answered at `tenure`; if not, why."""
        try:
            self.leaderships.check(leadership, tenure)
        except REFUSALS as error:
            return code_of(error)
        return ErrorCode.NONE


class LookUp:
    """Leaders that requests of one read need, asked for together before their turn; `named` says how many of them name
    each partition. `told` is called when all answers are there. `fault` is an error that nobody thought of."""

    __slots__ = ("_found", "_left", "_service", "_standing", "_told", "fault")

    def __init__(self, service: Service, named: Mapping[TopicPartition, int], told: Callable[[], None]) -> None:
        self._service = service
        self._standing = service.coordinator.standing
        self._found: dict[TopicPartition, Partition | ErrorCode] = {}
        self._left = len(named)
        self._told = told
        self.fault: BaseException | None = None
        for at, requests in named.items():
            service.leaderships.ask(at, requests, partial(self._hear, at))

    def _hear(self, at: TopicPartition, found: Partition | BaseException) -> None:
        if isinstance(found, Partition):
            self._found[at] = found
        elif isinstance(found, REFUSALS):
            self._found[at] = code_of(found)
        else:
            self.fault = found
        self._left -= 1
        if not self._left:
            self._told()

    @property
    def over(self) -> bool:
        return not self._left

    def known_leader(self, at: TopicPartition) -> Leadership | ErrorCode | None:
        """The present value of the answer, now that the requests have their turn; None: ask again. That one was refused
        stays so."""
        found = self._found.get(at)
        if found is None:
            return self._service.known_leader(at)
        if not isinstance(found, Partition):
            return found
        try:
            return self._service.leaderships.confirmed(at, found, self._standing)
        except REFUSALS as error:
            return code_of(error)


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
