"""Where consumer offsets are kept: what a back end offers the contract, and a table in the broker, on its own disk or
in its memory alone."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from coordinators.errors import JournalFailed, Unreadable
from coordinators.idleness import Stamps, now_ms
from coordinators.model import EPOCH_MAX, OFFSET_MAX, PARTITIONS_MAX, Committed, TopicPartition
from coordinators.strict_json import decoded, encoded, is_whole
from coordinators.waits.turn import Turn

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator

    from coordinators.registry import Journal

# The journal is rewritten when it holds this many records more than four times the live rows: commits overwrite
# each other, so a long-lived group would else fill the disk with its own history.
_STALE_RECORDS_MAX: Final = 20_000


class OffsetStore(Protocol):
    """What the groups have committed that this broker serves, and may hold of others."""

    def begin_commit(self, group: str, offsets: Mapping[TopicPartition, Committed]) -> Awaitable[None] | None:
        """As `Coordinator.begin_commit`."""

    async def committed(self, group: str) -> Mapping[TopicPartition, Committed]: ...

    async def stamps(self) -> Stamps:
        """When the groups that this broker keeps offsets of committed last."""

    async def stamp(self, group: str) -> None:
        """Note that the group is in use: as if it had committed again what it has."""

    async def forget(self, stamps: Mapping[str, int]) -> None:
        """Forget these groups, except those whose stamp has changed."""


class NoJournal:
    """Nothing is written: what is committed is lost with the broker's process."""

    def append(self, *records: bytes) -> None: ...

    def replay(self) -> Iterator[bytes]:
        return iter(())

    def replace(self, records: Iterable[bytes]) -> None: ...


class _Row(NamedTuple):
    """A group's place in one life of a topic, and when it was committed, in ms since 1970."""

    place: Committed
    at_ms: int
    life: str


Rows = Mapping[tuple[str, TopicPartition], _Row]


