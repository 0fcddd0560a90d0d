"""A broker's own part in its cluster: it joins, serves, hears after a pause, and leaves. Pure.

A broker that starts says hello to all whom it knows of and waits until each has answered and their tables agree with
its own, so that it neither leads by an old table what others lead by now, nor creates topics for too few brokers. In a
crowd a few will do. After `join_ms` it goes on without those who are silent.

Brokers that have left by its own table may be back: where all brokers were stopped, each has heard the others leave. So
it waits for those as well, until one has answered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from coordinators.dsbs.machine.events import Heard, Joined, Lost, Refused
from coordinators.dsbs.machine.ledger import TRANSITIONS, Phase
from coordinators.dsbs.tables.messages import Heartbeat
from coordinators.dsbs.tables.rows import Status
from coordinators.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable

    from coordinators.dsbs.machine.changes import Changes
    from coordinators.dsbs.machine.gossip import Gossip
    from coordinators.dsbs.machine.heartbeats import Heartbeats
    from coordinators.dsbs.machine.leaders import Leaders
    from coordinators.dsbs.machine.ledger import Ledger
    from coordinators.dsbs.machine.offsets import Offsets
    from coordinators.dsbs.tables.messages import Taken
    from coordinators.dsbs.tables.rows import MemberRow
    from coordinators.model import Broker

TAKERS_MAX: Final = 3


class Joining:
    """Whether a broker that starts knows enough to serve."""

    def __init__(self, ledger: Ledger, contacts: Iterable[Broker]) -> None:
        self._ledger = ledger
        me = ledger.me.broker.id
        known = [row.broker for row in ledger.table.members.values() if row.live]
        self._contacts = {broker.id: broker for broker in [*known, *contacts] if broker.id != me}
        self._held_before = dict(ledger.table.members)
        self._answered: set[int] = set()
        self._differing: set[int] = set()
        self.contested: str | None = None

    def strangers(self) -> list[Broker]:
        """Contacts that the tables do not know, or that left before this start and were not heard since."""
        members = self._ledger.table.members
        return [
            broker
            for number, broker in self._contacts.items()
            if number not in members or (members[number].status is Status.LEFT and self._is_old_news(number))
        ]

    def compared(self, broker: int, *, same: bool) -> None:
        """A contact said how its table compares with this broker's."""
        self._answered.add(broker)
        if same:
            self._differing.discard(broker)
        else:
            self._differing.add(broker)

    def repaired(self, broker: int) -> None:
        """All that the contact holds is in this broker's table now."""
        self._differing.discard(broker)

    def whom_to_greet(self) -> list[Broker]:
        settings = self._ledger.settings
        silent, missing = self._silent(), self._missing()
        greeted = silent if missing == len(silent) else self._ledger.some(silent, max(missing, settings.fanout))
        return [*greeted, *self.differing()] if missing else self.differing()

    def differing(self) -> list[Broker]:
        members = self._ledger.table.members
        return [members[number].broker for number in sorted(self._differing) if self._may_live(number)]

    @property
    def done(self) -> bool:
        return not self._missing() and not self.differing()

    def _missing(self) -> int:
        """How many answers are still wanted."""
        silent, settings = len(self._silent()), self._ledger.settings
        if len(self._contacts) <= settings.push_all_max:
            return silent
        return min(silent, max(0, settings.fanout - len(self._answered)))

    def _silent(self) -> list[Broker]:
        return [
            broker
            for number, broker in self._contacts.items()
            if number not in self._answered and self._may_live(number)
        ]

    def _may_live(self, number: int) -> bool:
        row = self._ledger.table.members.get(number)
        return row is None or row.live or (not self._answered and self._is_old_news(number))

    def _is_old_news(self, number: int) -> bool:
        return self._ledger.table.members.get(number) == self._held_before.get(number)


