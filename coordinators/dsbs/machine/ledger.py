"""One broker's tables, its own row in them, its phase, and what the step under way asks of the shell. Pure.

NEW     -> JOINING  started: say hello to all that are known, fetch their tables
JOINING -> MEMBER   all of them answered, or `join_ms` passed
JOINING -> OUT      another live broker has this id
MEMBER  -> LEAVING  told to stop: this broker's row says so, and peers inherit what it led
MEMBER  -> OUT      peers know another live broker under this id
LEAVING -> OUT      all peers know, or `acknowledge_ms` passed
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from coordinators.dsbs.machine.events import Changed, Persist, Send
from coordinators.dsbs.tables.messages import Envelope
from coordinators.dsbs.tables.rows import MemberRow, OffsetRow, Row, Status, TableRow

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from coordinators.dsbs.machine.events import Action
    from coordinators.dsbs.options import Settings
    from coordinators.dsbs.tables.messages import Body
    from coordinators.dsbs.tables.tables import Table
    from coordinators.model import Broker

T = TypeVar("T")


class Phase(Enum):
    NEW = "new"
    JOINING = "joining"
    MEMBER = "member"
    LEAVING = "leaving"
    OUT = "out"


TRANSITIONS: Final = {
    (Phase.NEW, Phase.JOINING),
    (Phase.JOINING, Phase.MEMBER),
    (Phase.JOINING, Phase.OUT),
    (Phase.MEMBER, Phase.LEAVING),
    (Phase.MEMBER, Phase.OUT),
    (Phase.LEAVING, Phase.OUT),
}


class Chance(Protocol):
    """A source of random choices, lent by the shell: seeded in a simulation (`random.Random` is one)."""

    def sample(self, population: Sequence[T], k: int) -> list[T]: ...

    def randrange(self, start: int, /) -> int: ...


class Ledger:
    def __init__(self, me: MemberRow, table: Table, settings: Settings, chance: Chance) -> None:
        self.me = me
        self.phase = Phase.NEW
        self.table = table
        self.settings = settings
        self.chance = chance
        self.refused: dict[str, int] = {}
        self._sequence = 0
        self._rows: list[Row] = []
        self._on_disk: Sequence[Row] = ()
        self._rest: list[Action] = []
        self._members_changed = False
        self._topics_changed: set[str] = set()
        # Whether this broker's disk knows nothing of it. Its own row goes there when it has joined, and not before, so
        # that one that is ended in the middle is new again.
        self.new = me.broker.id not in table.members
        self.lived_before = False  # others know an earlier session of this broker

    # --- the tables ---------------------------------------------------------------------------------------

    def write(self, rows: Iterable[TableRow]) -> list[TableRow]:
        """Merge rows, to be persisted; the answer is what was news."""
        news = self.table.merge(rows)
        for row in news:
            if isinstance(row, MemberRow):
                self._members_changed = True
            else:
                self._topics_changed.add(row.topic_name)
        self._rows += news
        return news

    def keep(self, rows: Iterable[OffsetRow]) -> None:
        self._rows += rows

    def on_disk(self, rows: Sequence[Row]) -> None:
        """These rows of the step under way need not be persisted any more."""
        self._on_disk = rows

    def become(self, incarnation: int, status: Status) -> MemberRow:
        """Publish this broker's own member row with a new incarnation or status."""
        self.me = replace(self.me, incarnation=incarnation, status=status)
        self.write([self.me])
        return self.me

    def joined(self) -> None:
        """From now on this broker's own row is on its disk."""
        if self.new:
            self.new = False
            self._rows.append(self.me)

    # --- the others ---------------------------------------------------------------------------------------

    def peers(self) -> list[MemberRow]:
        """The live brokers, without this one."""
        mine = self.me.broker.id
        return [row for number, row in self.table.members.items() if row.live and number != mine]

    @property
    def crowded(self) -> bool:
        """Too many brokers to tell all of them everything at once."""
        return len(self.table.members) - 1 > self.settings.push_all_max

    def some(self, rows: Sequence[T], most: int) -> list[T]:
        return list(rows) if len(rows) <= most else self.chance.sample(rows, most)

    def send(self, to: Iterable[Broker], body: Body) -> None:
        receivers = tuple(to)
        if receivers:
            self._sequence += 1
            self._rest.append(Send(receivers, Envelope(self.settings.cluster, self.me, self._sequence, body)))

    def ask(self, action: Action) -> None:
        self._rest.append(action)

    def refuse(self, reason: str) -> None:
        """Count bad input by its reason."""
        self.refused[reason] = self.refused.get(reason, 0) + 1

    def take(self) -> list[Action]:
        """The actions of the step: the disk first, then what the broker sees, then what others hear."""
        actions: list[Action] = []
        # A new broker's own row comes last: without it the next process is new as well.
        written = [row for row in self._rows if row not in self._on_disk and not (self.new and row.key == self.me.key)]
        if written:
            actions.append(Persist(tuple(written)))
        if self._members_changed or self._topics_changed:
            actions.append(Changed(self._members_changed, frozenset(self._topics_changed)))
        actions += self._rest
        self._rows, self._rest, self._on_disk = [], [], ()
        self._members_changed, self._topics_changed = False, set()
        return actions
