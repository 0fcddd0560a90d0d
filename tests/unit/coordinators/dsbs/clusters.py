"""Clusters for tests: simulated, agreed, and what to say to their brokers from outside."""

from __future__ import annotations

from dataclasses import replace

from coordinators.dsbs.machine.events import CreateTopic, Received
from coordinators.dsbs.machine.machine import Machine
from coordinators.dsbs.options import Settings
from coordinators.dsbs.simulation.cluster import Cluster
from coordinators.dsbs.tables.messages import Body, Envelope, encode
from coordinators.dsbs.tables.rows import MemberRow
from coordinators.model import DEFAULT_SETTINGS

AGREE_WITHIN_MS = 10_000
HIGH = 2**40


def agreed(size: int, seed: int = 1, settings: Settings | None = None) -> Cluster:
    cluster = Cluster(size, seed, settings)
    cluster.start_all()
    assert cluster.run_until(cluster.agreed, AGREE_WITHIN_MS)
    return cluster


def machine(cluster: Cluster, number: int) -> Machine:
    found = cluster.nodes[number].machine
    assert found is not None
    return found


def create(cluster: Cluster, number: int, name: str, partitions: int = 2, replicas: int = 3) -> int:
    """The token; the topic is on its way."""
    token = cluster.token()
    cluster.do(number, CreateTopic(token, name, partitions, replicas, DEFAULT_SETTINGS))
    return token


def created(cluster: Cluster, number: int, name: str, partitions: int = 2, replicas: int = 3) -> None:
    token = create(cluster, number, name, partitions, replicas)
    assert cluster.run_until(lambda: token in cluster.nodes[number].finished, AGREE_WITHIN_MS)


def forged(cluster: Cluster, sender: int, body: Body, *, name: str | None = None, sequence: int = HIGH) -> bytes:
    """What a broker would send, if it were so minded; `sequence` is beyond what it has used, so it is no replay."""
    return encode(Envelope(name or cluster.settings.cluster, machine(cluster, sender).me, sequence, body))


def told(cluster: Cluster, number: int, content: bytes) -> Machine:
    """The machine of a broker that was handed these bytes."""
    cluster.do(number, Received(content))
    return machine(cluster, number)


def row_of(cluster: Cluster, number: int, **changed: object) -> MemberRow:
    return replace(machine(cluster, number).me, **changed)  # type: ignore[arg-type]
