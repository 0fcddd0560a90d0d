"""The tables and offsets on the broker's disk: every row that changed, one record each, read back at the next start."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from coordinators import strict_json
from coordinators.dsbs.tables.codec import Malformed, decoded, encoded, row_to_json
from coordinators.dsbs.tables.rows import OffsetRow
from coordinators.dsbs.tables.tables import Table, outranks
from coordinators.errors import JournalFailed, Unreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from coordinators.dsbs.tables.rows import Key, Row
    from coordinators.registry import Journal

# A journal is rewritten when it holds this many records, and four for each row that is still in force.
STALE_RECORDS_MAX: Final = 20_000
STALE_SHARE_MAX: Final = 4


class Disk:
    """Two journals, because offsets change with every commit and tables hardly ever.

    Rows that this broker is asked to make are written before the step (`write`). Changes that have happened already,
    here or elsewhere, are written as soon as the disk takes them (`catch_up`).
    """

    def __init__(self, journal: Callable[[str], Journal]) -> None:
        """Raises `Unreadable` where a journal holds what this program never wrote."""
        self._tables, self._offsets = journal("tables"), journal("offsets")
        rows = [_row(record, "tables") for record in self._tables.replay()]
        places = [_row(record, "offsets") for record in self._offsets.replay()]
        self.table = Table(row for row in rows if not isinstance(row, OffsetRow))
        self.offsets = _newest(place for place in places if isinstance(place, OffsetRow))
        self._table_records, self._offset_records = len(rows), len(places)
        self._table_records_max = self._offset_records_max = STALE_RECORDS_MAX
        self._unwritten: dict[Key, Row] = {}
        self.refusal: JournalFailed | None = None  # why `unwritten` is not written

    @property
    def unwritten(self) -> Mapping[Key, Row]:
        """The changes that a crash would make this broker forget."""
        return self._unwritten

    def write(self, rows: Iterable[Row]) -> None:
        """Rows of one of the journals, all or none. Raises what the journal does."""
        places = [row for row in rows if isinstance(row, OffsetRow)]
        others = [row for row in rows if not isinstance(row, OffsetRow)]
        if others:
            self._tables.append(*(encoded(row).encode() for row in others))
            self._table_records += len(others)
        if places:
            # Each is new: there is no use in remembering what it is encoded as.
            self._offsets.append(*(strict_json.encoded(row_to_json(row)) for row in places))
            self._offset_records += len(places)

    def catch_up(self, rows: Iterable[Row] = ()) -> None:
        """Write these rows, and those that could not be written before; what cannot be now is tried again later."""
        self._unwritten.update((row.key, row) for row in rows)
        self.refusal = None
        for offsets in (False, True):
            rest = [row for row in self._unwritten.values() if isinstance(row, OffsetRow) is offsets]
            try:
                self.write(rest)
            except JournalFailed as error:
                self.refusal = error
            else:
                for row in rest:
                    del self._unwritten[row.key]

    def compact(self, table: Table, offsets: Callable[[], Iterable[OffsetRow]]) -> None:
        """Leave out what is no longer in force, once that is most of a journal; later, where there is no room now."""
        if self._table_records > self._table_records_max:
            rows = list(table.rows())
            if self._table_records > STALE_SHARE_MAX * len(rows):
                self._table_records_max = self._table_records + STALE_RECORDS_MAX
                with suppress(JournalFailed):
                    self._tables.replace(encoded(row).encode() for row in rows)
                    self._table_records, self._table_records_max = len(rows), STALE_RECORDS_MAX
        if self._offset_records > self._offset_records_max:
            places = list(offsets())
            if self._offset_records > STALE_SHARE_MAX * len(places):
                self._offset_records_max = self._offset_records + STALE_RECORDS_MAX
                with suppress(JournalFailed):
                    self.rewrite_offsets(places)

    def rewrite_offsets(self, rows: Iterable[OffsetRow]) -> None:
        """Put these in the place of all that are there. Raises what the journal does; those stay then."""
        records = [encoded(row).encode() for row in rows]
        self._offsets.replace(records)
        self._offset_records, self._offset_records_max = len(records), STALE_RECORDS_MAX


def _newest(rows: Iterable[OffsetRow]) -> dict[Key, OffsetRow]:
    """For each key the row that outranks the others, in whatever order they were written."""
    found: dict[Key, OffsetRow] = {}
    for row in rows:
        if outranks(row, found.get(row.key)):
            found[row.key] = row
    return found


def _row(record: bytes, journal: str) -> Row:
    try:
        return decoded(record)
    except Malformed as error:
        raise Unreadable(f"journal {journal} holds {record[:100]!r}: {error}") from error
