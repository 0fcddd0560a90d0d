"""Consumer offsets on the broker that serves the group: a local write, copied in the background. Pure.

A group's home is the first live broker in its succession (`placement.group_succession`), the same on every broker with
the same view. A commit there is persisted and done; the brokers next in succession get copies every `copy_ms`, again
and again until they say that they keep them. A group's first place in a partition is copied at once, and is committed
when they keep it: without one a consumer may begin at the latest message. A broker that comes to serve a group asks
those next in succession for what they hold (`gathered`) before it answers, so after a takeover a group begins where it
had committed a moment earlier: messages come twice, and none is skipped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from coordinators.dsbs.machine.copies import Copies
from coordinators.dsbs.tables.messages import TellOffsets
from coordinators.dsbs.tables.rows import OffsetRow, TopicRow, leap
from coordinators.dsbs.tables.tables import outranks
from coordinators.errors import InvalidRequest
from coordinators.model import Committed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from coordinators.dsbs.machine.ledger import Ledger
    from coordinators.model import TopicPartition

OFFSET_ROWS_MAX: Final = 1_000_000


class Offsets:
    def __init__(self, ledger: Ledger, rows: Iterable[OffsetRow] = ()) -> None:
        self._ledger = ledger
        self._groups: dict[str, dict[TopicPartition, OffsetRow]] = {}
        self._in_topic: dict[str, set[str]] = {}
        self._total = 0
        self.copies = Copies(ledger)
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
        """Whether one of these is a first place: a new one, or one that no other broker keeps a copy of yet."""
        held = self._groups.get(group)
        if held is None or any(at not in held for at in ats):
            return True
        alone = self.copies.alone
        return bool(alone) and any(held[at].key in alone for at in ats)

    def commit(self, group: str, rows: Sequence[OffsetRow], now_ms: int, token: int) -> list[int]:
        """Take in the rows of a commit; whom to send those that are first at once, under `token`."""
        held = self._groups.get(group, {})
        first = tuple(row for row in rows if row.at not in held or row.key in self.copies.alone) if token else ()
        for row in rows:
            self._put(row)
        self._ledger.keep(rows)
        self.copies.add(group, rows, now_ms)
        return self.copies.begin(group, first, token)

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
            if self.copies.succession(group)[:1] == (self._ledger.me.broker.id,):
                yield group, rows

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

    # --- changes around it --------------------------------------------------------------------------------

    def members_changed(self, now_ms: int) -> None:
        """Brokers came or went: groups have new homes and their copies new places."""
        self.copies.members_changed(self._groups, now_ms)
        mine = self._ledger.me.broker.id
        self.gathered = {group for group in self.gathered if self.copies.succession(group)[:1] == (mine,)}

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
        """They stay gathered until others are forgotten: the holders of their copies forget them a little later, and
        must not be asked for them until then."""
        self.gathered = {group for group in self.gathered if group in self._groups}
        for group in groups:
            self._drop(list(self._groups.get(group, {}).values()))

    def _drop(self, rows: Iterable[OffsetRow]) -> None:
        for row in rows:
            of_group = self._groups[row.group]
            del of_group[row.at]
            self._total -= 1
            self.copies.drop(row)
            if all(at.topic != row.topic for at in of_group):
                self._in_topic[row.topic].discard(row.group)
                if not self._in_topic[row.topic]:
                    del self._in_topic[row.topic]
            if not of_group:
                del self._groups[row.group]
                self.copies.forget(row.group)

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