class Membership:
    def __init__(
        self,
        ledger: Ledger,
        joining: Joining,
        heartbeats: Heartbeats,
        gossip: Gossip,
        leaders: Leaders,
        changes: Changes,
        offsets: Offsets,
    ) -> None:
        self._ledger = ledger
        self._joining = joining
        self._heartbeats = heartbeats
        self._gossip = gossip
        self._leaders = leaders
        self._changes = changes
        self._offsets = offsets
        self._takers: set[int] = set()
        self._reborn = True
        self._leave_token = 0
        self._hears = False
        self.join_until_ms = 0

    def start(self, now_ms: int) -> None:
        """A new session is a new incarnation; the old one, if peers know it, is thereby over."""
        held = self._ledger.table.members.get(self._ledger.me.broker.id)
        self._reborn = held is None or held.session != self._ledger.me.session
        self._become(Phase.JOINING)
        self.join_until_ms = now_ms + self._ledger.settings.join_ms
        self._ledger.become(1 if held is None else held.incarnation + self._reborn, Status.ALIVE)
        self._heartbeats.beat(now_ms)

    def check(self, now_ms: int) -> None:
        """After each step: whether the broker has joined, or is sure for want of peers."""
        if self._hears and not self._ledger.peers():
            self._be_sure()
        if self._ledger.phase is not Phase.JOINING:
            return
        late = now_ms >= self.join_until_ms
        if late and self._joining.contested is not None:
            self._be_out(self._joining.contested)
        elif late or self._joining.done:
            self._become(Phase.MEMBER)
            self._heartbeats.next_ms = now_ms + self._ledger.chance.randrange(self._ledger.settings.heartbeat_ms)
            renewed = self._leaders.renewed() if self._reborn else []
            lost = self._leaders.lost() if self._ledger.new and self._ledger.lived_before else []
            self._ledger.joined()
            if lost:
                self._ledger.ask(Lost(tuple(TopicPartition(row.topic, row.partition) for row in lost)))
            self._changes.write(lost or [*self._leaders.all_inherited(), *renewed], now_ms)
            self._offsets.members_changed(now_ms)
            self._ledger.ask(Joined())

    def leave(self, token: int, now_ms: int) -> None:
        self._become(Phase.LEAVING)
        self._leave_token = token
        row = self._ledger.become(self._ledger.me.incarnation, Status.LEFT)
        self._changes.tell_all(token, row, now_ms)

    def finished(self, token: int) -> None:
        if self._ledger.phase is Phase.LEAVING and token == self._leave_token:
            self._become(Phase.OUT)

    def _become(self, phase: Phase) -> None:
        assert (self._ledger.phase, phase) in TRANSITIONS, f"{self._ledger.phase} does not become {phase}"
        self._ledger.phase = phase

    def _be_out(self, reason: str) -> None:
        self._become(Phase.OUT)
        self._ledger.ask(Refused(reason))

    def told_taken(self, sender: MemberRow, taken: Taken) -> None:
        """While it joins, a broker gives way to one peer that is certain; a member gives way to several."""
        if self._ledger.phase is Phase.JOINING:
            self._joining.contested = taken.reason
            if taken.certain:
                self._be_out(taken.reason)
        elif self._ledger.phase is Phase.MEMBER and taken.certain:
            self._takers.add(sender.broker.id)
            if len(self._takers) >= min(TAKERS_MAX, len(self._ledger.peers()) // 2 + 1):
                self._be_out(taken.reason)

    def heard_from(self, broker: int) -> None:
        """A peer that speaks to this broker does not think that another has its id."""
        self._takers.discard(broker)

    # --- after a pause ------------------------------------------------------------------------------------

    def hear(self) -> None:
        """A new incarnation makes tables that nobody had before: a peer whose tables have the same hash has answered
        what was asked by now, and not what still lay on its way when this broker was stopped."""
        self._hears = True
        self._gossip.spread([self._ledger.become(self._ledger.me.incarnation + 1, Status.ALIVE)])
        self._ledger.send(self._heartbeats.whom_to_ask(), Heartbeat(self._ledger.table.hash))

    def compared(self, sender: MemberRow, table_hash: int, now_ms: int) -> None:
        self._joining.compared(sender.broker.id, same=table_hash == self._ledger.table.hash)
        if not self._hears:
            self._gossip.compare(sender, table_hash, now_ms, self._heartbeats.pause_ms)
        elif table_hash == self._ledger.table.hash:
            self._be_sure()
        else:
            self._gossip.ask_for_difference(sender.broker)

    def repaired(self, sender: MemberRow) -> None:
        """All that the peer holds is in this broker's tables now."""
        if self._hears:
            self._ledger.send([sender.broker], Heartbeat(self._ledger.table.hash))
        if self._ledger.phase is Phase.JOINING:
            self._joining.repaired(sender.broker.id)
            self._ledger.send(self._joining.differing(), Heartbeat(self._ledger.table.hash))

    def _be_sure(self) -> None:
        self._hears = False
        self._ledger.ask(Heard())
