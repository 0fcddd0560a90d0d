"""Which topology settings ask for, and whether this machine can have it."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from workloads.spec.settings import Rtt
from workloads.topology.api import Loopback, Topology
from workloads.topology.hosts import OtherHosts
from workloads.topology.namespaces import Namespaces
from workloads.topology.places import RUNNER, ZOOKEEPER, place_names

if TYPE_CHECKING:
    from collections.abc import Iterable

    from workloads.spec.settings import ClusterSettings, Hosts


def topology_of(settings: ClusterSettings, producers: int, consumers: int, hosts: Hosts | None) -> Topology:
    """Where the processes of such a cluster live; it is yet to be started."""
    if settings.topology == "namespaces":
        return Namespaces(place_names(settings.brokers, producers, consumers), settings.rtt_ms)
    if settings.topology == "hosts":
        assert hosts is not None, "a spec that wants hosts names them"
        return OtherHosts(hosts)
    return Loopback()


async def refuse_unavailable(clusters: Iterable[ClusterSettings], hosts: Hosts | None = None) -> None:
    """Try what these need, on a small scale, before anything else is started. Raises `TopologyUnavailable`."""
    wanted = {settings.topology for settings in clusters}
    if "hosts" in wanted and hosts is not None:
        await OtherHosts(hosts).check()
    if "namespaces" in wanted:
        topology = Namespaces([RUNNER, ZOOKEEPER, "broker-1"], Rtt(broker_zookeeper=1))
        with TemporaryDirectory(prefix="brokerlab-") as logs:
            try:
                await topology.start(Path(logs))
            finally:
                await topology.stop()


async def remove_everywhere(folder: Path, hosts: Hosts | None) -> None:
    """Remove a folder here and, where there are any, on the other hosts."""
    topology: Topology = Loopback() if hosts is None else OtherHosts(hosts)
    await topology.remove(folder)
