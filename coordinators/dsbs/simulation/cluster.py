"""Whole clusters of the real machine on a network that exists in memory, in virtual time, from one seed.

The network delays, drops, duplicates and reorders messages, and can be cut between any two brokers, in one direction or
both. A broker's disk is what its machine persisted: it survives a crash, unless it is wiped. All that happens is drawn
from one seeded source and hashed into `trace`: the same seed gives the same trace, bit for bit.
"""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass, field
from hashlib import blake2b
from random import Random
from typing import TYPE_CHECKING, Final

from coordinators.dsbs.machine.events import (
    Changed,
    Finished,
    Heard,
    Joined,
    Lost,
    Persist,
    Received,
    Refused,
    Send,
    Start,
    Wake,
)
from coordinators.dsbs.machine.ledger import Phase
from coordinators.dsbs.machine.machine import Machine
from coordinators.dsbs.options import Settings
from coordinators.dsbs.tables.messages import Heartbeat, Here, encode
from coordinators.dsbs.tables.rows import Key, OffsetRow, Row
from coordinators.dsbs.tables.tables import Table
from coordinators.model import Broker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from coordinators.dsbs.machine.events import Event

SESSION_BITS: Final = 62
FIRST_PORT: Final = 9000


@dataclass(slots=True)
class Conditions:
    """What the network does to messages. `cut` holds pairs (from, to) that nothing passes."""

    delay_ms: tuple[int, int] = (1, 5)
    dropped: float = 0.0
    duplicated: float = 0.0
    cut: set[tuple[int, int]] = field(default_factory=set)


@dataclass(slots=True)
class Node:
    """A broker's place: its number, its address, its disk, and the process while one runs."""

    place: int
    broker: Broker
    disk: dict[Key, Row] = field(default_factory=dict)
    machine: Machine | None = None
    life: int = 0
    woken_at_ms: int = -1
    counted: tuple[int, bool] | None = None
    finished: dict[int, Finished] = field(default_factory=dict)
    refused: str | None = None
    heard: int = 0

    @property
    def member(self) -> Machine | None:
        """The machine, if it serves."""
        return self.machine if self.machine is not None and self.machine.phase is Phase.MEMBER else None


