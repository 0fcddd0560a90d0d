"""The values that an experiment is made of: frozen, typed, and written as text in one way only.

The text of an axis (`as_axes`) names cells, fills the report's proof of equality, and is what `--only` compares.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

Mode = Literal["split", "streaming", "load"]
Driver = Literal["kafka", "grpc"]
Fetch = Literal["batch", "stream"]
Fsync = Literal["never", "always", "interval"]
Commit = Literal["every_batch", "end", "interval"]
TopologyName = Literal["loopback", "namespaces", "hosts"]

ACKS_ALL = -1  # as the wire has it


class Rtt(NamedTuple):
    """Round trips between the places of a topology, in milliseconds; 0 is as fast as the kernel goes."""

    broker_zookeeper: float = 0.0
    broker_broker: float = 0.0
    client_broker: float = 0.0

    def as_text(self) -> str:
        named = [f"{pair}_{_plain(ms)}" for pair, ms in self._asdict().items() if ms]
        return "+".join(named) or "0"


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """The settings of brokers: the same for every architecture. Cells that differ here need clusters apart."""

    brokers: int
    partitions: int
    replication_factor: int
    acks: int  # 0, 1, or ACKS_ALL
    fsync: Fsync
    fsync_interval_ms: int | None  # set if, and only if, fsync is "interval"
    topology: TopologyName = "loopback"
    rtt_ms: Rtt = Rtt()  # noqa: RUF009 - a tuple, which nobody can change
    gather_ms: int = 2  # how long our brokers let requests of a client that pipelines gather

    def as_axes(self) -> dict[str, str]:
        return {
            "brokers": str(self.brokers),
            "partitions": str(self.partitions),
            "replication_factor": str(self.replication_factor),
            "acks": "all" if self.acks == ACKS_ALL else str(self.acks),
            "fsync": _policy_text(self.fsync, self.fsync_interval_ms),
            "topology": self.topology,
            "rtt_ms": self.rtt_ms.as_text(),
            "gather_ms": str(self.gather_ms),
        }


@dataclass(frozen=True, slots=True)
class WorkloadSettings:
    """How clients drive the cluster."""

    driver: Driver
    producers: int
    consumers: int
    commit: Commit
    commit_interval_ms: int | None  # set if, and only if, commit is "interval"
    fetch: Fetch
    rate: float | None  # messages/s of all producers together; None sends as fast as acknowledgements allow
    in_flight: int = 5  # requests under way for each connection to a broker
    fetch_ahead: int = 20  # batches of each partition that a consumer fetches ahead

    def as_axes(self) -> dict[str, str]:
        return {
            "driver": self.driver,
            "producers": str(self.producers),
            "consumers": str(self.consumers),
            "commit": _policy_text(self.commit, self.commit_interval_ms),
            "fetch": self.fetch,
            "rate": "max" if self.rate is None else _plain(self.rate),
            "in_flight": str(self.in_flight),
            "fetch_ahead": str(self.fetch_ahead),
        }


@dataclass(frozen=True, slots=True)
class Architecture:
    """A way to coordinate, by the name that it has in the file and in every table."""

    name: str
    row: str  # of the table of architectures (`workloads.systems.architectures`)
    options: tuple[tuple[str, str | int], ...] = ()  # the row's, each that applies, defaults filled in

    def as_json(self) -> dict[str, str | int]:
        return {"name": self.name, "row": self.row, **dict(self.options)}

    @property
    def settings(self) -> str:
        """Everything but the name: two architectures with the same differ by chance alone."""
        return " ".join([self.row, *(f"{key}={value}" for key, value in self.options)])

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Architecture:
        options = {key: value for key, value in found.items() if key not in {"name", "row"}}
        return cls(found["name"], found["row"], tuple(options.items()))


@dataclass(frozen=True, slots=True)
class Length:
    """How long a window is: exactly `messages`, or `duration_s` from the middle of the clients' work.

    One of the two is set, never both.
    """

    messages: int | None
    duration_s: float | None
    lead_s: float = 0.1  # the clients' work before a window of `duration_s` opens


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured: at least `tries` blocks with `rounds` windows of each cell. With a budget, more rounds go
    to the cells whose ratios are known least, until each is within `precision` or the budget is spent."""

    tries: int
    rounds: int = 1
    budget_s: float | None = None
    precision: float = 0.1  # 0.1: the interval reaches from the ratio to 1.1 times it, and as far down, or is narrower


@dataclass(frozen=True, slots=True)
class Hosts:
    """The machines of `topology: hosts`, by the names under which ssh, and their peers, reach them."""

    brokers: tuple[str, ...]  # dealt to these in turn
    zookeeper: str
    ssh_config: str | None = None  # a file for ssh; None for the user's own


@dataclass(frozen=True, slots=True)
class Pin:
    """The processors that each role's processes may use; empty for all."""

    brokers: tuple[int, ...] = ()
    coordinator: tuple[int, ...] = ()
    clients: tuple[int, ...] = ()

    def of_role(self, role: str) -> tuple[int, ...]:
        """By the name that a process's role has in the raw records."""
        roles = {"broker": self.brokers, "coordinator": self.coordinator}
        return {**roles, "producer": self.clients, "consumer": self.clients}.get(role, ())


@dataclass(frozen=True, slots=True)
class Point:
    """One point of an experiment's product: all settings of a trial except the architecture."""

    cluster: ClusterSettings
    workload: WorkloadSettings
    message_size: int  # bytes
    batch_size: int  # messages in one request
    mode: Mode
    load: float | None = None  # in mode load, and there alone: the share of what the slowest architecture sustains

    def as_axes(self) -> dict[str, str]:
        own = {"message_size": str(self.message_size), "batch_size": str(self.batch_size), "mode": self.mode}
        load = {"load": "none" if self.load is None else f"{_plain(round(self.load * 100, 6))}%"}
        return own | self.cluster.as_axes() | self.workload.as_axes() | load

    @property
    def messages_least(self) -> int:
        """One full request from each producer: with fewer, requests would be smaller than `batch_size` says."""
        return self.batch_size * self.workload.producers


def _plain(number: float) -> str:
    return repr(number).removesuffix(".0")


def _policy_text(word: str, interval_ms: int | None) -> str:
    return word if interval_ms is None else f"{word}_{interval_ms}ms"
