"""The system under test: what the instrument asks of whatever it drives, measures and audits.

A system is met as processes, addresses and topics. Which systems there are: `registry.py`; which ways to coordinate
each of them has, and what experiments.yaml may say of one: `architectures.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from workloads.errors import BrokerlabError
from workloads.topology.api import Loopback, Topology

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from workloads.clients.client_files import Ids
    from workloads.clients.drivers.api import BrokerStatistics
    from workloads.spec.settings import Architecture, ClusterSettings
    from workloads.systems.nodes import Nodes


class SystemUnready(BrokerlabError):
    """A system, or a service of its, did not answer in time."""


@dataclass(frozen=True, slots=True)
class SystemSetup:
    """The setup of a system. `folder` is its alone; logs go to `logs` and stay.

    The folder goes when the system stops, unless `keep`: then data stays, and the next start has it and the same ports.
    """

    architecture: Architecture
    settings: ClusterSettings
    folder: Path
    logs: Path
    topology: Topology = field(default_factory=Loopback)  # it has been started, and outlives the system
    keep: bool = False


class System(Protocol):
    """A cluster of one architecture. Everything but `start`, `stop` and `nodes` is asked only while it runs.

    A system leaves out a number that it cannot tell (no process, no statistics, None); it never answers with a zero.
    """

    # --- life -----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Return when every broker serves. A failed start leaves nothing behind.

        Raises `UserError` where a setting is refused or something is missing that the user can mend; `ProcessFailed`,
        `SystemUnready`, `NoFreePort` and `TopologyFailed` where it does not come up.
        """

    async def stop(self) -> None:
        """End everything that was started, what is paused too. Safe to call twice and after a failed start."""

    @property
    def nodes(self) -> Nodes:
        """The processes, by names that a topology knows as places: `broker-1`, `broker-2`, ..., and a service by its
        own name (`zookeeper`). Roles: `broker`, `coordinator`, `network`. Empty for a system that somebody else runs.

        One of them is killed, paused, resumed and terminated through this.
        """

    async def start_again(self, name: str) -> None:
        """Start a node that has ended, at its place and with its data. Returns when it serves.

        Raises as `start`, and `PortTaken`; then it does not run.
        """

    # --- clients --------------------------------------------------------------------------------------------

    def bootstrap(self, driver: str) -> Sequence[str]:
        """The addresses that a driver's clients are given; empty for a driver that the system does not serve, which a
        file cannot ask for (`Row.drivers`)."""

    # --- topics ---------------------------------------------------------------------------------------------

    async def create_topic(self, topic: str, partitions: int, replication_factor: int, fetch_records_max: int) -> None:
        """Make a topic and return when every broker knows it. `fetch_records_max` bounds a fetch where a broker can
        bound it; 0 is no bound. Raises `DriverError`."""

    async def delete_topic(self, topic: str) -> None:
        """Delete a topic and return when no broker knows it. Raises `DriverError`."""

    async def end_offsets(self, topic: str) -> Mapping[int, int]:
        """Partition -> offset behind its last message, as its leader says. Raises `DriverError`."""

    async def leaders(self, topic: str) -> Mapping[int, int]:
        """Partition -> id of the broker that leads it: broker 2 is the node `broker-2`. Raises `DriverError`."""

    # --- what happened inside -------------------------------------------------------------------------------

    async def statistics(self) -> Sequence[BrokerStatistics]:
        """The brokers' own counters since their start; empty where a system has none. Raises `DriverError`."""

    async def stored(self, topic: str, into: Path) -> Mapping[int, Ids] | None:
        """Partition -> ids of its messages in the order of the log, read off the leaders' disks and not through the
        path that was measured. `into` is a name, in a folder for passing files, that nobody else uses.

        None where the disk cannot be read: then the audit fetches the topic once more, after the window. Raises
        `DriverError`, `ProcessFailed`, `ClientFailed`, `TopologyFailed`.
        """
