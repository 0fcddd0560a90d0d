"""What other brokers say: whether it is listened to, what is learned from it, and what is answered. Pure.

Bad input is counted in the ledger's `refused` by its reason and changes nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from coordinators.dsbs.machine.identity import Identity
from coordinators.dsbs.machine.ledger import Phase
from coordinators.dsbs.tables.codec import Malformed
from coordinators.dsbs.tables.messages import (
    AskOffsets,
    Copy,
    Digest,
    Heartbeat,
    Here,
    Kept,
    Known,
    Push,
    Repair,
    Taken,
    TellOffsets,
    decode,
)
from coordinators.dsbs.tables.tables import outranks

if TYPE_CHECKING:
    from coordinators.dsbs.machine.acknowledgements import Requests
    from coordinators.dsbs.machine.changes import Changes
    from coordinators.dsbs.machine.gossip import Gossip
    from coordinators.dsbs.machine.ledger import Ledger
    from coordinators.dsbs.machine.liveness import Liveness
    from coordinators.dsbs.machine.membership import Membership
    from coordinators.dsbs.machine.offsets import Offsets
    from coordinators.dsbs.tables.messages import Body
    from coordinators.dsbs.tables.rows import MemberRow


class Inbox:
    def __init__(
        self,
        ledger: Ledger,
        liveness: Liveness,
        membership: Membership,
        gossip: Gossip,
        requests: Requests,
        changes: Changes,
        offsets: Offsets,
    ) -> None:
        self._ledger = ledger
        self._liveness = liveness
        self._identity = Identity(ledger, liveness)
        self._membership = membership
        self._gossip = gossip
        self._requests = requests
        self._changes = changes
        self._offsets = offsets

    def receive(self, content: bytes, now_ms: int) -> None:
        try:
            envelope = decode(content)
        except Malformed:
            self._ledger.refuse("malformed")
            return
        sender = envelope.sender
        if not self._identity.admits(envelope, now_ms, member=self._ledger.phase is Phase.MEMBER):
            return
        if isinstance(envelope.body, Taken):
            self._membership.told_taken(sender, envelope.body)
            return
        self._changes.absorb([sender], now_ms, forward=True)
        held = self._ledger.table.members.get(sender.broker.id)
        if held is None or held.session != sender.session:
            return
        if not self._liveness.heard(sender, envelope.sequence, now_ms):
            self._ledger.refuse("replayed")
        self._membership.heard_from(sender.broker.id)
        self._answer(sender, envelope.body, now_ms)

    def _answer(self, sender: MemberRow, body: Body, now_ms: int) -> None:
        to = sender.broker
        match body:
            case Heartbeat():
                self._ledger.send([to], Here(self._ledger.table.hash))
            case Here(table_hash):
                self._membership.compared(sender, table_hash, now_ms)
            case Push():
                self._learn(sender, body, now_ms)
            case Known(token, rows):
                self._changes.absorb(rows, now_ms)
                self._requests.answered(to.id, token, now_ms)
            case Digest():
                self._gossip.answer_digest(to, body)
            case Repair():
                self._repair(sender, body, now_ms)
            case Copy(copies, token):
                self._offsets.copied_here(copies)
                self._ledger.send([to], Kept(token))
            case Kept(token):
                self._offsets.copies.kept(to.id, token)
                self._requests.answered(to.id, token, now_ms)
            case AskOffsets(group, token):
                self._ledger.send([to], self._offsets.tell(group, token))
            case TellOffsets(told, token):
                if self._requests.expects(to.id, token):
                    self._offsets.copied_here(told)
                    self._requests.answered(to.id, token, now_ms)

    def _repair(self, sender: MemberRow, repair: Repair, now_ms: int) -> None:
        useful = bool(self._changes.absorb(repair.rows, now_ms))
        self._gossip.answer_repair(sender.broker, repair, useful=useful)
        if not repair.more:
            self._membership.repaired(sender)

    def _learn(self, sender: MemberRow, push: Push, now_ms: int) -> None:
        """Take in what was pushed; tell its origin, if that waits for it."""
        news = self._changes.absorb(push.rows, now_ms)
        mine = [(row, self._ledger.table.held(row)) for row in push.rows]
        origin = self._ledger.table.members.get(push.origin)
        if push.token and origin is not None and (news or push.origin == sender.broker.id):
            higher = tuple(held for row, held in mine if held is not None and held != row)
            if all(held is not None and not outranks(row, held) for row, held in mine):
                self._ledger.send([origin.broker], Known(push.token, higher))
        if news and self._ledger.crowded:
            self._gossip.rumour(replace(push, rows=tuple(news)))