class Cluster:
    """`observe` is called with each node after each step of its machine."""

    def __init__(self, size: int, seed: int, settings: Settings | None = None) -> None:
        self.chance = Random(seed)
        self.settings = settings or Settings()
        self.conditions = Conditions()
        self.now_ms = 0
        self.nodes = {number: Node(number, address(number)) for number in range(1, size + 1)}
        self.sent: dict[str, list[int]] = {}  # kind -> messages, bytes
        self.observe: Callable[[Node], None] | None = None
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._number = 0
        self._trace = blake2b(digest_size=16)
        self._tables: Counter[int] = Counter()  # table hash -> brokers that run and hold it
        self._serving = 0
        self._token = 0

    @property
    def trace(self) -> str:
        return self._trace.copy().hexdigest()

    # --- brokers ------------------------------------------------------------------------------------------

    def start(self, number: int, *, table: Table | None = None, session: int | None = None) -> Node:
        """Start a broker's process on what its disk holds (or on a `table` that is given it)."""
        node = self.nodes[number]
        assert node.machine is None, f"broker {number} runs already"
        offsets = [row for row in node.disk.values() if isinstance(row, OffsetRow)]
        rows = [row for row in node.disk.values() if not isinstance(row, OffsetRow)]
        session = self.chance.getrandbits(SESSION_BITS) if session is None else session
        contacts = [other.broker for other in self.nodes.values()]
        table = Table(rows) if table is None else table
        node.machine = Machine(node.broker, session, contacts, self.settings, self.chance, table, offsets)
        node.life += 1
        node.woken_at_ms = -1
        node.refused = None
        self.do(number, Start())
        return node

    def start_all(self) -> None:
        for number, node in self.nodes.items():
            if node.machine is None:
                self.start(number)

    def crash(self, number: int, *, wiped: bool = False) -> None:
        node = self.nodes[number]
        node.machine = None
        self._count(node)
        if wiped:
            node.disk.clear()

    def do(self, number: int, event: Event) -> None:
        """Let something happen to a broker now. Raises what the machine refuses with."""
        node = self.nodes.get(number)
        if node is None or node.machine is None:
            return
        self._note(f"{number} {event!r}")
        actions = node.machine.step(event, self.now_ms)
        self._count(node)
        self._perform(node, actions)
        self._plan_waking(node)
        if self.observe is not None:
            self.observe(node)

    def token(self) -> int:
        self._token += 1
        return self._token

    def members(self) -> list[Machine]:
        return [node.member for node in self.nodes.values() if node.member is not None]

    def agreed(self) -> bool:
        """Whether all brokers that run serve, and hold the same tables."""
        return len(self._tables) <= 1 and self._serving == self._tables.total()

    def _count(self, node: Node) -> None:
        """Keep `agreed` cheap, for it is asked after every event."""
        if node.counted is not None:
            table_hash, serves = node.counted
            self._tables[table_hash] -= 1
            self._serving -= serves
            if not self._tables[table_hash]:
                del self._tables[table_hash]
        node.counted = None
        if node.machine is not None:
            node.counted = (node.machine.table.hash, node.member is not None)
            self._tables[node.counted[0]] += 1
            self._serving += node.counted[1]

    # --- time ---------------------------------------------------------------------------------------------

    def run(self, for_ms: int) -> None:
        self.run_until(lambda: False, for_ms)

    def run_until(self, reached: Callable[[], bool], within_ms: int) -> bool:
        """Let virtual time pass until something is so, or the time is over."""
        end_ms = self.now_ms + within_ms
        while not reached():
            if not self._queue or self._queue[0][0] > end_ms:
                self.now_ms = end_ms
                return reached()
            self.now_ms, _, happen = heapq.heappop(self._queue)
            happen()
        return True

    def _at(self, when_ms: int, happen: Callable[[], None]) -> None:
        self._number += 1
        heapq.heappush(self._queue, (when_ms, self._number, happen))

    def _plan_waking(self, node: Node) -> None:
        machine, life = node.machine, node.life
        if machine is None or machine.phase is Phase.OUT:
            return
        due_ms = max(machine.wake_ms, self.now_ms + 1)
        if not self.now_ms < node.woken_at_ms <= due_ms:
            node.woken_at_ms = due_ms
            self._at(due_ms, lambda: self._wake(node, life, due_ms))

    def _wake(self, node: Node, life: int, due_ms: int) -> None:
        if node.life == life and node.machine is not None and node.woken_at_ms == due_ms:
            node.woken_at_ms = -1
            self.do(node.place, Wake())

    # --- the network --------------------------------------------------------------------------------------

    def _perform(self, node: Node, actions: Iterable[object]) -> None:
        for action in actions:
            match action:
                case Persist(rows):
                    node.disk.update((row.key, row) for row in rows)
                case Send(to, envelope):
                    content = encode(envelope)
                    for broker in to:
                        self._send(node.place, _place(broker), envelope.body.kind, content)
                case Finished(token):
                    node.finished[token] = action
                case Refused(reason):
                    node.refused = reason
                    self._note(f"{node.place} is refused: {reason}")
                case Heard():
                    node.heard += 1
                case Joined() | Changed() | Lost():
                    self._note(f"{node.place} {action!r}")

    def _send(self, sender: int, receiver: int, kind: str, content: bytes) -> None:
        count = self.sent.setdefault(_counted_as(kind, (self.nodes.get(sender), self.nodes.get(receiver))), [0, 0])
        count[0] += 1
        count[1] += len(content)
        conditions = self.conditions
        if (sender, receiver) in conditions.cut or self.chance.random() < conditions.dropped:
            return
        copies = 2 if self.chance.random() < conditions.duplicated else 1
        for _ in range(copies):
            due_ms = self.now_ms + self.chance.randint(*conditions.delay_ms)
            self._at(due_ms, lambda: self.do(receiver, Received(content)))

    def _note(self, line: str) -> None:
        self._trace.update(f"{self.now_ms} {line}\n".encode())

    # --- faults -------------------------------------------------------------------------------------------

    def split(self, sides: Iterable[Iterable[int]]) -> None:
        """Nothing passes between the sides, in either direction."""
        groups = [set(side) for side in sides]
        self.conditions.cut = {
            (a, b) for one in groups for other in groups if one is not other for a in one for b in other
        }

    def heal(self) -> None:
        self.conditions = Conditions()


def _counted_as(kind: str, ends: Iterable[Node | None]) -> str:
    """Heartbeats are what goes on all the time; those of a broker that joins are part of its joining."""
    if kind not in {Heartbeat.kind, Here.kind}:
        return kind
    machines = (node.machine for node in ends if node is not None)
    joining = any(machine is not None and machine.phase is Phase.JOINING for machine in machines)
    return "hello" if joining else kind


def address(place: int, broker_id: int | None = None) -> Broker:
    """A broker at a place; its id is the place's number, unless it claims another."""
    return Broker(place if broker_id is None else broker_id, f"place-{place}", FIRST_PORT, FIRST_PORT + 1)


def _place(broker: Broker) -> int:
    """Where its address leads; 0, which is nowhere, for one that is not of this network."""
    name, _, number = broker.host.partition("-")
    return int(number) if name == "place" and number.isdecimal() else 0
