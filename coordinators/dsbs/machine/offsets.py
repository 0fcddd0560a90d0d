"""Consumer offsets on the broker that serves the group: a local write, copied in the background. Pure.

A group's home is the first live broker in its succession (`placement.group_succession`), the same on every broker with
the same view. A commit there is persisted and done; the brokers next in succession get copies every `copy_ms`, again
and again until they say that they keep them. A group's first place in a partition is copied at once, and is committed
when they keep it: without one a consumer may begin at the latest message. A broker that comes to serve a group asks
those next in succession for what they hold (`gathered`) before it answers, so after a takeover a group begins where it
had committed a moment earlier: messages come twice, and none is skipped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from coordinators.dsbs.machine.topics import live_brokers
from coordinators.dsbs.tables.messages import Copy, TellOffsets
from coordinators.dsbs.tables.rows import Key, OffsetRow, TopicRow, leap
from coordinators.dsbs.tables.tables import outranks
from coordinators.errors import InvalidRequest
from coordinators.model import Committed
from coordinators.placement import group_succession

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from coordinators.dsbs.machine.ledger import Ledger
    from coordinators.model import TopicPartition

OFFSET_ROWS_MAX: Final = 1_000_000
COPIED_AT_ONCE_MAX: Final = 1000
_FIRST_TOKEN: Final = 2**40  # those of copies, above those of requests: a `Kept` names one of either


class InFlight(NamedTuple):
    """The copies that a broker was sent last."""

    token: int
    rows: tuple[OffsetRow, ...]
    since_ms: int


class Offsets:
    def __init__(self, ledger: Ledger, rows: Iterable[OffsetRow] = ()) -> None:
        self._ledger = ledger
        self._groups: dict[str, dict[TopicPartition, OffsetRow]] = {}
        self._in_topic: dict[str, set[str]] = {}
        self._total = 0
        self._begun: dict[int, tuple[OffsetRow, ...]] = {}  # first places, by the token of who waits for their copies
        self._alone: set[Key] = set()  # first places of which nobody has said yet that he keeps them
        self._uncopied: dict[int, dict[Key, OffsetRow]] = {}
        self._in_flight: dict[int, InFlight] = {}
        self._successions: dict[str, tuple[int, ...]] = {}
        self._next_copy_ms: int | None = None
        self._token = _FIRST_TOKEN
        self.gathered: set[str] = set()
        for row in rows:
            self._put(row)
        for name in list(ledger.table.topics):
            self.topic_changed(ledger.table.topics[name])

    # --- the home's part ----------------------------------------------------------------------------------

    def placed(self, group: str, offsets: Mapping[TopicPartition, Committed], at_ms: int) -> list[OffsetRow]:
        """The rows of a commit. Raises `InvalidRequest` where there is no room."""
        held = self._groups.get(group, {})
        if self._total + len(offsets) > OFFSET_ROWS_MAX:
            raise InvalidRequest(f"there are {self._total} committed places already, of at most {OFFSET_ROWS_MAX}")
        return [self._next(group, at, place, held.get(at), at_ms) for at, place in offsets.items()]

    def begins(self, group: str, ats: Iterable[TopicPartition]) -> bool:
        """Whether one of these is a first place: new, or one of which nobody else has kept a copy yet."""
        held = self._groups.get(group)
        if held is None or any(at not in held for at in ats):
            return True
        return bool(self._alone) and any(held[at].key in self._alone for at in ats)

    def commit(self, group: str, rows: Sequence[OffsetRow], now_ms: int, token: int) -> list[int]:
        """Take in the rows of a commit; whom to send those that are first at once, under `token`."""
        held = self._groups.get(group, {})
        first = tuple(row for row in rows if row.at not in held or row.key in self._alone) if token else ()
        for row in rows:
            self._put(row)
        self._ledger.keep(rows)
        self._to_copy(group, rows)
        if self._next_copy_ms is None and self._uncopied:
            self._next_copy_ms = now_ms + self._ledger.settings.copy_ms
        holders = self._holders(group) if first else []
        if holders:
            self._alone.update(row.key for row in first)
            self._begun[token] = first
        return holders

    def begun(self, token: int) -> tuple[OffsetRow, ...]:
        return self._begun.get(token, ())

    def finished(self, token: int) -> None:
        """Nobody waits for those copies any more."""
        self._begun.pop(token, None)

    def _next(self, group: str, at: TopicPartition, place: Committed, held: OffsetRow | None, at_ms: int) -> OffsetRow:
        generation = self._generation(at.topic)
        version = held.version + 1 if held is not None and held.generation == generation else 1
        return OffsetRow(group, *at, generation, max(version, at_ms), place.offset, place.leader_epoch, place.metadata)

    def _generation(self, topic: str) -> int:
        row = self._ledger.table.topics.get(topic)
        return 0 if row is None else row.generation

    def committed(self, group: str) -> dict[TopicPartition, Committed]:
        rows = self._groups.get(group, {})
        return {at: Committed(row.offset, row.leader_epoch, row.metadata) for at, row in rows.items()}

    def served(self) -> Iterator[tuple[str, Mapping[TopicPartition, OffsetRow]]]:
        """The groups whose home this is."""
        for group, rows in self._groups.items():
            if self._succession(group)[:1] == (self._ledger.me.broker.id,):
                yield group, rows

    def whom_to_ask(self, group: str) -> list[int]:
        """Who may hold copies: those next in succession."""
        mine = self._ledger.me.broker.id
        others = [broker for broker in group_succession(group, live_brokers(self._ledger.table)) if broker != mine]
        return others[: self._ledger.settings.offset_copies + 1]

    # --- copies -------------------------------------------------------------------------------------------

    def copy(self, now_ms: int) -> None:
        """Send what is not known to be kept; again and again until it is."""
        self._next_copy_ms = None
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
            self._next_copy_ms = now_ms + self._ledger.settings.copy_ms

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
            if self._alone:
                self._alone.discard(row.key)
            if rows.get(row.key) is row:
                del rows[row.key]
        if not rows:
            self._uncopied.pop(broker, None)

    def copied_here(self, rows: Iterable[OffsetRow]) -> None:
        """Keep copies of another broker's groups, and what it tells of a group that came to be served here."""
        for row in rows:
            held = self._groups.get(row.group, {}).get(row.at)
            if row.generation < self._generation(row.topic) or not outranks(row, held):
                continue
            if leap(row, held) is not None or (held is None and self._total >= OFFSET_ROWS_MAX):
                self._ledger.refuse("offset beyond bounds")
                continue
            self._put(row)
            self._ledger.keep([row])

    def tell(self, group: str, token: int) -> TellOffsets:
        return TellOffsets(tuple(self._groups.get(group, {}).values()), token)

    def next_ms(self) -> int | None:
        return self._next_copy_ms

    def _to_copy(self, group: str, rows: Iterable[OffsetRow]) -> None:
        for broker in self._holders(group):
            self._uncopied.setdefault(broker, {}).update((row.key, row) for row in rows)

    def _holders(self, group: str) -> list[int]:
        """The others that hold a group's rows."""
        mine = self._ledger.me.broker.id
        return [broker for broker in self._succession(group) if broker != mine]

    def _succession(self, group: str) -> tuple[int, ...]:
        """The home and the holders of its copies; remembered until somebody comes or goes."""
        found = self._successions.get(group)
        if found is None:
            order = group_succession(group, live_brokers(self._ledger.table))
            found = self._successions[group] = order[: 1 + self._ledger.settings.offset_copies]
        return found

    # --- changes around it --------------------------------------------------------------------------------

    def members_changed(self, now_ms: int) -> None:
        """Brokers came or went: groups have new homes and their copies new places."""
        before, self._successions = self._successions, {}
        mine = self._ledger.me.broker.id
        self.gathered = {group for group in self.gathered if self._succession(group)[:1] == (mine,)}
        for group, rows in self._groups.items():
            self._recopy(group, rows.values(), before.get(group, ()), self._succession(group))
        if self._uncopied:
            self.copy(now_ms)

    def _recopy(self, group: str, rows: Iterable[OffsetRow], before: tuple[int, ...], after: tuple[int, ...]) -> None:
        """The home sees to the copies; whoever holds any sees to the home, where that is new."""
        mine = self._ledger.me.broker.id
        moved = after[:1] != before[:1]
        receivers = after[1:] if after[:1] == (mine,) else after[:1] if moved else ()
        for broker in receivers:
            if moved or broker not in before:
                self._uncopied.setdefault(broker, {}).update((row.key, row) for row in rows)

    def topic_changed(self, topic: TopicRow) -> None:
        """Forget what was committed in an earlier life of the topic's name."""
        for group in list(self._in_topic.get(topic.name, ())):
            rows = self._groups[group]
            self._drop([row for row in rows.values() if row.topic == topic.name and _is_over(row, topic)])

    # --- groups that nobody uses --------------------------------------------------------------------------

    def stamps(self) -> dict[str, int]:
        """When each group committed last, in ms since 1970."""
        return {group: max(row.version for row in rows.values()) for group, rows in self._groups.items()}

    def forget(self, groups: Collection[str]) -> None:
        """They stay gathered until others are forgotten: who holds copies of them forgets them a little later, and is
        not to be asked for what he has until then."""
        self.gathered = {group for group in self.gathered if group in self._groups}
        for group in groups:
            self._drop(list(self._groups.get(group, {}).values()))

    def _drop(self, rows: Iterable[OffsetRow]) -> None:
        for row in rows:
            of_group = self._groups[row.group]
            del of_group[row.at]
            self._total -= 1
            self._alone.discard(row.key)
            for uncopied in self._uncopied.values():
                uncopied.pop(row.key, None)
            if all(at.topic != row.topic for at in of_group):
                self._in_topic[row.topic].discard(row.group)
                if not self._in_topic[row.topic]:
                    del self._in_topic[row.topic]
            if not of_group:
                del self._groups[row.group]
                self._successions.pop(row.group, None)

    def rows(self) -> Iterator[OffsetRow]:
        for rows in self._groups.values():
            yield from rows.values()

    def _put(self, row: OffsetRow) -> None:
        rows = self._groups.setdefault(row.group, {})
        if outranks(row, rows.get(row.at)):
            self._total += row.at not in rows
            rows[row.at] = row
            self._in_topic.setdefault(row.topic, set()).add(row.group)


def _is_over(row: OffsetRow, topic: TopicRow) -> bool:
    return row.generation < topic.generation or (topic.deleted and row.generation == topic.generation)
