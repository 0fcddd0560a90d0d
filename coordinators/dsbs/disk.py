"""The tables and offsets on the broker's disk: every row that changed, one record each, read back at the next start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from coordinators.dsbs.codec import Malformed, decoded, encoded, row_to_json, to_text
from coordinators.dsbs.rows import OffsetRow
from coordinators.dsbs.tables import Table
from coordinators.errors import Unreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from coordinators.api import Journal
    from coordinators.dsbs.rows import Row

# A journal is written anew when it holds this many records, and four for each row that is still in force.
STALE_RECORDS_MAX: Final = 20_000
STALE_SHARE_MAX: Final = 4


class Disk:
    """Two journals, because offsets change with every commit and tables hardly ever."""

    def __init__(self, journal: Callable[[str], Journal]) -> None:
        """Raises `Unreadable` where a journal holds what this program never wrote."""
        self._tables, self._offsets = journal("tables"), journal("offsets")
        rows = [_row(record, "tables") for record in self._tables.replay()]
        places = [_row(record, "offsets") for record in self._offsets.replay()]
        self.table = Table(row for row in rows if not isinstance(row, OffsetRow))
        self.offsets = {row.key: row for row in places if isinstance(row, OffsetRow)}
        self._table_records, self._offset_records = len(rows), len(places)

    def write(self, rows: Iterable[Row]) -> None:
        """Raises what the journal does; some of the rows may be written then."""
        for row in rows:
            if isinstance(row, OffsetRow):
                self._offsets.append(to_text(row_to_json(row)).encode())  # each is new, so none is remembered
                self._offset_records += 1
            else:
                self._tables.append(encoded(row).encode())
                self._table_records += 1

    def compact(self, table: Table, offsets: Callable[[], Iterable[OffsetRow]]) -> None:
        """Leave out what is no longer in force, once that is most of a journal."""
        if self._table_records > STALE_RECORDS_MAX:
            rows = list(table.rows())
            if self._table_records > STALE_SHARE_MAX * len(rows):
                self._tables.replace(encoded(row).encode() for row in rows)
                self._table_records = len(rows)
        if self._offset_records > STALE_RECORDS_MAX:
            places = list(offsets())
            if self._offset_records > STALE_SHARE_MAX * len(places):
                self._offsets.replace(encoded(row).encode() for row in places)
                self._offset_records = len(places)


def _row(record: bytes, journal: str) -> Row:
    try:
        return decoded(record)
    except Malformed as error:
        raise Unreadable(f"journal {journal} holds {record[:100]!r}: {error}") from error
