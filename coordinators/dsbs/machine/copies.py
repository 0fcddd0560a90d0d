"""Copies of what groups commit, sent to the brokers next in succession until they keep them. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from coordinators.dsbs.machine.topics import live_brokers
from coordinators.dsbs.tables.messages import Copy
from coordinators.dsbs.tables.rows import Key, OffsetRow
from coordinators.placement import group_succession

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from coordinators.dsbs.machine.ledger import Ledger
    from coordinators.model import TopicPartition

COPIED_AT_ONCE_MAX: Final = 1000
_FIRST_TOKEN: Final = 2**40  # those of copies, above those of requests: a `Kept` names one of either


class InFlight(NamedTuple):
    """The copies that a broker was sent last."""

    token: int
    rows: tuple[OffsetRow, ...]
    since_ms: int


class Copies:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._mine = ledger.me.broker.id
        self._begun: dict[int, tuple[OffsetRow, ...]] = {}  # first places, by the token of who waits for their copies
        self.alone: set[Key] = set()  # first places that no other broker has said yet to keep
        self._uncopied: dict[int, dict[Key, OffsetRow]] = {}
        self._in_flight: dict[int, InFlight] = {}
        self._successions: dict[str, tuple[int, ...]] = {}
        self.next_ms: int | None = None
        self._token = _FIRST_TOKEN

    def add(self, group: str, rows: Iterable[OffsetRow], now_ms: int) -> None:
        """Copy these rows from now on."""
        for broker in self._holders(group):
            self._uncopied.setdefault(broker, {}).update((row.key, row) for row in rows)
        if self.next_ms is None and self._uncopied:
            self.next_ms = now_ms + self._ledger.settings.copy_ms

    def begin(self, group: str, first: tuple[OffsetRow, ...], token: int) -> list[int]:
        """Whom to send first places at once; somebody waits under `token` until they are kept."""
        holders = self._holders(group) if first else []
        if holders:
            self.alone.update(row.key for row in first)
            self._begun[token] = first
        return holders

    def begun(self, token: int) -> tuple[OffsetRow, ...]:
        return self._begun.get(token, ())

    def finished(self, token: int) -> None:
        """Nobody waits for those copies any more."""
        self._begun.pop(token, None)

    def send(self, now_ms: int) -> None:
        """Send what is not known to be kept; again and again until it is."""
        self.next_ms = None
        for broker, rows in list(self._uncopied.items()):
            member = self._ledger.table.members.get(broker)
            if member is None or not member.live:
                del self._uncopied[broker]
            elif not self._awaited(broker, now_ms):
                self._token += 1
                batch = tuple(rows.values())[:COPIED_AT_ONCE_MAX]
                self._in_flight[broker] = InFlight(self._token, batch, now_ms)
                self._ledger.send([member.broker], Copy(batch, self._token))
        if self._uncopied:
            self.next_ms = now_ms + self._ledger.settings.copy_ms

    def _awaited(self, broker: int, now_ms: int) -> bool:
        flight = self._in_flight.get(broker)
        return flight is not None and now_ms - flight.since_ms < self._ledger.settings.timeout_ms

    def kept(self, broker: int, token: int) -> None:
        kept = self._begun.get(token, ())
        flight = self._in_flight.get(broker)
        if flight is not None and flight.token == token:
            del self._in_flight[broker]
            kept = flight.rows
        rows = self._uncopied.get(broker, {})
        for row in kept:
            if self.alone:
                self.alone.discard(row.key)
            if rows.get(row.key) is row:
                del rows[row.key]
        if not rows:
            self._uncopied.pop(broker, None)

    def whom_to_ask(self, group: str) -> list[int]:
        """The brokers that may hold copies: those next in succession."""
        order = group_succession(group, live_brokers(self._ledger.table))
        others = [broker for broker in order if broker != self._mine]
        return others[: self._ledger.settings.offset_copies + 1]

    def _holders(self, group: str) -> list[int]:
        """The others that hold a group's rows."""
        return [broker for broker in self.succession(group) if broker != self._mine]

    def succession(self, group: str) -> tuple[int, ...]:
        """The home and the holders of its copies; remembered until somebody comes or goes."""
        found = self._successions.get(group)
        if found is None:
            order = group_succession(group, live_brokers(self._ledger.table))
            found = self._successions[group] = order[: 1 + self._ledger.settings.offset_copies]
        return found

    def members_changed(self, groups: Mapping[str, Mapping[TopicPartition, OffsetRow]], now_ms: int) -> None:
        """Brokers came or went: the copies of groups have new places."""
        before, self._successions = self._successions, {}
        for group, rows in groups.items():
            self._recopy(rows.values(), before.get(group, ()), self.succession(group))
        if self._uncopied:
            self.send(now_ms)

    def _recopy(self, rows: Iterable[OffsetRow], before: tuple[int, ...], after: tuple[int, ...]) -> None:
        """The home sees to the copies; whoever holds any sees to the home, where that is new."""
        moved = after[:1] != before[:1]
        receivers = after[1:] if after[:1] == (self._mine,) else after[:1] if moved else ()
        for broker in receivers:
            if moved or broker not in before:
                self._uncopied.setdefault(broker, {}).update((row.key, row) for row in rows)

    def drop(self, row: OffsetRow) -> None:
        self.alone.discard(row.key)
        for uncopied in self._uncopied.values():
            uncopied.pop(row.key, None)

    def forget(self, group: str) -> None:
        self._successions.pop(group, None)
