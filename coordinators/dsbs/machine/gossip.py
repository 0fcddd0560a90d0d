"""How news reaches everybody: pushed at once, and repaired by comparing tables where a push was lost. Pure.

Up to `push_all_max` peers, a change is pushed to all of them by the broker that made it. Beyond that it spreads as a
rumour: to `fanout` brokers at random, by each that hears it for the first time, at once and again at its next
heartbeat. Either way some may miss it. Each heartbeat is answered with the hash of the answering broker's table; where
it differs, the two compare bucket by bucket and exchange the rows in which they differ, in both directions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from coordinators.dsbs.tables.codec import encoded
from coordinators.dsbs.tables.messages import ROWS_PER_MESSAGE_MAX, Digest, Push, Repair

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from coordinators.dsbs.machine.ledger import Ledger
    from coordinators.dsbs.tables.rows import MemberRow, TableRow
    from coordinators.model import Broker

PAGE_BYTES_MAX: Final = 1024 * 1024
RUMOURS_MAX: Final = 1000


class Gossip:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._rumours: list[Push] = []
        self._next_repair_ms = 0

    # --- push ---------------------------------------------------------------------------------------------

    def spread(self, rows: Iterable[TableRow], token: int = 0) -> None:
        """Tell of rows that this broker wrote."""
        for page in _pages(rows):
            push = Push(tuple(page), token, self._ledger.me.broker.id)
            if self._ledger.crowded:
                self.rumour(push)
            else:
                self._ledger.send([peer.broker for peer in self._ledger.peers()], push)

    def rumour(self, push: Push) -> None:
        """Tell some of it now, and some more at the next heartbeat."""
        self._tell_some(push)
        if len(self._rumours) < RUMOURS_MAX:
            self._rumours.append(push)

    def retell(self) -> None:
        rumours, self._rumours = self._rumours, []
        for push in rumours:
            self._tell_some(push)

    def _tell_some(self, push: Push) -> None:
        peers = self._ledger.some(self._ledger.peers(), self._ledger.settings.fanout)
        self._ledger.send([peer.broker for peer in peers], push)

    # --- repair -------------------------------------------------------------------------------------------

    def compare(self, peer: MemberRow, table_hash: int, now_ms: int, pause_ms: int) -> None:
        """A peer's hash came; where it differs, ask what it holds, at most once in `pause_ms`."""
        if table_hash != self._ledger.table.hash and now_ms >= self._next_repair_ms:
            self._next_repair_ms = now_ms + pause_ms
            self.ask_for_difference(peer.broker)

    def ask_for_difference(self, peer: Broker) -> None:
        self._ledger.send([peer], Digest(dict(self._ledger.table.digest)))

    def answer_digest(self, peer: Broker, digest: Digest) -> None:
        """Whole buckets, as many as fit a page; if more differ, the peer asks again."""
        table = self._ledger.table
        differing = table.differing(digest.buckets)
        page: list[TableRow] = []
        covered: list[int] = []
        size = 0
        for bucket, rows in table.by_bucket(differing).items():
            bytes_here = sum(len(encoded(row)) for row in rows)
            full = size + bytes_here > PAGE_BYTES_MAX or len(page) + len(rows) > ROWS_PER_MESSAGE_MAX
            if covered and full:
                break
            covered.append(bucket)
            page += rows
            size += bytes_here
        more = len(covered) < len(differing)
        self._ledger.send([peer], Repair(tuple(page[:ROWS_PER_MESSAGE_MAX]), tuple(covered), more))

    def answer_repair(self, peer: Broker, repair: Repair, *, useful: bool) -> None:
        """Send back what this broker holds in those buckets and the peer does not; then ask for the next ones."""
        theirs = {row.key: row for row in repair.rows}
        mine = self._ledger.table.by_bucket(repair.buckets).values() if repair.buckets else ()
        beyond = [row for rows in mine for row in rows if theirs.get(row.key) != row]
        for page in _pages(beyond):
            self._ledger.send([peer], Repair(tuple(page), (), more=False))
        if repair.more and (useful or beyond):
            self.ask_for_difference(peer)


def _pages(rows: Iterable[TableRow]) -> Iterable[Sequence[TableRow]]:
    page: list[TableRow] = []
    size = 0
    for row in rows:
        row_bytes = len(encoded(row))
        if page and (size + row_bytes > PAGE_BYTES_MAX or len(page) >= ROWS_PER_MESSAGE_MAX):
            yield page
            page, size = [], 0
        page.append(row)
        size += row_bytes
    if page:
        yield page
