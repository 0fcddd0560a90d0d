"""The start of each node of an Apache Kafka: its properties and its command line. Nothing is started here.

Kafka gets its own setting for each setting of our brokers with the same meaning. Everything else has Kafka's
defaults, except for the needs of a cluster that lives for minutes: internal topics with a single replica, no wait for
more members before a group's first rebalance, no topics made by asking for them.
"""

from __future__ import annotations

import json
import uuid
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from workloads.processes.java import collector_log

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from workloads.spec.settings import ClusterSettings

BATCH_BYTES_MAX: Final = 16 * 1024 * 1024  # as our brokers take
SESSION_TIMEOUT_MS: Final = 6_000  # as our brokers ask ZooKeeper for
CONNECTION_TIMEOUT_MS: Final = 18_000  # as in the configuration that Kafka ships; else it is the session's
# As in Kafka's own start script.
_JAVA: Final = (
    "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent", "-XX:MaxInlineLevel=15", "-Djava.awt.headless=true",
)  # fmt: skip
_LOGGING: Final = (
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
)


@dataclass(frozen=True, slots=True)
class KafkaNode:
    """A node's place. `controller_port` is used in KRaft alone."""

    id: int
    host: str
    port: int
    controller_port: int
    folder: Path
    log: Path

    @property
    def name(self) -> str:
        return f"broker-{self.id}"

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def config(self) -> Path:
        """Beside the log, so that what a node was told stays with the run."""
        return self.log.with_suffix(".properties")


def properties(
    node: KafkaNode, nodes: Sequence[KafkaNode], settings: ClusterSettings, zookeeper: str | None
) -> dict[str, str]:
    """A node's properties: with the ZooKeeper at this address, or in KRaft where there is none."""
    roles = _kraft(node, nodes) if zookeeper is None else _zookeeper(node, zookeeper)
    return {
        **roles,
        "log.dirs": str(node.folder),
        "num.partitions": str(settings.partitions),
        "default.replication.factor": str(settings.replication_factor),
        **_flush(settings),
        "message.max.bytes": str(BATCH_BYTES_MAX),
        "auto.create.topics.enable": "false",
        "group.initial.rebalance.delay.ms": "0",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
    }


def _kraft(node: KafkaNode, nodes: Sequence[KafkaNode]) -> dict[str, str]:
    """Broker and controller in one process, each a voter: so that as many may fail as in an ensemble of three."""
    return {
        "process.roles": "broker,controller",
        "node.id": str(node.id),
        "controller.quorum.voters": ",".join(f"{each.id}@{each.host}:{each.controller_port}" for each in nodes),
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://{node.address},CONTROLLER://{node.host}:{node.controller_port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
    }


def _zookeeper(node: KafkaNode, address: str) -> dict[str, str]:
    return {
        "broker.id": str(node.id),
        "listeners": f"PLAINTEXT://{node.address}",
        "zookeeper.connect": address,
        "zookeeper.session.timeout.ms": str(SESSION_TIMEOUT_MS),
        "zookeeper.connection.timeout.ms": str(CONNECTION_TIMEOUT_MS),
    }


def _flush(settings: ClusterSettings) -> dict[str, str]:
    """`fsync` in Kafka's words; a message is acknowledged behind the flush that `always` asks for."""
    if settings.fsync == "always":
        return {"log.flush.interval.messages": "1"}
    if settings.fsync_interval_ms is None:
        return {}  # Kafka's own default is never
    interval_ms = str(settings.fsync_interval_ms)
    return {"log.flush.interval.ms": interval_ms, "log.flush.scheduler.interval.ms": interval_ms}


def written(values: Mapping[str, str]) -> str:
    """As a file of Java's properties."""
    return "".join(f"{key}={json.dumps(value)[1:-1]}\n" for key, value in values.items())  # escaped alike


def java(command: str, jars: Path, heap_mb: int, log: Path | None = None) -> list[str]:
    """The beginning of a command line; where there is a process's `log`, its garbage collector writes beside it."""
    collector = [] if log is None else [f"-Xlog:gc:file={collector_log(log)}:uptime:filecount=0"]
    return [command, f"-Xms{heap_mb}m", f"-Xmx{heap_mb}m", *_JAVA, *_LOGGING, *collector, "-cp", f"{jars}/*"]


def cluster_id() -> str:
    """A random one as Kafka draws its own: none begins with a hyphen, which a tool would take for an option."""
    while (drawn := urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return drawn
