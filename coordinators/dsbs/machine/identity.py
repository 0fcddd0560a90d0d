"""Whether the sender of a message is the broker that it says it is, and who has the id where two claim it. Pure.

The process that is known keeps its id while it lives. One that comes from another address is told so: for certain where
the holder was heard a moment ago, else the holder is asked and the newcomer waits. One from the same address is the
same broker, restarted, because a port has one owner. A sender that the tables outrank is told what they say; it refutes
that or begins a new incarnation.

This is the one place where peers will authenticate each other: every message passes `Identity.admits` before anything
of it is used. Today it holds the cluster's name against mistakes; against malice it needs to hold the identity that the
transport has proven (mutual TLS, the broker's id in the certificate) against the id that the envelope claims. Until
then whoever reaches the port and knows the cluster's name can speak for any broker (docs/dsbs.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinators.dsbs.tables.messages import Heartbeat, Push, Taken
from coordinators.dsbs.tables.rows import Status, leap
from coordinators.dsbs.tables.tables import outranks

if TYPE_CHECKING:
    from coordinators.dsbs.machine.ledger import Ledger
    from coordinators.dsbs.machine.liveness import Liveness
    from coordinators.dsbs.tables.messages import Envelope
    from coordinators.dsbs.tables.rows import MemberRow


class Identity:
    def __init__(self, ledger: Ledger, liveness: Liveness) -> None:
        self._ledger = ledger
        self._liveness = liveness

    def admits(self, envelope: Envelope, now_ms: int, *, member: bool) -> bool:
        """Whether the message may be used. If not, the sender is told what it needs to know."""
        sender = envelope.sender
        held = self._ledger.table.members.get(sender.broker.id)
        reason = self._fault(envelope, held, member=member)
        if reason is not None:
            self._ledger.refuse(reason)
            return False
        if held is None or isinstance(envelope.body, Taken):
            return True
        if sender.session != held.session and sender.broker != held.broker and held.live:
            self._contest(sender, held, now_ms, member=member)
            return False
        if outranks(held, sender) or held.disputes(sender):
            self._ledger.send([sender.broker], Push((held,)))
            return sender.session == held.session
        return True

    def _fault(self, envelope: Envelope, held: MemberRow | None, *, member: bool) -> str | None:
        sender, me = envelope.sender, self._ledger.me
        if (reason := _refusal(envelope, self._ledger.settings.cluster)) is not None:
            return reason
        if sender.broker.id == me.broker.id:
            if sender.broker != me.broker and member:
                self._tell_taken(sender, me, certain=True)
            return "own id"
        return "leap" if leap(sender, held) is not None else None

    def _contest(self, sender: MemberRow, held: MemberRow, now_ms: int, *, member: bool) -> None:
        certain = self._liveness.heard_lately(held, now_ms)
        self._ledger.refuse("id taken")
        self._tell_taken(sender, held, certain=certain)
        if not certain and member:
            self._liveness.asked(held.broker.id, now_ms)
            self._ledger.send([held.broker], Heartbeat(self._ledger.table.hash))

    def _tell_taken(self, sender: MemberRow, holder: MemberRow, *, certain: bool) -> None:
        place = f"{holder.broker.host}:{holder.broker.rpc_port}"
        reason = f"broker id {holder.broker.id} is taken by a live broker at {place}"
        self._ledger.send([sender.broker], Taken(reason, certain))


def _refusal(envelope: Envelope, cluster: str) -> str | None:
    """Why the message is not from a member of this cluster, as a word to count by; or None."""
    if envelope.cluster != cluster:
        return "foreign cluster"
    if envelope.sender.status not in {Status.ALIVE, Status.LEFT}:
        return "sender who thinks itself dead"
    return None
