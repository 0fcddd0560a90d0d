"""The tables that every broker holds: brokers, topics with their partitions, and who leads where that changed. Pure.

A table is a map from key to row, and the higher row stays (see `rows`). So merging is commutative, associative and
idempotent: brokers that have seen the same rows hold the same table, in whatever order and however often they came.
A row that is absent says nothing; only a higher row replaces one. Hence a broker that comes back empty or stale erases
nothing, and a deleted topic leaves a tombstone for good.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from zlib import crc32

from coordinators.dsbs.tables.codec import encoded, row_hash
from coordinators.dsbs.tables.rows import Key, LeaderRow, MemberRow, Row, TableRow, TopicRow

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

MEMBERS_MAX: Final = 2000
TOPIC_ROWS_MAX: Final = 100_000  # tombstones among them
PARTITIONS_TOTAL_MAX: Final = 200_000
BUCKETS: Final = 1024


def outranks(row: Row, held: Row | None) -> bool:
    """Whether `row` takes the place of `held`; a total order of the rows of one key."""
    if held is None or row.stamp > held.stamp:
        return True
    return row.stamp == held.stamp and row != held and encoded(row) > encoded(held)


def bucket_of(key: Key) -> int:
    return crc32(repr(key).encode()) % BUCKETS


class Table:
    """One broker's tables. `hash` is equal on two brokers whose tables are."""

    def __init__(self, rows: Iterable[TableRow] = ()) -> None:
        self.members: dict[int, MemberRow] = {}
        self.topics: dict[str, TopicRow] = {}
        self.leaders: dict[str, dict[int, LeaderRow]] = {}
        self.hash = 0
        self.partitions_total = 0
        self._bucket_hashes: dict[int, int] = {}
        self.merge(rows)

    def copy(self) -> Table:
        """A table of its own, of the same rows."""
        other = Table()
        other.members, other.topics = dict(self.members), dict(self.topics)
        other.leaders = {topic: dict(leaders) for topic, leaders in self.leaders.items()}
        other.hash, other.partitions_total = self.hash, self.partitions_total
        other._bucket_hashes = dict(self._bucket_hashes)
        return other

    def merge(self, rows: Iterable[TableRow]) -> list[TableRow]:
        """Take what is newer; the answer is what changed the table."""
        return [row for row in rows if self._merge_one(row)]

    def _merge_one(self, row: TableRow) -> bool:
        if isinstance(row, LeaderRow):
            topic = self.topics.get(row.topic)
            if topic is not None and topic.supersedes(row):
                return False
        held = self.held(row)
        if not outranks(row, held):
            return False
        if held is not None:
            self._toggle(held)
        self._toggle(row)
        self._put(row, held)
        return True

    def _put(self, row: TableRow, held: TableRow | None) -> None:
        if isinstance(row, MemberRow):
            self.members[row.broker.id] = row
        elif isinstance(row, LeaderRow):
            self.leaders.setdefault(row.topic, {})[row.partition] = row
        else:
            self.partitions_total += len(row.replicas) - (len(held.replicas) if isinstance(held, TopicRow) else 0)
            self.topics[row.name] = row
            self._drop_superseded(row)

    def _drop_superseded(self, topic: TopicRow) -> None:
        """Forget who led partitions of an earlier life, so that all tables end up equal."""
        leaders = self.leaders.get(topic.name, {})
        for row in [row for row in leaders.values() if topic.supersedes(row)]:
            self._toggle(row)
            del leaders[row.partition]

    def held(self, row: TableRow) -> TableRow | None:
        """The row that is held for the same thing."""
        if isinstance(row, MemberRow):
            return self.members.get(row.broker.id)
        if isinstance(row, TopicRow):
            return self.topics.get(row.name)
        return self.leader(row.topic, row.partition)

    def leader(self, topic: str, partition: int) -> LeaderRow | None:
        return self.leaders.get(topic, {}).get(partition)

    def room_for(self, row: TableRow) -> str | None:
        """Why a row that is new here cannot be taken in, or None."""
        if isinstance(row, MemberRow) and row.broker.id not in self.members and len(self.members) >= MEMBERS_MAX:
            return f"there are {MEMBERS_MAX} brokers already"
        if isinstance(row, TopicRow):
            if row.name not in self.topics and len(self.topics) >= TOPIC_ROWS_MAX:
                return f"there are {TOPIC_ROWS_MAX} topics already, deleted ones included"
            if self.partitions_total + len(row.replicas) > PARTITIONS_TOTAL_MAX:
                return f"there are {self.partitions_total} partitions already, of at most {PARTITIONS_TOTAL_MAX}"
        if isinstance(row, LeaderRow) and row.topic not in self.leaders and len(self.leaders) >= TOPIC_ROWS_MAX:
            return f"there are leaders of {TOPIC_ROWS_MAX} topics already"
        return None

    # --- digests ------------------------------------------------------------------------------------------

    def _toggle(self, row: TableRow) -> None:
        digest, bucket = row_hash(row), bucket_of(row.key)
        self.hash ^= digest
        changed = self._bucket_hashes.get(bucket, 0) ^ digest
        if changed:
            self._bucket_hashes[bucket] = changed
        else:
            self._bucket_hashes.pop(bucket, None)

    @property
    def digest(self) -> Mapping[int, int]:
        """Bucket -> hash of its rows; buckets without rows are left out."""
        return self._bucket_hashes

    def differing(self, digest: Mapping[int, int]) -> list[int]:
        """Buckets in which another table is not this one."""
        mine = self._bucket_hashes
        return [bucket for bucket in sorted(mine.keys() | digest.keys()) if mine.get(bucket) != digest.get(bucket)]

    def rows(self) -> Iterator[TableRow]:
        yield from self.members.values()
        yield from self.topics.values()
        for leaders in self.leaders.values():
            yield from leaders.values()

    def by_bucket(self, buckets: Collection[int]) -> dict[int, list[TableRow]]:
        """The rows of some buckets."""
        found: dict[int, list[TableRow]] = {bucket: [] for bucket in buckets}
        for row in self.rows():
            bucket = bucket_of(row.key)
            if bucket in found:
                found[bucket].append(row)
        return found
