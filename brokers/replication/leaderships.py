"""The leader, asked of the coordination layer and told to the replica: the only way to a leadership.

Where the metadata lies in this broker the answer is `known` at once. Elsewhere it is looked up, before the request's
turn; what it is worth when the turn has come says `confirmed`, and after a further wait `check`.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from brokers.replication.errors import NotLeader
from coordinators.model import Partition

if TYPE_CHECKING:
    from brokers.replication.replica import Leadership
    from brokers.replication.store import Store
    from coordinators.api import Coordinator, Standing
    from coordinators.model import TopicPartition
    from coordinators.waits.look_ups import Told


class Leaderships:
    """All methods raise `NotLeader`, what `Coordinator.leader` does, and `LogError` where a log cannot be opened."""

    def __init__(self, coordinator: Coordinator, store: Store) -> None:
        self._coordinator = coordinator
        self._store = store
        self._finding: set[asyncio.Task[Partition]] = set()

    def known(self, at: TopicPartition) -> Leadership | None:
        """This broker's leadership; None where `find` has to wait: for a look-up, or for a log that is being opened."""
        partition = self._coordinator.known_leader(at)
        return None if partition is None else self._leadership(at, partition)

    def ask(self, at: TopicPartition, requests: int, told: Told) -> None:
        """`find` for so many requests that came just now: `told` hears the answer or the error."""
        if self._store.opening(at) is None:
            self._coordinator.ask_leader(at, requests, told)
            return
        finding = asyncio.get_running_loop().create_task(self.find(at))
        self._finding.add(finding)
        finding.add_done_callback(self._finding.discard)
        finding.add_done_callback(partial(_tell, told))

    async def find(self, at: TopicPartition) -> Partition:
        """The leader; this broker only once its log is open."""
        leader = await self._looked_up(at)
        if leader.leader == self._coordinator.me.id and self._store.opening(at) is not None:
            await self._store.opened(at)
            leader = await self._looked_up(at)  # it may have moved during the wait
        return leader

    def confirmed(self, at: TopicPartition, found: Partition, standing: Standing) -> Leadership | None:
        """The present value of an answer of `find` that was asked for at `standing`; None: ask for it again."""
        partition = self._coordinator.confirmed(at, found, standing)
        return None if partition is None else self._leadership(at, partition)

    async def now(self, at: TopicPartition) -> Leadership:
        """The leadership of this moment, asked for as often as that takes."""
        while True:
            standing = self._coordinator.standing
            leadership = self.confirmed(at, await self.find(at), standing)
            if leadership is not None:
                return leadership

    def check(self, leadership: Leadership, tenure: int) -> None:
        """After a while, at whose beginning `tenure` was that of `standing`: whether the leadership goes on. Raises
        `UnknownTopic` too."""
        replica = leadership.replica
        if self._store.partition(*replica.at) is replica:  # else its topic was deleted, and may exist again
            partition = self._coordinator.known_leader(replica.at)
            if partition is not None:
                replica.hear(partition)
            elif tenure != self._coordinator.standing.tenure:
                raise NotLeader(f"{replica.name} may have passed to another broker")
        leadership.check_goes_on()

    async def _looked_up(self, at: TopicPartition) -> Partition:
        found = self._coordinator.leader(at)
        return found if isinstance(found, Partition) else await found

    def _leadership(self, at: TopicPartition, partition: Partition) -> Leadership | None:
        """None where its log is still being opened."""
        replica = self._store.partition(*at)
        if replica is not None:
            return replica.lead(partition, self._coordinator.serves)
        opening = self._store.opening(at)
        if partition.leader != self._coordinator.me.id or opening is None:
            raise NotLeader(f"{at.topic}-{at.partition} is led by broker {partition.leader}")
        if opening.error is not None:
            raise opening.error
        return None


def _tell(told: Told, done: asyncio.Future[Partition]) -> None:
    if not done.cancelled():
        told(done.exception() or done.result())
