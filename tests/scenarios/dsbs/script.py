"""Scripts for clusters of the DSBS machine: each command, a line `----`, and all that comes of it, up to a blank line.

The output has every message that is not a heartbeat, when it was sent (virtual ms) and whether it got through, then
what the command says. `python -m tests.scenarios.dsbs.script --rewrite` writes the outputs anew; review the diff.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from coordinators.dsbs.machine import topics
from coordinators.dsbs.machine.events import ChangeInSync, Commit, CreateTopic, DeleteTopic, Gather, Leave
from coordinators.dsbs.simulation.cluster import Cluster, Node, address
from coordinators.dsbs.tables.codec import encoded
from coordinators.dsbs.tables.messages import Body, Copy, Known, Push, Repair, Taken, TellOffsets, decode
from coordinators.dsbs.tables.rows import LeaderRow, MemberRow, OffsetRow, Row, Status, TopicRow
from coordinators.dsbs.tables.table_dump import printed
from coordinators.errors import CoordinationError
from coordinators.model import DEFAULT_SETTINGS, Committed, TopicPartition

FOLDER: Final = Path(__file__).parent
RULE: Final = "----"
SEED: Final = 1


class Watched(Cluster):
    """A cluster that writes down what is said in it."""

    def __init__(self, size: int, lines: list[str]) -> None:
        super().__init__(size, SEED)
        self._lines = lines

    def _send(self, sender: int, receiver: int, kind: str, content: bytes) -> None:
        body = decode(content).body
        if kind not in {"heartbeat", "here"}:
            there = self.nodes.get(receiver)
            lost = (sender, receiver) in self.conditions.cut or there is None or there.machine is None
            arrow = "-x" if lost else "->"
            self._lines.append(f"{self.now_ms} {sender} {arrow} {receiver} {kind} {_said(body)}".rstrip())
        super()._send(sender, receiver, kind, content)


def _said(body: Body) -> str:
    match body:
        case Push(rows) | Known(_, rows) | Repair(rows) | Copy(rows) | TellOffsets(rows):
            return ", ".join(map(_row, rows))
        case Taken(reason, certain):
            return f"{reason} ({'certain' if certain else 'being asked'})"
        case _:
            return ""


def _row(row: Row) -> str:
    match row:
        case MemberRow(broker, _, incarnation, status):
            return f"broker {broker.id} {Status(status).name.lower()}@{incarnation}"
        case TopicRow(name, generation, creator, replicas):
            return f"topic {name}@{generation}.{creator} {'deleted' if row.deleted else list(map(list, replicas))}"
        case LeaderRow():
            return f"{row.topic}-{row.partition} led by {row.leader} at {row.epoch}.{row.version} {list(row.in_sync)}"
        case OffsetRow():
            return f"{row.group} {row.topic}-{row.partition} at {row.offset} (commit {row.version})"
    return encoded(row)


class Script:
    """Runs commands one after the other; `do` gives the lines that one says."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._cluster = Watched(0, self._lines)

    def do(self, command: str) -> list[str]:
        name, *words = command.split()
        try:
            getattr(self, f"_{name}")(*words)
        except CoordinationError as error:
            self._lines.append(f"{type(error).__name__}: {error}")
        said, self._lines[:] = list(self._lines), []
        return said

    def _node(self, word: str) -> Node:
        return self._cluster.nodes[int(word)]

    def _cluster_of(self, size: str) -> None:
        self._cluster = Watched(int(size), self._lines)

    def _start(self, *numbers: str) -> None:
        for number in numbers:
            self._cluster.start(int(number))
        self._cluster.run(200)

    def _impostor(self, number: str, claims: str) -> None:
        """A broker at an address of its own starts with the id of another."""
        self._cluster.nodes[int(number)] = Node(int(number), address(int(number), int(claims)))
        node = self._cluster.start(int(number))
        self._cluster.run(200)
        self._lines.append(node.refused or "it serves")

    def _crash(self, number: str, wiped: str = "") -> None:
        self._cluster.crash(int(number), wiped=wiped == "wiped")

    def _leave(self, number: str) -> None:
        self._cluster.do(int(number), Leave(self._cluster.token()))
        self._cluster.run(100)

    def _split(self, *sides: str) -> None:
        self._cluster.split([[int(number) for number in side.split(",")] for side in sides])

    def _heal(self) -> None:
        self._cluster.heal()

    def _run(self, for_ms: str) -> None:
        self._cluster.run(int(for_ms))

    def _create(self, number: str, name: str, partitions: str, replicas: str) -> None:
        token = self._cluster.token()
        self._finish(number, token, CreateTopic(token, name, int(partitions), int(replicas), DEFAULT_SETTINGS))

    def _create_at_once(self, name: str, *creators: str) -> None:
        """Each of `creators` (broker:partitions) makes the topic in the same moment."""
        for creator in creators:
            number, partitions = creator.split(":")
            event = CreateTopic(self._cluster.token(), name, int(partitions), 2, DEFAULT_SETTINGS)
            self._cluster.do(int(number), event)
        self._cluster.run(100)

    def _delete(self, number: str, name: str) -> None:
        token = self._cluster.token()
        self._finish(number, token, DeleteTopic(token, name))

    def _finish(self, number: str, token: int, event: CreateTopic | DeleteTopic) -> None:
        node = self._node(number)
        self._cluster.do(int(number), event)
        self._cluster.run_until(lambda: token in node.finished, 5000)
        answer = node.finished[token]
        missing = f", not known of {sorted(answer.missing)}" if answer.missing else ""
        self._lines.append(f"known to {sorted(answer.known_to)}{missing}")

    def _in_sync(self, number: str, name: str, partition: str, epoch: str, in_sync: str) -> None:
        replicas = frozenset(int(replica) for replica in in_sync.split(","))
        self._cluster.do(int(number), ChangeInSync(TopicPartition(name, int(partition)), replicas, int(epoch)))
        self._cluster.run(100)

    def _commit(self, number: str, group: str, name: str, offset: str) -> None:
        places = {TopicPartition(name, 0): Committed(int(offset))}
        self._cluster.do(int(number), Commit(group, places, self._cluster.token()))
        self._cluster.run(20)

    def _committed(self, number: str, group: str) -> None:
        node, token = self._node(number), self._cluster.token()
        self._cluster.do(int(number), Gather(token, group))
        self._cluster.run_until(lambda: token in node.finished, 5000)
        assert node.machine is not None
        for at, place in sorted(node.machine.offsets.committed(group).items()):
            self._lines.append(f"{group} {at.topic}-{at.partition} at {place.offset}")

    def _tables(self, number: str) -> None:
        """The tables of one broker, and who holds the same."""
        machine = self._node(number).machine
        assert machine is not None
        tables = printed(machine)
        for broker in tables.brokers:
            self._lines.append(f"broker {broker.broker} {broker.status}@{broker.incarnation}")
        for row in tables.partitions:
            self._lines.append(
                f"{row.topic}-{row.partition} on {row.broker} at {row.epoch} in sync {list(row.in_sync)}"
            )
        running = {key: node.machine for key, node in self._cluster.nodes.items() if node.machine is not None}
        same = [key for key, other in running.items() if other.table.hash == machine.table.hash]
        self._lines.append(f"the same on {same}")

    def _leaders(self, number: str, name: str) -> None:
        machine = self._node(number).machine
        assert machine is not None
        topic = topics.topic_seen(machine.table, name)
        for place, partition in enumerate(topic.partitions if topic is not None else ()):
            self._lines.append(f"{name}-{place} led by {partition.leader} at {partition.epoch}")


def outcome(text: str) -> str:
    """The script with its outputs as they are now."""
    script = Script()
    blocks = []
    for block in text.strip().split("\n\n"):
        comments = [line for line in block.splitlines() if line.startswith("#")]
        commands = list(_commands(block))
        if not commands:
            blocks.append("\n".join(comments))
            continue
        said = [line for command in commands for line in script.do(command)]
        blocks.append("\n".join([*comments, *commands, RULE, *said]))
    return "\n\n".join(blocks) + "\n"


def _commands(block: str) -> Iterator[str]:
    for line in block.splitlines():
        if line == RULE:
            return
        if line and not line.startswith("#"):
            yield line


def main() -> int:
    stale = [path for path in sorted(FOLDER.glob("*.txt")) if outcome(path.read_text()) != path.read_text()]
    for path in stale:
        print(path.name)
        if "--rewrite" in sys.argv[1:]:
            path.write_text(outcome(path.read_text()))
    return 1 if stale and "--rewrite" not in sys.argv[1:] else 0


if __name__ == "__main__":
    sys.exit(main())
