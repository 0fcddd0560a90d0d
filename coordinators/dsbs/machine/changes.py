"""Rows that change the tables, of others or this broker's own, and what follows from them. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinators.dsbs.machine.ledger import Phase
from coordinators.dsbs.tables.messages import Push
from coordinators.dsbs.tables.rows import MemberRow, Status, TableRow, TopicRow, leap
from coordinators.dsbs.tables.tables import outranks

if TYPE_CHECKING:
    from collections.abc import Iterable

    from coordinators.dsbs.machine.acknowledgements import Requests
    from coordinators.dsbs.machine.gossip import Gossip
    from coordinators.dsbs.machine.leaders import Leaders
    from coordinators.dsbs.machine.ledger import Ledger
    from coordinators.dsbs.machine.liveness import Liveness
    from coordinators.dsbs.machine.offsets import Offsets


class Changes:
    def __init__(
        self, ledger: Ledger, liveness: Liveness, gossip: Gossip, requests: Requests, leaders: Leaders, offsets: Offsets
    ) -> None:
        self._ledger = ledger
        self._liveness = liveness
        self._gossip = gossip
        self._requests = requests
        self._leaders = leaders
        self._offsets = offsets
        self._lives_changed = False

    def absorb(self, rows: Iterable[TableRow], now_ms: int, *, forward: bool = False) -> list[TableRow]:
        """Merge what others say, row by row; the answer is what was news."""
        news: list[TableRow] = []
        for row in rows:
            held = self._ledger.table.held(row)
            mine = row if isinstance(row, MemberRow) and row.broker.id == self._ledger.me.broker.id else None
            if not outranks(row, held) and (mine is None or not mine.disputes(self._ledger.me)):
                continue
            if leap(row, held) is not None:
                self._ledger.refuse("leap")
            elif self._ledger.table.room_for(row) is not None:
                self._ledger.refuse("no room")
            elif mine is not None:
                self._refute(mine)
            else:
                news += self._ledger.write([row])
                self._note(row, held, now_ms)
        if forward and news and self._ledger.crowded:
            self._gossip.rumour(Push(tuple(news)))
        self._settle(news, now_ms)
        return news

    def _refute(self, row: MemberRow) -> None:
        """Only this broker speaks for itself: whoever says otherwise is outranked."""
        if self._ledger.phase is Phase.LEAVING:
            return
        if row.session != self._ledger.me.session:
            self._ledger.lived_before = True
            if self._ledger.phase is Phase.MEMBER:
                self._ledger.refuse("own id")
        self._gossip.spread([self._ledger.become(row.incarnation + 1, Status.ALIVE)])

    def write(self, rows: Iterable[TableRow], now_ms: int) -> None:
        """Rows that this broker itself makes: merged, persisted, spread."""
        before = [(row, self._ledger.table.held(row)) for row in rows]
        news = self._ledger.write([row for row, _ in before])
        for row, held in before:
            self._note(row, held, now_ms)
        self._gossip.spread(news)
        self._settle(news, now_ms)

    def tell_all(self, token: int, row: TableRow, now_ms: int) -> None:
        """Write a row, and wait until all peers that live now have it."""
        held = self._ledger.table.held(row)
        news = self._ledger.write([row])
        self._note(row, held, now_ms)
        self._gossip.spread([row], token)
        push = Push((row,), token, self._ledger.me.broker.id)
        self._requests.begin(token, push, [peer.broker.id for peer in self._ledger.peers()], now_ms)
        self._settle(news, now_ms)

    def _note(self, row: TableRow, held: TableRow | None, now_ms: int) -> None:
        """What a changed row means for this broker's own books."""
        if isinstance(row, MemberRow):
            self._liveness.changed(row, now_ms)
            was_live = isinstance(held, MemberRow) and held.live
            self._lives_changed = self._lives_changed or row.live != was_live
        elif isinstance(row, TopicRow):
            self._offsets.topic_changed(row)
            self._leaders.topic_changed(row)

    def _settle(self, news: Iterable[TableRow], now_ms: int) -> None:
        """Act on what is new: inherit from the dead, see to the copies of groups."""
        if self._ledger.phase is not Phase.MEMBER:
            return
        if self._lives_changed:
            self._lives_changed = False
            self._offsets.members_changed(now_ms)
            self._requests.check(now_ms)
            inherited = self._leaders.all_inherited()
        else:
            inherited = self._leaders.inherited({row.topic_name for row in news if not isinstance(row, MemberRow)})
        self._gossip.spread(self._ledger.write(inherited))
