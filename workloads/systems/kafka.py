"""Apache Kafka as a system under test (`workloads.systems.api`): its nodes, in KRaft or with a ZooKeeper beside them.

All of it is on this machine (`topology: loopback`): Kafka's admin API is the only way in, and a client of it goes where
the brokers say that they are.
"""

from __future__ import annotations

import asyncio
from shutil import rmtree
from typing import TYPE_CHECKING, Final

from workloads.console.connection import Cluster, NoAnswer
from workloads.errors import UserError
from workloads.processes.java import find_java
from workloads.processes.ports import free_ports
from workloads.processes.process import PortTaken, Process, ProcessFailed
from workloads.services.zookeeper import NAME as ZOOKEEPER
from workloads.services.zookeeper import ZooKeeperServer
from workloads.systems.api import SystemUnready
from workloads.systems.architectures import row_of
from workloads.systems.kafka_jars import VERSIONS, jars
from workloads.systems.kafka_nodes import KafkaNode, cluster_id, java, properties, written
from workloads.systems.kafka_protocol import KafkaProtocol
from workloads.systems.nodes import Nodes
from workloads.topology.api import LOOPBACK

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from workloads.systems.api import SystemSetup

READY_WITHIN_S: Final = 120.0
READY_POLL_S: Final = 0.05
START_TRIES_MAX: Final = 3
_PORT_TAKEN: Final = b"Address already in use"
# A broker that was killed stays a member until its session with ZooKeeper is over, and nobody else may be it before.
_STILL_MEMBER: Final = b"NodeExists"


