"""Heartbeats: which brokers are asked, how often, and which are suspected or buried for their silence. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from coordinators.dsbs.machine.ledger import Phase
from coordinators.dsbs.tables.messages import Heartbeat
from coordinators.dsbs.tables.rows import Status

if TYPE_CHECKING:
    from coordinators.dsbs.machine.acknowledgements import Requests
    from coordinators.dsbs.machine.changes import Changes
    from coordinators.dsbs.machine.gossip import Gossip
    from coordinators.dsbs.machine.ledger import Ledger
    from coordinators.dsbs.machine.liveness import Liveness
    from coordinators.dsbs.machine.membership import Joining
    from coordinators.model import Broker

JOIN_BEATS_PER_HEARTBEAT: Final = 4


class Heartbeats:
    def __init__(
        self, ledger: Ledger, liveness: Liveness, joining: Joining, gossip: Gossip, requests: Requests, changes: Changes
    ) -> None:
        self._ledger = ledger
        self._liveness = liveness
        self._joining = joining
        self._gossip = gossip
        self._requests = requests
        self._changes = changes
        self.next_ms = 0

    def beat(self, now_ms: int) -> None:
        body = Heartbeat(self._ledger.table.hash)
        self.next_ms = now_ms + self.pause_ms
        if self._ledger.phase is Phase.JOINING:
            self._ledger.send(self._joining.whom_to_greet(), body)
            return
        if self._ledger.phase is Phase.MEMBER:
            asked = self.whom_to_ask()
            for broker in asked:
                self._liveness.asked(broker.id, now_ms)
            self._ledger.send([*asked, *self._estranged()], body)
        self._requests.repeat()
        self._gossip.retell()

    @property
    def pause_ms(self) -> int:
        """Between two heartbeats, and between two repairs."""
        beats = JOIN_BEATS_PER_HEARTBEAT if self._ledger.phase is Phase.JOINING else 1
        return max(1, self._ledger.settings.heartbeat_ms // beats)

    def whom_to_ask(self) -> list[Broker]:
        """All peers, or in a crowd some at random, and those that have not answered yet."""
        peers = self._ledger.peers()
        if not self._ledger.crowded:
            return [peer.broker for peer in peers]
        chosen = {peer.broker.id: peer.broker for peer in self._ledger.some(peers, self._ledger.settings.fanout)}
        members = self._ledger.table.members
        chosen.update({n: members[n].broker for n in self._liveness.waiting_for if n in members and members[n].live})
        return list(chosen.values())

    def _estranged(self) -> list[Broker]:
        """Some of the dead, and of those never heard of: after a split of the network somebody has to knock."""
        dead = [row.broker for row in self._ledger.table.members.values() if row.status is Status.DEAD]
        return self._ledger.some([*dead, *self._joining.strangers()], self._ledger.settings.fanout)

    def judge(self, now_ms: int) -> None:
        """Suspect the silent brokers, bury the suspects that did not refute it."""
        members = self._ledger.table.members
        silent = self._liveness.silent(now_ms)
        for number in silent:
            self._liveness.accused(number)
        verdicts = [(number, Status.SUSPECT) for number in silent]
        verdicts += [(number, Status.DEAD) for number in self._liveness.over(now_ms)]
        self._changes.write([replace(members[number], status=status) for number, status in verdicts], now_ms)
