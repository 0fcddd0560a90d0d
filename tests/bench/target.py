"""A cluster that is measured: three brokers of ours, or a peer that somebody else has started."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from workloads.console import connection, topics
from workloads.errors import UserError
from workloads.measure.resources import reset_peak, usage_of
from workloads.systems.admin import Admin

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PARTITIONS: Final = 3
_PROC: Final = Path("/proc")
_LISTENS: Final = "0A"  # a TCP state, as the kernel writes it


@dataclass(frozen=True, slots=True)
class Requests:
    """What brokers counted since their start."""

    requests: int
    messages: int

    def since(self, earlier: Requests) -> Requests:
        return Requests(self.requests - earlier.requests, self.messages - earlier.messages)

    @property
    def messages_each(self) -> float | None:
        return self.messages / self.requests if self.messages else None


class Target:
    def __init__(
        self,
        name: str,
        bootstrap: Sequence[str],
        pids: Sequence[int],
        topic_config: Mapping[str, str],
        admin: Admin | None,
    ) -> None:
        self.name = name
        self.bootstrap = tuple(bootstrap)
        self.pids = tuple(pids)
        self._cluster = connection.Cluster(bootstrap)
        self._topic_config = topic_config
        self._admin = admin

    async def create_topic(self, topic: str) -> None:
        await asyncio.to_thread(topics.create, self._cluster, topic, PARTITIONS, 1, self._topic_config)

    async def delete_topic(self, topic: str) -> None:
        await asyncio.to_thread(topics.delete, self._cluster, topic)

    async def end_offsets(self, topic: str) -> dict[int, int]:
        found = await asyncio.to_thread(topics.describe, self._cluster, topic)
        return {row.partition: row.end_offset for row in found.partitions}

    async def requests(self, operation: str) -> Requests | None:
        """Requests that carried messages; None where the brokers do not tell."""
        if self._admin is None:
            return None
        counts = [broker.operations[operation] for broker in await self._admin.statistics()]
        return Requests(sum(count[0] for count in counts), sum(count[1] for count in counts))

    def cpu_s(self) -> float:
        """Of all brokers together, since their start."""
        usages = [usage_of(pid) for pid in self.pids]
        return sum(usage.cpu_user_s + usage.cpu_system_s for usage in usages)

    def reset_memory(self) -> None:
        for pid in self.pids:
            reset_peak(pid)

    def memory_bytes_max(self) -> list[int]:
        """Highest resident memory of each broker."""
        return [usage_of(pid).rss_max_bytes for pid in self.pids]


def peer(address: str, message_bytes_max: int) -> Target:
    """A Kafka cluster on this machine. Raises `UserError` where nobody answers or its processes cannot be seen."""
    brokers = connection.Cluster(address.split(",")).brokers().values()
    bootstrap = [broker.bootstrap for broker in brokers]
    pids = [_listener(int(each.rpartition(":")[2])) for each in bootstrap]
    return Target("peer", bootstrap, list(dict.fromkeys(pids)), {"max.message.bytes": str(message_bytes_max)}, None)


def _listener(port: int) -> int:
    """The process that listens on a port of this machine, whose CPU time is wanted. Raises `UserError`."""
    sockets = {f"socket:[{inode}]" for inode in _listening_inodes(port)}
    for folder in _PROC.glob("[0-9]*"):
        try:
            if any(str(link.readlink()) in sockets for link in (folder / "fd").iterdir()):
                return int(folder.name)
        except OSError:  # it ended, or is somebody else's
            continue
    raise UserError(f"no process of this machine that listens on port {port} can be seen; a peer must run here")


def _listening_inodes(port: int) -> list[str]:
    rows = [line.split() for table in ("tcp", "tcp6") for line in (_PROC / "net" / table).read_text().splitlines()[1:]]
    return [row[9] for row in rows if row[3] == _LISTENS and int(row[1].rpartition(":")[2], 16) == port]
