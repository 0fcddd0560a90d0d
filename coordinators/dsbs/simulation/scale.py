"""What a change costs, from 3 to 1,000 brokers: the real machine, simulated, counted. Prints JSON, a line a change.

`python -m coordinators.dsbs.simulation.scale BROKERSxTOPICSxGROUPS... [--seed S]`, for example `3x10x10 1000x10x10`

Counted are the messages and bytes that brokers send because of the change, and the virtual time until all tables agree.
Heartbeats go on whether anything changes or not, and are given apart, per second. Bytes are those of the messages; what
gRPC, TCP and IP put around each (some 150 bytes) is not among them.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

from coordinators.dsbs.machine.events import Commit, CreateTopic, Gather
from coordinators.dsbs.simulation.cluster import Cluster, Node, address
from coordinators.dsbs.tables.messages import Heartbeat, Here
from coordinators.dsbs.tables.rows import SESSION_MAX, MemberRow, Status, TopicRow
from coordinators.dsbs.tables.tables import Table
from coordinators.model import DEFAULT_SETTINGS, Committed, TopicPartition
from coordinators.placement import group_home, place

if TYPE_CHECKING:
    from collections.abc import Callable

PARTITIONS: Final = 3
REPLICAS: Final = 3
AGREE_WITHIN_MS: Final = 60_000
# After agreement some messages are still under way, and rumours are told once more.
LINGER_HEARTBEATS: Final = 2
BACKGROUND_S: Final = 2
IDLE: Final = frozenset({Heartbeat.kind, Here.kind})


@dataclass(frozen=True, slots=True)
class Cost:
    change: str
    brokers: int
    topics: int
    groups: int
    messages: int
    bytes: int
    agreed_ms: int
    by_kind: dict[str, list[int]]
    heartbeats_per_s: float
    heartbeat_bytes_per_s: float


def costs(brokers: int, topics: int, groups: int, seed: int) -> list[Cost]:
    """What it costs to create a topic, to have a broker die, and to have it join again; in one cluster, in turn."""
    cluster = settled(brokers, topics, groups, seed)
    idle = background(cluster)
    victim = brokers  # the last: nothing else hangs on its number
    token = cluster.token()
    changes: list[tuple[str, Callable[[], None], Callable[[], bool]]] = [
        (
            "topic created",
            lambda: cluster.do(1, CreateTopic(token, "new", PARTITIONS, min(REPLICAS, brokers), DEFAULT_SETTINGS)),
            lambda: token in cluster.nodes[1].finished and cluster.agreed(),
        ),
        ("broker dies", lambda: cluster.crash(victim), lambda: _thinks(cluster, victim, Status.DEAD)),
        ("broker joins", lambda: _start(cluster, victim), lambda: _thinks(cluster, victim, Status.ALIVE)),
    ]
    return [
        measured(cluster, name, (brokers, topics, groups), idle, change, reached) for name, change, reached in changes
    ]


def measured(
    cluster: Cluster,
    name: str,
    size: tuple[int, int, int],
    idle: tuple[float, float],
    change: Callable[[], None],
    reached: Callable[[], bool],
) -> Cost:
    cluster.sent.clear()
    begin_ms = cluster.now_ms
    change()
    if not cluster.run_until(reached, AGREE_WITHIN_MS):
        raise RuntimeError(f"{name}: {size[0]} brokers did not agree within {AGREE_WITHIN_MS} ms")
    agreed_ms = cluster.now_ms - begin_ms
    cluster.run(LINGER_HEARTBEATS * cluster.settings.heartbeat_ms)
    by_kind = {kind: count for kind, count in sorted(cluster.sent.items()) if kind not in IDLE}
    messages, size_bytes = (sum(count[number] for count in by_kind.values()) for number in (0, 1))
    return Cost(name, *size, messages, size_bytes, agreed_ms, by_kind, *idle)


def background(cluster: Cluster) -> tuple[float, float]:
    """Heartbeats and their bytes, per second of a cluster in which nothing changes."""
    cluster.sent.clear()
    cluster.run(BACKGROUND_S * 1000)
    assert set(cluster.sent) <= IDLE, f"something goes on in a cluster that should be quiet: {cluster.sent}"
    counts = list(cluster.sent.values())
    return sum(count[0] for count in counts) / BACKGROUND_S, sum(count[1] for count in counts) / BACKGROUND_S


def _thinks(cluster: Cluster, broker: int, status: Status) -> bool:
    if not cluster.agreed():
        return False
    row = cluster.members()[0].table.members.get(broker)
    return row is not None and row.status is status and (cluster.nodes[broker].member is not None) is row.live


def _start(cluster: Cluster, broker: int) -> None:
    cluster.start(broker)


# --- a cluster that has long agreed -----------------------------------------------------------------------


def settled(brokers: int, topics: int, groups: int, seed: int) -> Cluster:
    cluster = Cluster(brokers, seed)
    table = Table([*_members(brokers), *_topics(brokers, topics)])
    for number, node in cluster.nodes.items():
        node.disk.update((row.key, row) for row in table.rows())
        cluster.start(number, table=table.copy(), session=_session(number))
    _must(cluster, cluster.agreed)
    for number in range(groups):
        _commit(cluster, f"group-{number}", topics)
    cluster.run(2 * cluster.settings.heartbeat_ms)
    return cluster


def _members(brokers: int) -> list[MemberRow]:
    return [MemberRow(address(number), _session(number), 1, Status.ALIVE) for number in range(1, brokers + 1)]


def _session(number: int) -> int:
    """As long in digits as a random one."""
    return SESSION_MAX // 2 + number


def _topics(brokers: int, topics: int) -> list[TopicRow]:
    names = [f"topic-{number}" for number in range(topics)]
    ids, replicas = range(1, brokers + 1), min(REPLICAS, brokers)
    placed = {name: tuple(at.replicas for at in place(name, PARTITIONS, replicas, ids)) for name in names}
    return [TopicRow(name, 1, 1, rows, DEFAULT_SETTINGS) for name, rows in placed.items()]


def _commit(cluster: Cluster, group: str, topics: int) -> None:
    home: Node = cluster.nodes[group_home(group, cluster.nodes)]
    token = cluster.token()
    cluster.do(home.broker.id, Gather(token, group))
    _must(cluster, lambda: token in home.finished)
    offsets = {TopicPartition(f"topic-{number}", 0): Committed(1) for number in range(min(1, topics))}
    cluster.do(home.broker.id, Commit(group, offsets, cluster.token()))


def _must(cluster: Cluster, reached: Callable[[], bool]) -> None:
    if not cluster.run_until(reached, AGREE_WITHIN_MS):
        raise RuntimeError(f"{len(cluster.nodes)} brokers did not settle within {AGREE_WITHIN_MS} ms")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m coordinators.dsbs.simulation.scale")
    parser.add_argument("sizes", nargs="+", metavar="BROKERSxTOPICSxGROUPS")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    for size in options.sizes:
        brokers, topics, groups = map(int, size.split("x"))
        for cost in costs(brokers, topics, groups, options.seed):
            print(json.dumps(asdict(cost)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
