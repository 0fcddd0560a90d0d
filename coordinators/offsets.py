"""Consumer offsets on the broker's own disk: one table in memory, one journal behind it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from coordinators.compact_json import encoded
from coordinators.errors import Unreadable
from coordinators.model import EPOCH_MAX, OFFSET_MAX, PARTITIONS_MAX, Committed, TopicPartition, is_whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from coordinators.api import Journal

# The journal is rewritten when it holds this many records more than four times the live rows: commits overwrite
# each other, so a long-lived group would else fill the disk with its own history.
_STALE_RECORDS_MAX: Final = 20_000


class OffsetTable:
    """group -> partition -> committed place. A commit is in the journal before it is in the table."""

    def __init__(self, journal: Journal) -> None:
        """Raises `Unreadable` where the journal holds what this program never wrote."""
        self._journal = journal
        self._groups: dict[str, dict[TopicPartition, Committed]] = {}
        self._records = 0
        for record in journal.replay():
            self._replay(record)
            self._records += 1

    def _replay(self, record: bytes) -> None:
        try:
            group, topic, partition, offset, epoch, metadata = json.loads(record)
            if not (isinstance(group, str) and isinstance(topic, str) and isinstance(metadata, str)):
                raise TypeError("group, topic and metadata are text")
            if not is_whole(partition, 0, PARTITIONS_MAX) or not is_whole(epoch, -1, EPOCH_MAX):
                raise ValueError("partition and epoch are numbers")
            if not is_whole(offset, 0, OFFSET_MAX):
                raise ValueError("an offset is a number")
        except (ValueError, TypeError, RecursionError) as error:
            raise Unreadable(f"journal offsets holds {record[:100]!r}, which is no commit: {error}") from error
        self._groups.setdefault(group, {})[TopicPartition(topic, partition)] = Committed(offset, epoch, metadata)

    def commit(self, group: str, offsets: Mapping[TopicPartition, Committed]) -> None:
        for at, place in offsets.items():
            self._journal.append(_record(group, at, place))
        self._groups.setdefault(group, {}).update(offsets)
        self._records += len(offsets)
        if self._records > _STALE_RECORDS_MAX and self._records > 4 * self._live_rows():
            self._journal.replace(self._all_records())
            self._records = self._live_rows()

    def committed(self, group: str) -> Mapping[TopicPartition, Committed]:
        return dict(self._groups.get(group, {}))

    def forget_topic(self, topic: str) -> None:
        """Drop a deleted topic's rows, so that a later topic of the same name starts from nothing."""
        before = self._live_rows()
        for rows in self._groups.values():
            for at in [at for at in rows if at.topic == topic]:
                del rows[at]
        if self._live_rows() != before:
            self._journal.replace(self._all_records())
            self._records = self._live_rows()

    def _live_rows(self) -> int:
        return sum(len(rows) for rows in self._groups.values())

    def _all_records(self) -> Iterator[bytes]:
        for group, rows in self._groups.items():
            for at, place in rows.items():
                yield _record(group, at, place)


def _record(group: str, at: TopicPartition, place: Committed) -> bytes:
    return encoded([group, at.topic, at.partition, place.offset, place.leader_epoch, place.metadata])
