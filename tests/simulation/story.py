"""One seeded run of a DSBS cluster: faults, topics and commits at random, then peace; and what must hold.

`run(seed)` raises `Violation` with the seed in its message. The same seed is the same run, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Final

from coordinators.dsbs.machine import topics
from coordinators.dsbs.machine.events import ChangeInSync, Commit, CreateTopic, DeleteTopic, Gather, Leave
from coordinators.dsbs.options import Settings
from coordinators.dsbs.simulation.cluster import Cluster, Conditions, Node
from coordinators.dsbs.tables.rows import TopicRow
from coordinators.errors import CoordinationError
from coordinators.model import DEFAULT_SETTINGS, NO_LEADER, Committed, TopicPartition
from coordinators.placement import group_home

BROKERS_MIN: Final = 3
BROKERS_MAX: Final = 6
DEEDS: Final = 25
PAUSE_MS_MAX: Final = 1200
TOPICS: Final = ("orders", "clicks", "logs")
NEVER_MADE: Final = "archive"  # groups commit in it, and no deletion takes that away
GROUPS: Final = ("readers", "auditors")
AGREE_WITHIN_MS: Final = 12_000
INCARNATIONS_PER_DEED_MAX: Final = 4


class Violation(AssertionError):
    """Something that must hold did not; the message has the seed."""


@dataclass(slots=True)
class Acknowledged:
    """A change that was answered: who had it then, less those whose disk was wiped since."""

    generation: int
    holders: set[int]


@dataclass(slots=True)
class Ledger:
    """What the run was promised."""

    leaders: dict[tuple[object, ...], int] = field(default_factory=dict)
    created: dict[str, list[Acknowledged]] = field(default_factory=dict)
    deleted: dict[str, list[Acknowledged]] = field(default_factory=dict)
    committed: dict[tuple[str, TopicPartition], set[int]] = field(default_factory=dict)


class Story:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.chance = Random(f"story {seed}")
        size = self.chance.randint(BROKERS_MIN, BROKERS_MAX)
        crowd = self.chance.random() < 0.3  # the rumours of a crowd, among few
        settings = Settings(push_all_max=1, fanout=2) if crowd else Settings()
        self.cluster = Cluster(size, seed, settings)
        self.cluster.observe = self._observe
        self.promised = Ledger()
        self.lossy = False
        self._hashes: dict[int, int] = {}

    # --- what happens -------------------------------------------------------------------------------------

    def run(self) -> str:
        """The trace. Raises `Violation`."""
        self.cluster.start_all()
        self.cluster.run(2000)
        for _ in range(DEEDS):
            self.chance.choice(self._deeds())()
            self.cluster.run(self.chance.randrange(PAUSE_MS_MAX))
        self._make_peace()
        self._check_end()
        if self.chance.random() < 0.3:
            self._lose_one()
        if self.chance.random() < 0.3:
            self._restart_everything()
        return self.cluster.trace

    def _deeds(self) -> list[Callable[[], None]]:
        return [
            self._create, self._create, self._delete, self._change_in_sync, self._commit, self._commit, self._commit,
            self._crash, self._leave, self._restart, self._restart, self._wipe, self._split, self._deafen,
            self._disturb, self._heal,
        ]  # fmt: skip

    def _any_node(self) -> Node | None:
        nodes = [node for node in self.cluster.nodes.values() if node.member is not None]
        return self.chance.choice(nodes) if nodes else None

    def _create(self) -> None:
        node = self._any_node()
        if node is not None:
            name, partitions = self.chance.choice(TOPICS), self.chance.randint(1, 4)
            replicas = self.chance.randint(1, min(3, len(self.cluster.nodes)))
            token = self.cluster.token()
            self._ask(node, token, name, CreateTopic(token, name, partitions, replicas, DEFAULT_SETTINGS))

    def _delete(self) -> None:
        node = self._any_node()
        if node is not None:
            token, name = self.cluster.token(), self.chance.choice(TOPICS)
            self._ask(node, token, name, DeleteTopic(token, name))

    def _ask(self, node: Node, token: int, name: str, event: CreateTopic | DeleteTopic) -> None:
        try:
            self.cluster.do(node.broker.id, event)
        except CoordinationError:
            return
        generation = node.member.table.topics[name].generation if node.member else 0
        self.cluster.run_until(lambda: token in node.finished, 3000)
        if token in node.finished:
            promises = self.promised.created if isinstance(event, CreateTopic) else self.promised.deleted
            holders = set(node.finished[token].known_to)
            promises.setdefault(name, []).append(Acknowledged(generation, holders))

    def _change_in_sync(self) -> None:
        node = self._any_node()
        machine = node.member if node else None
        if node is None or machine is None:
            return
        for row in machine.table.topics.values():
            for number in range(len(row.replicas)):
                partition = topics.recorded(machine.table, row, number)
                if partition.leader == node.broker.id:
                    others = [replica for replica in partition.replicas if self.chance.random() < 0.7]
                    in_sync = frozenset([*others, node.broker.id])
                    self.cluster.do(
                        node.broker.id, ChangeInSync(TopicPartition(row.name, number), in_sync, partition.epoch)
                    )
                    return

    def _commit(self) -> None:
        """A consumer takes up a group where its home says, and commits some messages later."""
        group, at = self.chance.choice(GROUPS), TopicPartition(self.chance.choice((*TOPICS, NEVER_MADE)), 0)
        node = self._any_node()
        if node is None or node.member is None:
            return
        home = self.cluster.nodes[group_home(group, topics.live_brokers(node.member.table))]
        found = self._gathered(home, group)
        if found is None or home.member is None:
            return
        place = found.get(at)
        known = self.promised.committed.setdefault((group, at), set())
        if place is not None and place.offset not in known:
            self._fail(f"group {group} begins at {place.offset}, where nobody committed: {sorted(known)}")
        offset = self.chance.randint(1, 100) + (0 if place is None else place.offset)
        known.add(offset)
        self.cluster.do(home.broker.id, Commit(group, {at: Committed(offset)}, self.cluster.token()))

    def _gathered(self, home: Node, group: str) -> dict[TopicPartition, Committed] | None:
        if home.member is None:
            return None
        if group not in home.member.offsets.gathered:
            token = self.cluster.token()
            self.cluster.do(home.broker.id, Gather(token, group))
            self.cluster.run_until(lambda: token in home.finished, 3000)
            if token not in home.finished or home.member is None:
                return None
        return home.member.offsets.committed(group)

    # --- faults -------------------------------------------------------------------------------------------

    def _crash(self) -> None:
        node = self._any_node()
        if node is not None:
            self.cluster.crash(node.broker.id)

    def _leave(self) -> None:
        """A broker is stopped as it should be, or all of them are at once: each says goodbye."""
        node = self._any_node()
        if node is not None:
            all_of_them = self.chance.random() < 0.2
            self._say_goodbye(self.cluster.nodes.values() if all_of_them else [node])

    def _say_goodbye(self, nodes: Iterable[Node]) -> None:
        members = [node for node in nodes if node.member is not None]
        for node in members:
            self.cluster.do(node.broker.id, Leave(self.cluster.token()))
        self.cluster.run(self.chance.randrange(PAUSE_MS_MAX))
        for node in members:
            self.cluster.crash(node.broker.id)

    def _restart(self) -> None:
        down = [number for number, node in self.cluster.nodes.items() if node.machine is None]
        if down:
            self.cluster.start(self.chance.choice(down))

    def _wipe(self) -> None:
        """A broker loses its disk. What it alone had is gone, and no promise holds by it any more."""
        node = self._any_node()
        if node is None or self.chance.random() < 0.5:
            return
        self.lossy = True
        self.cluster.crash(node.broker.id, wiped=True)
        for promises in (self.promised.created, self.promised.deleted):
            for promise in (one for many in promises.values() for one in many):
                promise.holders.discard(node.broker.id)

    def _split(self) -> None:
        numbers = sorted(self.cluster.nodes)
        self.chance.shuffle(numbers)
        cut = self.chance.randint(1, len(numbers) - 1)
        self.cluster.split([numbers[:cut], numbers[cut:]])

    def _deafen(self) -> None:
        """One broker is heard and hears nothing, or the reverse."""
        numbers = sorted(self.cluster.nodes)
        one = self.chance.choice(numbers)
        others = [number for number in numbers if number != one]
        into = self.chance.random() < 0.5
        self.cluster.conditions.cut = {(other, one) if into else (one, other) for other in others}

    def _disturb(self) -> None:
        self.cluster.conditions = Conditions(
            delay_ms=(1, self.chance.choice((10, 100, 400))),
            dropped=self.chance.choice((0.0, 0.05, 0.3)),
            duplicated=self.chance.choice((0.0, 0.2)),
            cut=self.cluster.conditions.cut,
        )

    def _heal(self) -> None:
        self.cluster.heal()

    # --- what must hold -----------------------------------------------------------------------------------

    def _fail(self, what: str) -> None:
        raise Violation(f"seed {self.seed}, at {self.cluster.now_ms} ms: {what}")

    def _observe(self, node: Node) -> None:
        """No two brokers ever lead one partition at one epoch, in anybody's table."""
        machine = node.machine
        if machine is None or self._hashes.get(node.broker.id) == machine.table.hash:
            return
        self._hashes[node.broker.id] = machine.table.hash
        for row in machine.table.topics.values():
            for number in range(len(row.replicas)):
                partition = topics.recorded(machine.table, row, number)
                key = (row.name, row.generation, row.creator, row.replicas, number, partition.epoch)
                known = self.promised.leaders.setdefault(key, partition.leader)
                if known != partition.leader:
                    self._fail(f"{row.name}-{number} has leaders {known} and {partition.leader} at {partition.epoch}")

    def _make_peace(self) -> None:
        self.cluster.heal()
        self.cluster.start_all()
        if not self.cluster.run_until(self.cluster.agreed, AGREE_WITHIN_MS):
            self._fail(f"no agreement within {AGREE_WITHIN_MS} ms: {self._differences()}")
        heartbeat_ms = self.cluster.settings.heartbeat_ms
        self.cluster.run_until(self._settled, AGREE_WITHIN_MS)
        self.cluster.run(3 * heartbeat_ms)
        if not self._settled():
            self._fail(f"agreement did not last: {self._differences()}")

    def _settled(self) -> bool:
        """Agreed, and all brokers are known to live, as they do."""
        members = self.cluster.members()
        if len(members) < len(self.cluster.nodes) or not self.cluster.agreed():
            return False
        return all(row.status == 0 for row in members[0].table.members.values())

    def _differences(self) -> str:
        return "; ".join(
            f"{node.broker.id}: {node.machine.phase.value if node.machine else 'down'} "
            f"{node.machine.table.hash if node.machine else 0:x}"
            for node in self.cluster.nodes.values()
        )

    def _check_end(self) -> None:
        table = self.cluster.members()[0].table
        for name, promises in self.promised.created.items():
            self._check_kept(name, promises, table.topics.get(name))
        for name, promises in self.promised.deleted.items():
            self._check_kept(name, promises, table.topics.get(name), deleted=True)
        for row in table.topics.values():
            for number in range(len(row.replicas)):
                partition = topics.seen(table, row, number)
                if partition.leader == NO_LEADER and (partition.in_sync or not self.lossy):
                    self._fail(f"{row.name}-{number} has no leader though all brokers live")
        self._check_groups()
        most = INCARNATIONS_PER_DEED_MAX * DEEDS
        if any(row.incarnation > most for row in table.members.values()):
            self._fail(f"incarnations ran away: {table.members}")

    def _check_kept(
        self, name: str, promises: list[Acknowledged], row: TopicRow | None, *, deleted: bool = False
    ) -> None:
        """What was acknowledged by a broker that kept its disk is known to all, and not undone by older tables."""
        for promise in promises:
            if promise.holders:
                generation = 0 if row is None else row.generation
                undone = deleted and row is not None and not row.deleted and generation == promise.generation
                if generation < promise.generation or undone:
                    self._fail(
                        f"topic {name}: generation {promise.generation} was acknowledged, and now there is {row}"
                    )

    def _check_groups(self) -> None:
        """Where no disk was lost, a group has its place: it skips nothing that it has not read."""
        for group, at in self.promised.committed:
            if at.topic == NEVER_MADE and not self.lossy:
                live = [number for number, node in self.cluster.nodes.items() if node.machine is not None]
                home = self.cluster.nodes[group_home(group, live)]
                if at not in (self._gathered(home, group) or {}):
                    self._fail(f"group {group} has lost its place")

    def _lose_one(self) -> None:
        """One broker dies for good: what it led has a leader again wherever a replica in sync lives."""
        settings = self.cluster.settings
        self.cluster.run(settings.timeout_ms + 2 * settings.copy_ms)  # copies that were lost are sent again
        lost = self.chance.choice([group_home(GROUPS[0], self.cluster.nodes), *self.cluster.nodes])
        self.cluster.crash(lost)
        self.cluster.run(settings.timeout_ms + settings.suspicion_ms + 6 * settings.heartbeat_ms)
        table = self.cluster.members()[0].table
        for row in table.topics.values():
            for number in range(len(row.replicas)):
                partition = topics.seen(table, row, number)
                if partition.leader == NO_LEADER and set(partition.in_sync) - {lost}:
                    self._fail(f"{row.name}-{number} has no leader {partition}, and only {lost} is dead")
        self._check_groups()
        self._make_peace()

    def _restart_everything(self) -> None:
        """All brokers stop and start again: nothing is forgotten."""
        before = set(self.cluster.members()[0].table.topics.items())
        if self.chance.random() < 0.5:
            self._say_goodbye(self.cluster.nodes.values())
        for number in self.cluster.nodes:
            self.cluster.crash(number)
        self._make_peace()
        if set(self.cluster.members()[0].table.topics.items()) != before:
            self._fail("a restart of all brokers changed the topics")


def run(seed: int) -> str:
    return Story(seed).run()
