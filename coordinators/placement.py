"""Where partitions and consumer groups go. Pure, and the same rules in every architecture, so that placement never
makes one of them faster: the same topic lies on the same brokers whoever decides."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Final
from zlib import crc32

from coordinators.errors import NotEnoughBrokers, Unavailable
from coordinators.model import Partition

if TYPE_CHECKING:
    from collections.abc import Collection

HOMES_REMEMBERED_MAX: Final = 4096


def place(topic: str, partitions: int, replication_factor: int, broker_ids: Collection[int]) -> tuple[Partition, ...]:
    """Partitions of a new topic, leaders round robin from a place that the topic's name decides, as `new_partition`."""
    if replication_factor > len(broker_ids):
        raise NotEnoughBrokers(
            f"topic {topic!r}: replication factor {replication_factor} needs as many brokers, and there are "
            f"{len(broker_ids)}"
        )
    ring = sorted(broker_ids)
    start = crc32(topic.encode())
    return tuple(
        new_partition(tuple(ring[(start + number + step) % len(ring)] for step in range(replication_factor)))
        for number in range(partitions)
    )


def new_partition(replicas: tuple[int, ...]) -> Partition:
    """The first replica leads at epoch 0, and it alone is in sync: nobody else has copied anything yet."""
    return Partition(replicas=replicas, leader=replicas[0], epoch=0, in_sync=replicas[:1])


def group_succession(group: str, broker_ids: Collection[int]) -> tuple[int, ...]:
    """Brokers in the order in which they serve a consumer group: each where those before it are not live.

    By highest random weight, so that a broker that comes or goes moves only its own groups.
    """
    return tuple(sorted(broker_ids, key=lambda broker_id: _weight(group, broker_id), reverse=True))


def group_home(group: str, broker_ids: Collection[int]) -> int:
    """The broker that serves a consumer group."""
    return max(broker_ids, key=lambda broker_id: _weight(group, broker_id))


class GroupHomes:
    """The homes of groups, as they are while the live brokers stay the same; so many are remembered."""

    def __init__(self) -> None:
        self._homes: dict[str, int] = {}
        self._among: Collection[int] | None = None

    def of(self, group: str, broker_ids: Collection[int]) -> int:
        """Raises `Unavailable` where no live broker is known."""
        if broker_ids is not self._among:
            self._homes, self._among = {}, broker_ids
        home = self._homes.get(group)
        if home is None:
            if not broker_ids:
                raise Unavailable("no live broker is known")
            if len(self._homes) == HOMES_REMEMBERED_MAX:
                self._homes.clear()
            home = self._homes[group] = group_home(group, broker_ids)
        return home


def _weight(group: str, broker_id: int) -> bytes:
    return blake2b(f"{broker_id}:{group}".encode(errors="surrogatepass"), digest_size=8).digest()
