"""A real Apache Kafka to measure against: `python -m tests.bench.peer_kafka`, until Ctrl-C or SIGTERM.

Its jars come through Maven into a cache folder of the user's (needs `mvn` and Java 17). Three nodes in KRaft mode, each
broker and controller at once, on free ports of the loopback interface, with the Java settings of Kafka's own start
script. When they serve it says one line of JSON: bootstrap, version, time to be ready, process ids, resident memory.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import uuid
from base64 import urlsafe_b64encode
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import TYPE_CHECKING, Final

from tests.bench.cells import REQUEST_BYTES_MAX
from workloads.console.connection import Cluster, NoAnswer
from workloads.errors import BrokerlabError, UserError
from workloads.measure.resources import usage_of
from workloads.processes.java import find_java
from workloads.processes.ports import free_ports
from workloads.processes.process import Process

if TYPE_CHECKING:
    from collections.abc import Sequence

VERSION: Final = "4.3.1"
NODES: Final = 3
READY_WITHIN_S: Final = 120.0
READY_POLL_S: Final = 0.05
_POM: Final = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion><groupId>brokerlab</groupId><artifactId>peer</artifactId><version>1</version>
  <dependencies><dependency>
    <groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{version}</version>
  </dependency></dependencies>
</project>
"""
_CONFIG: Final = """\
process.roles=broker,controller
node.id={node}
controller.quorum.voters={voters}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={data}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
message.max.bytes={message_bytes_max}
"""
_JAVA: Final = (
    "-Xms1g", "-Xmx1g", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent", "-XX:MaxInlineLevel=15", "-Djava.awt.headless=true",
)  # fmt: skip


class Kafka:
    """Three nodes in `folder`, from the jars in `jars`."""

    def __init__(self, jars: Path, folder: Path) -> None:
        self._java = (find_java().command, *_JAVA, "-cp", f"{jars}/*")
        self._folder = folder
        self._nodes: list[Process] = []
        ports = free_ports(2 * NODES)
        self._ports, self._controller_ports = ports[:NODES], ports[NODES:]
        self.cluster = Cluster([f"127.0.0.1:{port}" for port in self._ports])

    @property
    def pids(self) -> list[int]:
        return [node.pid for node in self._nodes]

    def format(self) -> None:
        """Write the nodes' configurations and make their storage. Raises `BrokerlabError` with what Kafka says."""
        voters = ",".join(f"{node}@127.0.0.1:{port}" for node, port in enumerate(self._controller_ports, start=1))
        cluster = cluster_id()
        for node in range(1, NODES + 1):
            text = _CONFIG.format(
                node=node,
                voters=voters,
                port=self._ports[node - 1],
                controller_port=self._controller_ports[node - 1],
                data=self._folder / f"node-{node}",
                message_bytes_max=REQUEST_BYTES_MAX,
            )
            config = self._config(node)
            config.write_text(text)
            _run([*self._java, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(config)])

    async def start(self) -> float:
        """Start the nodes and wait until a client finds all of them; the seconds that took. Raises `ProcessFailed`."""
        before = monotonic()
        for node in range(1, NODES + 1):
            command = [*self._java, "kafka.Kafka", str(self._config(node))]
            self._nodes.append(await Process.start(f"kafka-{node}", command, self._folder / f"node-{node}.log"))
        async with asyncio.timeout(READY_WITHIN_S):
            while not await asyncio.to_thread(self._serves):
                for process in self._nodes:
                    if not process.running:
                        raise process.failure()
                await asyncio.sleep(READY_POLL_S)
        return monotonic() - before

    def _serves(self) -> bool:
        try:
            return len(self.cluster.brokers()) == NODES
        except NoAnswer:
            return False

    def _config(self, node: int) -> Path:
        return self._folder / f"node-{node}.properties"

    async def stop(self) -> None:
        """The data goes anyway, and a node that has lost its quorum would take minutes to end by itself."""
        await asyncio.gather(*(node.stop() for node in self._nodes))


def cluster_id() -> str:
    """A random one as Kafka draws its own: none begins with a hyphen, which a tool would take for an option."""
    while (drawn := urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return drawn


def jars(version: str) -> Path:
    """The folder with Kafka's jars, fetched if need be. Raises `UserError` without Maven, `BrokerlabError`."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "brokerlab"
    found = cache / f"kafka-{version}"
    if not found.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=cache) as fetched:
            (Path(fetched) / "pom.xml").write_text(_POM.format(version=version))
            goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={fetched}/libs"]
            _run(["mvn", "-q", "-B", "-f", f"{fetched}/pom.xml", *goal])
            (Path(fetched) / "libs").replace(found)
    return found


def _run(command: Sequence[str]) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except FileNotFoundError:
        raise UserError(f"{command[0]} is needed and not there") from None
    except subprocess.CalledProcessError as error:
        raise BrokerlabError(f"{command[0]} ended with {error.returncode}: {error.stdout}{error.stderr}") from None


async def _serve(version: str) -> None:
    told_to_stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, told_to_stop.set)
    libs = await asyncio.to_thread(jars, version)
    with TemporaryDirectory(prefix="brokerlab-kafka-") as folder:
        kafka = Kafka(libs, Path(folder))
        await asyncio.to_thread(kafka.format)
        try:
            ready_s = await kafka.start()
            found = {"bootstrap": kafka.cluster.bootstrap, "version": version, "ready_s": round(ready_s, 2)}
            resident = {"resident_bytes_max": [usage_of(pid).rss_max_bytes for pid in kafka.pids]}
            print(json.dumps({**found, "pids": kafka.pids, **resident}), flush=True)
            await told_to_stop.wait()
        finally:
            await kafka.stop()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.peer_kafka", description="Run an Apache Kafka.")
    parser.add_argument("--version", default=VERSION, help="of the Maven artifact; default: %(default)s")
    try:
        asyncio.run(_serve(parser.parse_args().version))
    except BrokerlabError as error:
        print(f"peer_kafka: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