class OffsetTable:
    """group -> partition -> committed place. A commit is in the journal before it is in the table.

    `life_of` says which life of a topic's name is the present one, None where there is none. Rows of another life are
    no longer in force: so deleting a topic writes nothing here, and cannot be half done. `forget_topic` gives back
    their room.
    """

    def __init__(self, journal: Journal, life_of: Callable[[str], str | None]) -> None:
        """Raises `Unreadable` where the journal holds what this program never wrote."""
        self._journal = journal
        self._life_of = life_of
        self._groups: dict[str, dict[TopicPartition, _Row]] = {}
        self._in_topic: dict[str, set[str]] = {}
        self._records = 0
        self._rewritten_at = _STALE_RECORDS_MAX
        former = False
        for record in journal.replay():
            former |= self._replay(record)
            self._records += 1
        if former:  # records of an earlier version do not say which life they belong to, and must before it is over
            self._rewrite_if_there_is_room()

    def _replay(self, record: bytes) -> bool:
        """Whether it is an earlier version's, which has neither time nor life: it is of the present one."""
        try:
            group, topic, partition, offset, epoch, metadata, *rest = decoded(record)
            present = self._life_of(topic) if isinstance(topic, str) else None
            at_ms, life = rest or (0, str(present))
            if not all(isinstance(text, str) for text in (group, topic, metadata, life)):
                raise TypeError("group, topic, metadata and life are text")
            if not is_whole(partition, 0, PARTITIONS_MAX) or not is_whole(epoch, -1, EPOCH_MAX):
                raise ValueError("partition and epoch are numbers")
            if not is_whole(offset, 0, OFFSET_MAX) or not is_whole(at_ms, 0, OFFSET_MAX):
                raise ValueError("offset and time are numbers")
        except (ValueError, TypeError) as error:
            raise Unreadable(f"journal offsets holds {record[:100]!r}, which is no commit: {error}") from error
        if present is not None and life == present:
            row = _Row(Committed(offset, epoch, metadata), at_ms, life)
            self._put(group, TopicPartition(topic, partition), row)
        return not rest

    def rows(self, group: str, offsets: Mapping[TopicPartition, Committed]) -> Rows:
        """What `write` takes, of a commit of partitions that exist."""
        time_ms = now_ms()
        return {(group, at): _Row(place, time_ms, self._life_of(at.topic) or "") for at, place in offsets.items()}

    def write(self, rows: Rows) -> None:
        """Commit. Raises `JournalFailed`; nothing is committed then."""
        self._journal.append(*(_record(group, at, row) for (group, at), row in rows.items()))
        for (group, at), row in rows.items():
            if row.life == self._life_of(at.topic):  # else it was deleted since the commit was begun
                self._put(group, at, row)
        self._records += len(rows)
        if self._records > self._rewritten_at and self._records > 4 * self._live_rows():
            self._rewrite_if_there_is_room()

    def _put(self, group: str, at: TopicPartition, row: _Row) -> None:
        self._groups.setdefault(group, {})[at] = row
        self._in_topic.setdefault(at.topic, set()).add(group)

    def committed(self, group: str) -> Mapping[TopicPartition, Committed]:
        rows, life_of = self._groups.get(group, {}), self._life_of
        return {at: row.place for at, row in rows.items() if row.life == life_of(at.topic)}

    def forget_topic(self, topic: str) -> None:
        """Drop a deleted topic's rows, so that a later topic of the same name starts from nothing."""
        for group in self._in_topic.pop(topic, ()):
            rows = self._groups[group]
            for at in [at for at in rows if at.topic == topic]:
                del rows[at]
            if not rows:
                del self._groups[group]

    # --- groups that nobody uses --------------------------------------------------------------------------

    def stamps(self) -> Stamps:
        """When each group committed last. Topics that are gone go with this."""
        for topic in [topic for topic in self._in_topic if self._life_of(topic) is None]:
            self.forget_topic(topic)
        newest = {group: max(row.at_ms for row in rows.values()) for group, rows in self._groups.items()}
        return Stamps(now_ms(), newest)

    def stamp(self, group: str) -> None:
        """As if the group had committed one of its places again. Raises `JournalFailed`."""
        for at, row in list(self._groups.get(group, {}).items())[:1]:
            self.write(self.rows(group, {at: row.place}))

    def forget_groups(self, groups: Collection[str]) -> None:
        """Raises `JournalFailed`; nothing is forgotten then."""
        self._rewrite(groups)
        for group in groups:
            for topic in {at.topic for at in self._groups.pop(group, {})}:
                self._in_topic[topic].discard(group)

    # --- the journal --------------------------------------------------------------------------------------

    def _rewrite_if_there_is_room(self) -> None:
        """Rewrite the journal; the one that is there already is as good, only longer."""
        self._rewritten_at = self._records + _STALE_RECORDS_MAX
        with suppress(JournalFailed):
            self._rewrite()

    def _rewrite(self, without: Collection[str] = ()) -> None:
        records = list(self._all_records(without))
        self._journal.replace(records)
        self._records, self._rewritten_at = len(records), _STALE_RECORDS_MAX

    def _live_rows(self) -> int:
        return sum(len(rows) for rows in self._groups.values())

    def _all_records(self, without: Collection[str]) -> Iterator[bytes]:
        for group, rows in self._groups.items():
            if group not in without:
                for at, row in rows.items():
                    yield _record(group, at, row)


def _record(group: str, at: TopicPartition, row: _Row) -> bytes:
    place = row.place
    commit = [group, at.topic, at.partition, place.offset, place.leader_epoch, place.metadata]
    return encoded([*commit, row.at_ms, row.life])


class TableOffsets:
    """A broker's own table as a store; `is_durable` says that its journal is one. `check` raises `UnknownTopic` for a
    partition that does not exist."""

    def __init__(self, table: OffsetTable, check: Callable[[TopicPartition], object], *, is_durable: bool) -> None:
        self._table = table
        self._check = check
        self._turn = Turn(table.write) if is_durable else None

    def begin_commit(self, group: str, offsets: Mapping[TopicPartition, Committed]) -> Awaitable[None] | None:
        for at in offsets:
            self._check(at)
        rows = self._table.rows(group, offsets)
        if self._turn is not None:
            return self._turn.add(rows)
        self._table.write(rows)
        return None

    async def committed(self, group: str) -> Mapping[TopicPartition, Committed]:
        return self._table.committed(group)

    async def stamps(self) -> Stamps:
        return self._table.stamps()

    async def stamp(self, group: str) -> None:
        self._table.stamp(group)

    async def forget(self, stamps: Mapping[str, int]) -> None:
        newest = self._table.stamps().of_groups
        self._table.forget_groups({group for group, at_ms in stamps.items() if newest.get(group) == at_ms})
