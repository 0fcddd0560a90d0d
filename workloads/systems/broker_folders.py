"""Where the brokers of ours are: ports, folders, and the config file that tells each of it (docs/broker.md)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from workloads.processes.ports import free_ports
from workloads.results import write_atomically

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from workloads.spec.settings import ClusterSettings
    from workloads.systems.api import SystemSetup

PORTS: Final = "ports.json"


@dataclass(frozen=True, slots=True)
class Place:
    """A broker's: its id, address, ports, folder and log."""

    id: int
    host: str
    kafka_port: int
    rpc_port: int
    data: Path
    log: Path

    @property
    def name(self) -> str:
        return f"broker-{self.id}"

    def partition_folder(self, topic: str, life: str, partition: int) -> Path:
        """Where the broker keeps a partition, on its machine."""
        return self.data / "logs" / topic / life / str(partition)


def places(setup: SystemSetup, folder: Path, ports: Sequence[int]) -> list[Place]:
    """A place for each broker, with two of the ports."""
    found = []
    for number, (kafka, rpc) in enumerate(zip(ports[::2], ports[1::2], strict=True), start=1):
        name = f"broker-{number}"
        host = setup.topology.address(name)
        found.append(Place(number, host, kafka, rpc, folder / name, setup.logs / f"{name}.log"))
    return found


def ports(folder: Path, count: int, *, keep: bool, fresh: bool) -> list[int]:
    """Those of the life before, where it left any and they are not to be `fresh`; `keep` writes them down."""
    kept = folder / PORTS
    if keep and not fresh and kept.exists():
        found: list[int] = json.loads(kept.read_text())
        assert len(found) == count, f"{kept} is of another number of brokers"
        return found
    found = free_ports(count)
    if keep:
        write_atomically(kept, json.dumps(found).encode())
    return found


def config(
    me: Place, everyone: Sequence[Place], settings: ClusterSettings, coordinator: Mapping[str, Any]
) -> dict[str, Any]:
    """A broker's config file."""
    fsync: dict[str, Any] = {"fsync": settings.fsync}
    if settings.fsync_interval_ms is not None:
        fsync["fsync_interval_ms"] = settings.fsync_interval_ms
    return {
        "broker": me.id,
        "brokers": [
            {"id": peer.id, "host": peer.host, "kafka_port": peer.kafka_port, "rpc_port": peer.rpc_port}
            for peer in everyone
        ],
        "data_dir": str(me.data),
        "coordinator": dict(coordinator),
        "log": fsync,
        "limits": {"gather_ms": settings.gather_ms},
    }
