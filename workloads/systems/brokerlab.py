"""Our own brokers with one of their coordinators, and the service that it needs: started, watched, stopped.

A broker is met as a process, a config file and two ports; nothing of its code is imported here.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING, Any, Final

from workloads.clients.client_files import read_ids
from workloads.clients.process import Client
from workloads.errors import BrokerlabError, UserError
from workloads.processes.process import PortTaken, Process, ProcessFailed
from workloads.services.zookeeper import ZooKeeperServer
from workloads.systems import broker_folders
from workloads.systems.admin import Administered
from workloads.systems.architectures import row_of
from workloads.systems.nodes import Nodes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from workloads.clients.client_files import Ids
    from workloads.systems.api import SystemSetup
    from workloads.systems.broker_folders import Place

SERVICES: Final = {"zookeeper": ZooKeeperServer}
READY_WITHIN_S: Final = 20.0
START_TRIES_MAX: Final = 3
# How a broker ends when its config is refused, and when somebody else has its port (docs/broker.md).
EXIT_CONFIG_REFUSED: Final = 2
EXIT_PORT_IN_USE: Final = 98


class Brokerlab(Administered):
    """A system (`workloads.systems.api`). `broker` is the command that a config file is handed to."""

    broker: Sequence[str] = (sys.executable, "-m", "brokers")

    def __init__(self, setup: SystemSetup) -> None:
        super().__init__()
        self.nodes = Nodes()
        self._setup = setup
        self._row = row_of(setup.architecture)
        self._folder = setup.folder.absolute()  # the same on other hosts
        self.places: list[Place] = []
        self._service: ZooKeeperServer | None = None
        self._service_port = 0
        self._reader: Client | None = None

    # --- life -----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Where somebody took a port in between, others are tried."""
        for attempt in range(1, START_TRIES_MAX + 1):
            try:
                await self._start(fresh_ports=attempt > 1)
            except BaseException as error:
                await self.stop()
                if not isinstance(error, PortTaken) or attempt == START_TRIES_MAX:
                    raise
            else:
                return

    async def _start(self, *, fresh_ports: bool) -> None:
        await self._remove()  # what a killed run left
        self._folder.mkdir(parents=True, exist_ok=True)
        count = 2 * self._setup.settings.brokers + 1
        self._service_port, *of_brokers = broker_folders.ports(
            self._folder, count, keep=self._setup.keep, fresh=fresh_ports
        )
        self.places = broker_folders.places(self._setup, self._folder, of_brokers)
        for carrier in self._setup.topology.carriers:
            self.nodes.put(carrier.name, "network", carrier)
        if not self._setup.keep:  # a cluster to play with is not audited
            await self._log_reader()  # it loads while the brokers start
        if self._row.service is not None:
            await self._start_service(self._row.service)
        try:
            async with asyncio.TaskGroup() as starting:  # where one fails, the others are not waited for
                for place in self.places:
                    starting.create_task(self._start_broker(place))
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None
        self.connect(self.bootstrap("grpc"), self._setup.topology.proxy)

    async def start_again(self, name: str) -> None:
        try:
            if name == self._row.service:
                await self._start_service(name)
            else:
                await self._start_broker(next(place for place in self.places if place.name == name))
        except BrokerlabError:
            await self.nodes.terminate(name)
            raise

    async def _start_service(self, name: str) -> None:
        setup = self._setup
        folder, log, durable = self._folder / name, setup.logs / f"{name}.log", setup.settings.fsync == "always"
        self._service = SERVICES[name](folder, log, self._service_port, setup.topology, fsync=durable)
        try:
            await self._service.start()
        finally:
            if self._service.process is not None:
                self.nodes.put(name, "coordinator", self._service.process, here=setup.topology.is_here(name))

    async def _start_broker(self, place: Place) -> None:
        topology, config = self._setup.topology, self._folder / f"{place.name}.json"
        found = broker_folders.config(place, self.places, self._setup.settings, self._coordinator())
        await topology.put(place.name, {config: json.dumps(found, indent=2)})
        command = topology.inside(place.name, [*self.broker, str(config)])
        process = await Process.start(place.name, command, place.log, spoken_with=True)
        self.nodes.put(place.name, "broker", process, here=topology.is_here(place.name))
        try:
            async with asyncio.timeout(READY_WITHIN_S):
                await process.read_line()  # the one line that a broker says on stdout: that it serves
        except TimeoutError:
            raise ProcessFailed(f"{place.name} was not ready within {READY_WITHIN_S:.0f} s") from None
        except ProcessFailed as failed:
            if failed.code == EXIT_CONFIG_REFUSED:
                raise UserError(f"architecture {self._setup.architecture.name!r}: {failed}") from None
            if failed.code == EXIT_PORT_IN_USE:
                raise PortTaken(str(failed)) from None
            raise

    def _coordinator(self) -> dict[str, Any]:
        """The brokers' coordinator settings: the row's own options, and the address of its service."""
        connect = {} if self._service is None else {"connect": self._service.address}
        return {"name": self._row.coordinator, **dict(self._setup.architecture.options), **connect}

    async def stop(self) -> None:
        await self.disconnect()
        await self.nodes.stop()
        if self._reader is not None:
            await self._reader.process.stop()
        self._service = self._reader = None
        await self._remove()

    async def _remove(self) -> None:
        if not self._setup.keep:
            await self._setup.topology.remove(self._folder)

    # --- clients --------------------------------------------------------------------------------------------

    def bootstrap(self, driver: str) -> Sequence[str]:
        return [f"{place.host}:{place.rpc_port if driver == 'grpc' else place.kafka_port}" for place in self.places]

    # --- what is on the disks -------------------------------------------------------------------------------

    async def stored(self, topic: str, into: Path) -> Mapping[int, Ids]:
        """Read with the brokers' own reader, in a process apart."""
        leaders, lives = await self.leaders(topic), await self.lives(topic)
        places = {place.id: place for place in self.places}
        folders = {
            partition: str(await self._readable(places[leader], topic, lives[leader], partition))
            for partition, leader in leaders.items()
        }
        reader = await self._log_reader()
        await reader.tell(out=str(into.with_suffix(".npz")), partitions=folders)
        await reader.hear("read")
        return read_ids(into)

    async def _readable(self, place: Place, topic: str, life: str, partition: int) -> Path:
        """A partition's folder, or a copy of it on this machine. Raises `TopologyFailed`."""
        into = self._folder / "fetched" / place.name / topic / life
        return await self._setup.topology.fetch(place.name, place.partition_folder(topic, life, partition), into)

    async def _log_reader(self) -> Client:
        if self._reader is None:
            self._reader = await Client.start_reader(self._setup.logs)
        return self._reader