class Kafka(KafkaProtocol):
    """Its brokers are the nodes `broker-N`; in KRaft each of them is a controller too."""

    def __init__(self, setup: SystemSetup) -> None:
        if setup.keep:
            raise UserError(
                f"{setup.architecture.name!r} is Apache Kafka, which runs in experiments alone; a cluster to play with "
                "is Brokerlab's own, or somebody else's"
            )
        self.nodes = Nodes()
        self._setup = setup
        self._folder = setup.folder.absolute()
        self._has_zookeeper = row_of(setup.architecture).service == ZOOKEEPER
        self._jars = self._folder  # until it starts
        self._brokers: list[KafkaNode] = []
        self._zookeeper: ZooKeeperServer | None = None

    # --- life -----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        version = VERSIONS["kafka-zookeeper" if self._has_zookeeper else "kafka-kraft"]
        self._jars = await asyncio.to_thread(jars, version)
        for attempt in range(1, START_TRIES_MAX + 1):
            try:
                async with asyncio.timeout(READY_WITHIN_S):
                    await self._start()
            except BaseException as error:
                await self.stop()
                if isinstance(error, TimeoutError):
                    raise SystemUnready(f"Kafka was not ready within {READY_WITHIN_S:.0f} s") from None
                if not isinstance(error, PortTaken) or attempt == START_TRIES_MAX:
                    raise
            else:
                return

    async def _start(self) -> None:
        rmtree(self._folder, ignore_errors=True)  # what a killed run left
        self._folder.mkdir(parents=True)
        zookeeper_port, *ports = free_ports(2 * self._setup.settings.brokers + 1)
        self._brokers = [
            KafkaNode(number, LOOPBACK, *pair, self._folder / f"broker-{number}", self._log(f"broker-{number}"))
            for number, pair in enumerate(zip(ports[::2], ports[1::2], strict=True), start=1)
        ]
        if self._has_zookeeper:
            folder, durable = self._folder / ZOOKEEPER, self._setup.settings.fsync == "always"
            self._zookeeper = ZooKeeperServer(folder, self._log(ZOOKEEPER), zookeeper_port, fsync=durable)
            await self._start_zookeeper()
        self._configure()
        if not self._has_zookeeper:
            await self._format()
        for broker in self._brokers:
            await self._start_broker(broker)
        await self._serving(self._brokers)

    def _log(self, name: str) -> Path:
        return self._setup.logs / f"{name}.log"

    def _configure(self) -> None:
        address = None if self._zookeeper is None else self._zookeeper.address
        self._setup.logs.mkdir(parents=True, exist_ok=True)
        for broker in self._brokers:
            broker.config.write_text(written(properties(broker, self._brokers, self._setup.settings, address)))

    async def _format(self) -> None:
        """Make each node's storage, which KRaft wants to find. Raises `ProcessFailed` with what Kafka says."""
        cluster, tools = cluster_id(), []
        for broker in self._brokers:
            command = [*self._java(), "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(broker.config)]
            tools.append(await Process.start(f"format-{broker.id}", command, self._log(f"format-{broker.id}")))
        try:
            for tool in tools:
                await tool.ended()
                if (failure := tool.failure()).code != 0:
                    raise failure
        finally:
            for tool in tools:
                await tool.stop()

    def _java(self, log: Path | None = None) -> list[str]:
        heap_mb = int(dict(self._setup.architecture.options)["heap_mb"])
        return java(find_java().command, self._jars, heap_mb, log)

    async def _start_broker(self, broker: KafkaNode) -> None:
        command = [*self._java(broker.log), "kafka.Kafka", str(broker.config)]
        self.nodes.put(broker.name, "broker", await Process.start(broker.name, command, broker.log))

    async def _start_zookeeper(self) -> None:
        assert self._zookeeper is not None, "only where there is one"
        try:
            await self._zookeeper.start()
        finally:
            if self._zookeeper.process is not None:
                self.nodes.put(ZOOKEEPER, "coordinator", self._zookeeper.process)

    async def _serving(self, brokers: Sequence[KafkaNode]) -> None:
        """Wait until each of these knows as many brokers as run. Raises `PortTaken`, `ProcessFailed` where one ends."""
        running = sum(self.nodes[broker.name].running for broker in self._brokers)
        for broker in brokers:
            while not await asyncio.to_thread(_knows, broker, running):
                for each in brokers:
                    if not self.nodes[each.name].running:
                        raise self._failure(each)
                await asyncio.sleep(READY_POLL_S)

    def _failure(self, broker: KafkaNode) -> ProcessFailed:
        failure = self.nodes[broker.name].failure()
        return PortTaken(str(failure)) if _PORT_TAKEN in broker.log.read_bytes() else failure

    async def start_again(self, name: str) -> None:
        try:
            async with asyncio.timeout(READY_WITHIN_S):
                if name == ZOOKEEPER:
                    await self._start_zookeeper()
                else:
                    await self._enter(next(broker for broker in self._brokers if broker.name == name))
        except TimeoutError:
            await self.nodes.terminate(name)
            raise SystemUnready(f"{name} was not ready within {READY_WITHIN_S:.0f} s") from None
        except ProcessFailed:
            await self.nodes.terminate(name)
            raise

    async def _enter(self, broker: KafkaNode) -> None:
        """Start a broker, again and again while ZooKeeper takes its last life for a member."""
        while True:
            said_before = broker.log.stat().st_size
            await self._start_broker(broker)
            try:
                return await self._serving([broker])
            except ProcessFailed:
                if _STILL_MEMBER not in broker.log.read_bytes()[said_before:]:
                    raise

    async def stop(self) -> None:
        """The data goes anyway, and a node that has lost its quorum would take minutes to end by itself."""
        for _, process in self.nodes.processes.values():
            process.kill()
        await self.nodes.stop()
        rmtree(self._folder, ignore_errors=True)

    # --- clients --------------------------------------------------------------------------------------------

    def bootstrap(self, driver: str) -> Sequence[str]:
        return [broker.address for broker in self._brokers]

    @property
    def cluster(self) -> Cluster:
        return Cluster([broker.address for broker in self._brokers if self.nodes[broker.name].running])


def _knows(broker: KafkaNode, brokers: int) -> bool:
    try:
        return len(Cluster([broker.address]).brokers()) >= brokers
    except NoAnswer:
        return False
