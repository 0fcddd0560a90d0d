"""A cluster of broker processes and what they coordinate through: started, watched, stopped.

A broker is met as a process, a config file and two ports; nothing of its code is imported here.
"""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from workloads.errors import BrokerlabError, UserError
from workloads.processes.ports import free_ports
from workloads.processes.process import PortTaken, Process, ProcessFailed
from workloads.results import write_atomically
from workloads.services.zookeeper import NAME as ZOOKEEPER
from workloads.services.zookeeper import ZooKeeperServer
from workloads.topology.api import Loopback

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from workloads.spec.settings import Architecture, ClusterSettings
    from workloads.topology.api import Topology

READY_WITHIN_S: Final = 20.0
START_TRIES_MAX: Final = 3
# How a broker ends when its config is refused, and when somebody else has its port (docs/broker.md).
EXIT_CONFIG_REFUSED: Final = 2
EXIT_PORT_IN_USE: Final = 98
PORTS: Final = "ports.json"


@dataclass(frozen=True, slots=True)
class Node:
    """A broker's place: its id, ports, folder and log."""

    id: int
    kafka_port: int
    rpc_port: int
    data: Path
    log: Path

    @property
    def name(self) -> str:
        return f"broker-{self.id}"


class Cluster:
    """Brokers of one architecture. `folder` is theirs alone; logs go to `logs` and stay.

    The folder goes when they stop, unless `keep`: then its data stays, and the next start has it and the same ports.
    """

    def __init__(
        self,
        architecture: Architecture,
        settings: ClusterSettings,
        folder: Path,
        logs: Path,
        *,
        topology: Topology | None = None,
        keep: bool = False,
    ) -> None:
        self._architecture = architecture
        self._settings = settings
        self._folder = folder.absolute()  # the same on other hosts
        self._logs = logs
        self._topology = topology or Loopback()  # where everybody is; it has been started, and outlives the cluster
        self._keep = keep
        self._nodes: list[Node] = []
        self._brokers: dict[int, Process] = {}
        self._zookeeper: ZooKeeperServer | None = None

    async def start(self) -> None:
        """Return when every broker serves. Tries other ports where somebody took one in between.

        Raises `UserError` where a broker refuses its config, `ProcessFailed` where one ends, with what it said.
        """
        for attempt in range(1, START_TRIES_MAX + 1):
            try:
                await self._start(self._ports(fresh=attempt > 1))
            except BaseException as error:
                await self.stop()
                if not isinstance(error, PortTaken) or attempt == START_TRIES_MAX:
                    raise
            else:
                return

    async def _start(self, ports: Sequence[int]) -> None:
        await self._remove()  # what a killed run left
        self._folder.mkdir(parents=True, exist_ok=True)
        self._nodes = self._placed(ports)
        if self._keep:
            write_atomically(self._folder / PORTS, json.dumps(ports).encode())
        await self._start_coordination()
        try:
            async with asyncio.TaskGroup() as starting:  # where one fails, the others are not waited for
                for node in self._nodes:
                    starting.create_task(self._start_broker(node))
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None

    def _ports(self, *, fresh: bool) -> list[int]:
        """Those of the life before, where it left any and they are not to be `fresh`."""
        count = 2 * self._settings.brokers + 1
        kept = self._folder / PORTS
        if fresh or not self._keep or not kept.exists():
            return free_ports(count)
        found: list[int] = json.loads(kept.read_text())
        assert len(found) == count, f"{kept} is of another number of brokers"
        return found

    def _placed(self, ports: Sequence[int]) -> list[Node]:
        self._zookeeper_port, *of_brokers = ports
        pairs = zip(of_brokers[::2], of_brokers[1::2], strict=True)
        return [self._node(number, kafka, rpc) for number, (kafka, rpc) in enumerate(pairs, start=1)]

    def _node(self, number: int, kafka_port: int, rpc_port: int) -> Node:
        name = f"broker-{number}"
        return Node(number, kafka_port, rpc_port, self._folder / name, self._log(name))

    def _log(self, name: str) -> Path:
        return self._logs / f"{name}.log"

    async def start_again(self, name: str) -> None:
        """Start a process of `names` that has ended, at its place and with its data. Raises as `start`, and
        `PortTaken`; then it does not run."""
        try:
            if name == ZOOKEEPER:
                await self._start_coordination()
            else:
                await self._start_broker(next(node for node in self._nodes if node.name == name))
        except BrokerlabError:
            await self.processes[name][1].stop()
            raise

    @property
    def names(self) -> list[str]:
        """Of all that serve, whether or not they run."""
        zookeeper = [ZOOKEEPER] if self._architecture.coordinator == "zookeeper" else []
        return [*(node.name for node in self._nodes), *zookeeper]

    async def _start_coordination(self) -> None:
        if self._architecture.coordinator == "zookeeper":
            folder, log = self._folder / ZOOKEEPER, self._log(ZOOKEEPER)
            self._zookeeper = ZooKeeperServer(
                folder, log, self._zookeeper_port, self._topology, fsync=self._settings.fsync == "always"
            )
            await self._zookeeper.start()

    async def _start_broker(self, node: Node) -> None:
        config = self._folder / f"{node.name}.json"
        await self._topology.put(node.name, {config: json.dumps(self._config(node), indent=2)})
        command = self._topology.inside(node.name, [sys.executable, "-m", "brokers", str(config)])
        process = await Process.start(node.name, command, node.log, spoken_with=True)
        self._brokers[node.id] = process
        try:
            async with asyncio.timeout(READY_WITHIN_S):
                await process.read_line()  # the one line that a broker says on stdout: that it serves
        except TimeoutError:
            raise ProcessFailed(f"{node.name} was not ready within {READY_WITHIN_S:.0f} s") from None
        except ProcessFailed as failed:
            if failed.code == EXIT_CONFIG_REFUSED:
                raise UserError(f"architecture {self._architecture.name!r}: {failed}") from None
            if failed.code == EXIT_PORT_IN_USE:
                raise PortTaken(str(failed)) from None
            raise

    def _config(self, node: Node) -> dict[str, Any]:
        fsync: dict[str, Any] = {"fsync": self._settings.fsync}
        if self._settings.fsync_interval_ms is not None:
            fsync["fsync_interval_ms"] = self._settings.fsync_interval_ms
        return {
            "broker": node.id,
            "brokers": [
                {"id": peer.id, "host": self._host(peer), "kafka_port": peer.kafka_port, "rpc_port": peer.rpc_port}
                for peer in self._nodes
            ],
            "data_dir": str(node.data),
            "coordinator": self._coordinator(),
            "log": fsync,
        }

    def _coordinator(self) -> dict[str, Any]:
        chosen = self._architecture
        options = {
            "metadata": chosen.metadata,
            "offsets": chosen.offsets,
            "offsets_interval_ms": chosen.offsets_interval_ms,
            "connect": None if self._zookeeper is None else self._zookeeper.address,
        }
        return {"name": chosen.coordinator, **{name: value for name, value in options.items() if value is not None}}

    @property
    def rpc_addresses(self) -> list[str]:
        return [f"{self._host(node)}:{node.rpc_port}" for node in self._nodes]

    @property
    def kafka_addresses(self) -> list[str]:
        return [f"{self._host(node)}:{node.kafka_port}" for node in self._nodes]

    def _host(self, node: Node) -> str:
        return self._topology.address(node.name)

    def partition_folder(self, broker: int, topic: str, life: str, partition: int) -> Path:
        """Where a broker keeps a partition (docs/broker.md), on its machine."""
        return self._node_of(broker).data / "logs" / topic / life / str(partition)

    async def readable_partition(self, broker: int, topic: str, life: str, partition: int) -> Path:
        """The same, or a copy of it on this machine. Raises `TopologyFailed`."""
        name = self._node_of(broker).name
        kept = self.partition_folder(broker, topic, life, partition)
        return await self._topology.fetch(name, kept, self._folder / "fetched" / name / topic / life)

    def _node_of(self, broker: int) -> Node:
        return next(node for node in self._nodes if node.id == broker)

    @property
    def processes(self) -> Mapping[str, tuple[str, Process]]:
        """Name -> (role, process) of everything that serves, and of what carries packets between them."""
        found = {process.name: ("broker", process) for process in self._brokers.values()}
        found |= {process.name: ("network", process) for process in self._topology.carriers}
        if self._zookeeper is not None and self._zookeeper.process is not None:
            found[ZOOKEEPER] = ("coordinator", self._zookeeper.process)
        return found

    @property
    def processes_here(self) -> Mapping[str, tuple[str, Process]]:
        """Those of `processes` that run on this machine, so that their costs can be read."""
        return {name: found for name, found in self.processes.items() if self._topology.is_here(name)}

    async def failed(self) -> ProcessFailed:
        """Wait until one of the processes ends, and say which and how."""
        watches = {asyncio.create_task(p.ended()): p for _, p in self.processes.values()}
        try:
            done, _ = await asyncio.wait(watches, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for watch in watches:
                watch.cancel()
        return watches[done.pop()].failure()

    async def stop(self) -> None:
        """Stop everything, what is paused too, and remove the folder unless it is to be kept. Safe to call twice."""
        for _, process in self.processes.values():
            process.resume()  # it hears of nothing before
        await asyncio.gather(*(broker.stop() for broker in self._brokers.values()))
        if self._zookeeper is not None:
            await self._zookeeper.stop()
        self._brokers = {}
        self._zookeeper = None
        await self._remove()

    async def _remove(self) -> None:
        if not self._keep:
            await self._topology.remove(self._folder)


class ClientFailed(BrokerlabError):
    """A client process could not do its job; the message says why."""


class Client:
    """A process that works for the runner, spoken with in lines of JSON (`workloads.clients.client`)."""

    def __init__(self, name: str, role: str, process: Process) -> None:
        self.name = name
        self.role = role
        self.process = process

    @classmethod
    async def start(cls, role: str, number: int, drivers: Sequence[str], logs: Path, topology: Topology) -> Client:
        name = f"{role}-{number}"
        command = [sys.executable, "-m", "workloads.clients.client", *drivers]
        return await cls._start(name, role, topology.inside(name, command), logs)

    @classmethod
    async def start_reader(cls, logs: Path) -> Client:
        """The one that reads logs off the disk for the audit."""
        return await cls._start("log-reader", "reader", [sys.executable, "-m", "brokers.readback"], logs)

    @classmethod
    async def _start(cls, name: str, role: str, command: Sequence[str], logs: Path) -> Client:
        return cls(name, role, await Process.start(name, command, logs / f"{name}.log", spoken_with=True))

    async def tell(self, **message: object) -> None:
        await self.process.write_line(json.dumps(message).encode())

    async def hear(self, word: str) -> Any:
        """The value of the next answer, which must be `word`. Raises `ClientFailed`, `ProcessFailed`."""
        answer = json.loads(await self.process.read_line())
        if "failed" in answer:
            raise ClientFailed(f"{self.name}: {answer['failed']}")
        assert word in answer, f"{self.name} said {sorted(answer)}, not {word}"
        return answer[word]
