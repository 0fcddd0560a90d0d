"""DSBS with a process for each broker: real ports, real gRPC, real journals; a kill is SIGKILL."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from coordinators.api import Coordinator
from coordinators.errors import Unavailable
from tests.contract.backend import WITHIN_S, Backend, until
from tests.contract.frames import Call, Hello, Told, read, write
from workloads.processes.ports import free_ports
from workloads.processes.process import tethered

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping

    from coordinators.idleness import Stamps
    from coordinators.model import (
        Broker,
        ClusterView,
        Committed,
        Creation,
        Partition,
        TopicPartition,
        TopicSettings,
    )

# Long enough that a busy machine makes nobody a suspect, short enough to wait for deaths.
OPTIONS: Final = {"heartbeat_ms": 100, "timeout_ms": 1000, "suspicion_ms": 300, "join_ms": 300, "copy_ms": 20}


class Place:
    """A process that waits for somebody to need a broker."""

    def __init__(self, path: Path) -> None:
        self.path = path
        command = [sys.executable, "-m", "tests.contract.member", str(path)]
        self._process = subprocess.Popen(tethered(command), stdout=subprocess.PIPE)
        self._ready = False

    def await_ready(self) -> None:
        assert self._process.stdout is not None
        if not self._ready:
            assert self._process.stdout.readline(), "it ended"
            self._ready = True

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


class Places:
    """The processes of all tests: what one has used, the next uses again; what one has killed is made anew."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="brokerlab-members-")
        self._free: list[Place] = []
        self._made: list[Place] = []

    def take(self, count: int) -> list[Place]:
        while len(self._free) < count:
            self._made.append(Place(Path(self._folder.name) / str(len(self._made))))
            self._free.append(self._made[-1])
        taken, self._free = self._free[:count], self._free[count:]
        for place in taken:
            place.await_ready()
        return taken

    def give_back(self, place: Place) -> None:
        self._free.append(place)

    def close(self) -> None:
        for place in self._made:
            place.kill()
        self._folder.cleanup()


@cache
def places() -> Places:
    return Places()


class DistantCoordinator(Coordinator):
    """This process's end of a coordinator in another one."""

    def __init__(self, hello: Hello) -> None:
        super().__init__(hello.me)
        self._hello = hello
        self._writer: asyncio.StreamWriter | None = None
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._token = 0
        self._kept = DistantOffsets(self._call)
        self.place: Place | None = None

    async def start(self) -> None:
        (self.place,) = places().take(1)
        reader, self._writer = await asyncio.open_unix_connection(str(self.place.path))
        write(self._writer, self._hello)
        self._listening = asyncio.create_task(self._listen(reader))
        await self._call("start")

    async def stop(self) -> None:
        """Its process goes on, for others."""
        if self._writer is not None:
            with suppress(Unavailable):
                await self._call("stop")
            self._writer.write_eof()
            await self.ended()
            if self.place is not None:
                places().give_back(self.place)
                self.place = None

    async def ended(self) -> None:
        """The other end is over, its ports are free."""
        assert self._writer is not None
        await self._listening
        self._writer.close()
        self._writer = None
        self._views.close()

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        with suppress(asyncio.IncompleteReadError, OSError):
            while True:
                told: Told = await read(reader)
                self._see(told.view)
                if told.token:
                    future = self._waiting.pop(told.token)
                    if told.error is None:
                        future.set_result(told.value)
                    else:
                        future.set_exception(told.error)
        for future in self._waiting.values():
            future.set_exception(Unavailable("its process has ended"))

    def _see(self, view: ClusterView) -> None:
        if view.version > self.view().version:
            self._views.publish(brokers=view.brokers, topics=view.topics, controller=view.controller)

    async def _call(self, verb: str, *arguments: object) -> Any:
        if self._writer is None:
            raise Unavailable("it has stopped")
        self._token += 1
        future = self._waiting[self._token] = asyncio.get_running_loop().create_future()
        write(self._writer, Call(self._token, verb, arguments))
        async with asyncio.timeout(WITHIN_S):
            return await future

    def _known_leader(self, at: TopicPartition) -> Partition | None:
        return None

    async def _find_leader(self, at: TopicPartition) -> Partition:
        found: Partition = await self._call("leader", at)
        return found

    async def _create_topic(
        self, name: str, partitions: int, replication_factor: int, settings: TopicSettings
    ) -> Creation:
        made: Creation = await self._call("create_topic", name, partitions, replication_factor, settings)
        return made

    async def _delete_topic(self, name: str) -> None:
        await self._call("delete_topic", name)

    async def _change_in_sync(self, at: TopicPartition, in_sync: frozenset[int], epoch: int) -> Partition:
        changed: Partition = await self._call("change_in_sync", at, in_sync, epoch)
        return changed

    async def _resign(self, at: TopicPartition, epoch: int) -> Partition:
        given_up: Partition = await self._call("resign", at, epoch)
        return given_up

    async def expire_groups(self, retention_ms: int, members: Collection[str]) -> None:
        await self.meter.waited("expire_groups", self._call("expire_groups", retention_ms, members))


class DistantOffsets:
    """The other end judges which groups are forgotten."""

    def __init__(self, call: Callable[..., Awaitable[Any]]) -> None:
        self._call = call

    async def begin_commit(self, group: str, offsets: Mapping[TopicPartition, Committed]) -> None:
        await self._call("commit_offsets", group, offsets)

    async def committed(self, group: str) -> Mapping[TopicPartition, Committed]:
        found: Mapping[TopicPartition, Committed] = await self._call("committed_offsets", group)
        return found

    async def stamps(self) -> Stamps:
        raise AssertionError

    async def stamp(self, group: str) -> None:
        raise AssertionError

    async def forget(self, stamps: Mapping[str, int]) -> None:
        raise AssertionError


class DsbsProcessesBackend(Backend):
    name = "dsbs-processes"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        ports = free_ports(2 * len(self.brokers))
        self.brokers = tuple(
            type(broker)(broker.id, broker.host, ports[2 * n], ports[2 * n + 1])
            for n, broker in enumerate(self.brokers)
        )

    def made(self, me: Broker) -> Coordinator:
        journals = self.folder / f"broker-{me.id}-{me.rpc_port}"
        return DistantCoordinator(Hello(me, self.brokers, OPTIONS, journals))

    async def start_all(self) -> list[Coordinator]:
        """At once, so that none waits for another."""
        started = await asyncio.gather(*(self.start(broker.id) for broker in self.brokers))
        for coordinator in started:
            await until(coordinator, lambda view: len(view.brokers) == len(self.brokers))
        return started

    async def kill(self, coordinator: Coordinator) -> None:
        assert isinstance(coordinator, DistantCoordinator)
        assert coordinator.place is not None
        coordinator.place.kill()
        coordinator.place = None
        await coordinator.ended()


BACKENDS = [DsbsProcessesBackend]
