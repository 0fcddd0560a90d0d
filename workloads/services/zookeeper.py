"""A real ZooKeeper server, from the jars that PySpark brings: a child process with a folder and a port of its own."""

from __future__ import annotations

import asyncio
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final

from workloads.errors import UserError
from workloads.processes.java import collector_log, find_java
from workloads.processes.process import PortTaken, Process
from workloads.systems.api import SystemUnready
from workloads.systems.architectures import Program
from workloads.topology.api import Loopback

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workloads.topology.api import Topology

NAME: Final = "zookeeper"  # of its process, and of the place where it runs
READY_WITHIN_S: Final = 30.0
# A server that is just starting takes connections that it never answers, so the first are given up soon; a slow machine
# gets more time, as it goes on.
ANSWER_WITHIN_S: Final = 0.1
ANSWER_SHARE: Final = 0.25  # of the time since the start
TICK_MS: Final = 1000
_CONFIG: Final = """\
tickTime={tick_ms}
dataDir={data}
clientPort={port}
clientPortAddress={host}
maxClientCnxns=0
admin.enableServer=false
4lw.commands.whitelist=conf
standaloneEnabled=true
forceSync={force_sync}
"""
# For a machine that the server shares with brokers and clients, and for the minutes that it lives: one thread for all
# connections in place of one that hands on to four, and the quick compiler alone, which is done in a second or two.
_FOR_A_SMALL_MACHINE: Final = ("-Dzookeeper.nio.numWorkerThreads=0", "-XX:TieredStopAtLevel=1")
_PORT_TAKEN: Final = b"Address already in use"
_LOGGING: Final = """\
rootLogger.level = info
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{ISO8601} %p %c{1} - %m%n
"""


def jars() -> Path:
    """The folder with ZooKeeper's jars. Raises `UserError` where PySpark is not installed."""
    spec = find_spec("pyspark")
    folder = Path(spec.origin).parent / "jars" if spec is not None and spec.origin is not None else None
    if folder is None or not any(folder.glob("zookeeper-3*.jar")):
        raise UserError("ZooKeeper comes with PySpark's jars, which are not there; `make setup` installs them")
    return folder


def jar_version() -> str:
    """ZooKeeper's version, read off its jar."""
    return next(iter(sorted(jars().glob("zookeeper-3*.jar")))).stem.removeprefix("zookeeper-")


PROGRAM: Final = Program("ZooKeeper", jar_version, jars, "make setup")


class ZooKeeperServer:
    """One server. `start` returns when it answers; `address` is what clients connect to. With `fsync` it forces each
    change to the disk before it answers, as ZooKeeper does unless told otherwise."""

    def __init__(
        self, folder: Path, log: Path, port: int, topology: Topology | None = None, *, fsync: bool = False
    ) -> None:
        self._topology = topology or Loopback()
        self._fsync = fsync
        self._host = self._topology.address(NAME)
        self._folder = folder
        self._data = folder.absolute() / "data"  # as the server says it
        self._log = log
        self.port = port
        self.process: Process | None = None

    @property
    def address(self) -> str:
        return f"{self._host}:{self.port}"

    async def start(self) -> None:
        """Raises `PortTaken` or `ProcessFailed` where it ends instead, `SystemUnready` where it does not answer."""
        config = self._folder / "zoo.cfg"
        settings = _CONFIG.format(
            tick_ms=TICK_MS,
            data=self._data,
            host=self._host,
            port=self.port,
            force_sync="yes" if self._fsync else "no",
        )
        await self._topology.put(NAME, {config: settings, self._folder / "log4j2.properties": _LOGGING})
        self.process = await Process.start(NAME, self._topology.inside(NAME, self._command(config)), self._log)
        try:
            async with asyncio.timeout(READY_WITHIN_S):
                await self._answering(self.process)
        except TimeoutError:
            await self.stop()
            raise SystemUnready(f"ZooKeeper did not answer on {self.address} within {READY_WITHIN_S:.0f} s") from None

    def _command(self, config: Path) -> Sequence[str]:
        collector = f"-Xlog:gc:file={collector_log(self._log)}:uptime:filecount=0"
        return (
            find_java().command,
            "-Xms64m",
            "-Xmx512m",
            *_FOR_A_SMALL_MACHINE,
            *([collector] if self._topology.is_here(NAME) else []),  # nobody could read it elsewhere
            f"-Dlog4j2.configurationFile={self._folder / 'log4j2.properties'}",
            "-cp",
            f"{jars()}/*",
            "org.apache.zookeeper.server.quorum.QuorumPeerMain",
            str(config),
        )

    async def _answering(self, process: Process) -> None:
        began = monotonic()
        while not await answers(
            self.port, self._data, self._topology, max(ANSWER_WITHIN_S, ANSWER_SHARE * (monotonic() - began))
        ):
            if not process.running:
                if _PORT_TAKEN in self._log.read_bytes():
                    raise PortTaken(f"ZooKeeper cannot listen on {self.address}: it is in use")
                raise process.failure()
            await asyncio.sleep(0.05)

    async def stop(self) -> None:
        if self.process is not None:
            await self.process.stop()


async def answers(port: int, data: Path, topology: Topology, within_s: float) -> bool:
    """Whether the ZooKeeper server of this data folder, and not somebody else's, serves requests on this port."""
    try:
        reader, writer = await topology.connect(NAME, port)
    except OSError:
        return False
    try:
        writer.write(b"conf")
        answer = await asyncio.wait_for(reader.read(), within_s)
    except (OSError, TimeoutError):
        return False
    finally:
        writer.close()
    return f"dataDir={data}/".encode() in answer
