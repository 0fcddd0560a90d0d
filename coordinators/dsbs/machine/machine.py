"""One broker's part in DSBS: `step(event, now) -> actions`. Pure: time and chance are arguments.

A member sends heartbeats, answers everybody, suspects silent brokers, buries suspects, inherits what dead brokers led
where it is the heir, and refutes peers that think it dead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from coordinators.dsbs.machine import topics
from coordinators.dsbs.machine.acknowledgements import Requests
from coordinators.dsbs.machine.changes import Changes
from coordinators.dsbs.machine.events import (
    ChangeInSync,
    Commit,
    CreateTopic,
    DeleteTopic,
    Finished,
    Forget,
    Gather,
    Hear,
    Leave,
    Received,
    Resign,
    Start,
    Wake,
)
from coordinators.dsbs.machine.gossip import Gossip
from coordinators.dsbs.machine.heartbeats import Heartbeats
from coordinators.dsbs.machine.inbox import Inbox
from coordinators.dsbs.machine.leaders import Leaders
from coordinators.dsbs.machine.ledger import Ledger, Phase
from coordinators.dsbs.machine.liveness import Liveness
from coordinators.dsbs.machine.membership import Joining, Membership
from coordinators.dsbs.machine.offsets import Offsets
from coordinators.dsbs.tables.messages import AskOffsets, Copy
from coordinators.dsbs.tables.rows import MemberRow, OffsetRow, Row, Status, TableRow
from coordinators.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from coordinators.dsbs.machine.events import Action, Event
    from coordinators.dsbs.machine.ledger import Chance
    from coordinators.dsbs.options import Settings
    from coordinators.dsbs.tables.tables import Table
    from coordinators.model import Broker


class Machine:
    """`session` is this process's own, drawn at random; `contacts` are the brokers of the config file; `table` and
    `offsets` are what an earlier process left on the disk."""

    def __init__(
        self,
        me: Broker,
        session: int,
        contacts: Iterable[Broker],
        settings: Settings,
        chance: Chance,
        table: Table,
        offsets: Iterable[OffsetRow] = (),
    ) -> None:
        self._ledger = Ledger(MemberRow(me, session, 1, Status.ALIVE), table, settings, chance)
        self._liveness = Liveness(settings)
        joining, gossip, leaders = Joining(self._ledger, contacts), Gossip(self._ledger), Leaders(self._ledger)
        self._requests = Requests(self._ledger)
        self.offsets = Offsets(self._ledger, offsets)
        self._changes = Changes(self._ledger, self._liveness, gossip, self._requests, leaders, self.offsets)
        self._heartbeats = Heartbeats(self._ledger, self._liveness, joining, gossip, self._requests, self._changes)
        self._membership = Membership(
            self._ledger, joining, self._heartbeats, gossip, leaders, self._changes, self.offsets
        )
        self._inbox = Inbox(
            self._ledger, self._liveness, self._membership, gossip, self._requests, self._changes, self.offsets
        )
        self._prepared: tuple[Event | None, Sequence[Row]] = (None, ())
        self._gathering: dict[int, str] = {}
        self.wake_ms = 0  # when the machine wants to be woken, whatever else happens
        self._now_ms = 0

    # --- to look at ---------------------------------------------------------------------------------------

    @property
    def phase(self) -> Phase:
        return self._ledger.phase

    @property
    def table(self) -> Table:
        return self._ledger.table

    @property
    def me(self) -> MemberRow:
        return self._ledger.me

    @property
    def refused(self) -> dict[str, int]:
        """Bad input by its reason, counted."""
        return self._ledger.refused

    # --- the step -----------------------------------------------------------------------------------------

    def prepare(self, event: Event) -> Sequence[Row]:
        """The rows by which this broker does what its own clients ask of it.

        They are for the disk before the step: where it refuses them, the step is left out, and nothing has happened.
        A step that was prepared does not persist them again. Raises what the step would.
        """
        rows = self._asked(event)
        self.prepared(event, rows)
        return rows

    def prepared(self, event: Event, rows: Sequence[Row]) -> None:
        """These rows of the event, whose step comes next, are on the disk."""
        self._prepared = (event, rows)

    def _asked(self, event: Event) -> Sequence[Row]:
        me, table = self.me.broker.id, self.table
        self._check_member()
        match event:
            case Commit(group, offsets, _, at_ms):
                return self.offsets.placed(group, offsets, at_ms)
            case CreateTopic(_, name, partitions, replication_factor, settings, taken):
                self._requests.check_room()
                return [topics.creation(table, me, name, partitions, replication_factor, settings, taken)]
            case DeleteTopic(_, name):
                self._requests.check_room()
                return [topics.deletion(table, me, name)]
            case ChangeInSync(at, in_sync, epoch):
                return [topics.in_sync_changed(table, at, me, epoch, in_sync)]
            case Resign(at, epoch):
                return [topics.resignation(table, at, me, epoch)]
        return ()

    def _check_member(self) -> None:
        if self.phase is not Phase.MEMBER:
            raise Unavailable(f"broker {self.me.broker.id} is not a member of the cluster: {self.phase.value}")

    def step(self, event: Event, now_ms: int) -> list[Action]:
        """Raises `CoordinationError` for what is asked by this broker itself; nothing has happened then."""
        if self.phase is Phase.OUT:
            return []
        if self.phase is not Phase.NEW and now_ms > self.wake_ms + self._ledger.settings.timeout_ms // 2:
            self._liveness.slept(now_ms)
        self._now_ms = now_ms
        self._handle(event)
        self._membership.check(now_ms)
        self.wake_ms = self._due_ms(event)
        actions = self._ledger.take()
        for action in actions:
            if isinstance(action, Finished):
                self._finished(action.token)
        return actions

    def _due_ms(self, event: Event) -> int:
        copies = self.offsets.copies.next_ms
        if isinstance(event, Commit):  # on the path of every consumed batch, and moves nothing else
            return self.wake_ms if copies is None else min(self.wake_ms, copies)
        judgement = self._liveness.next_ms() if self.phase is Phase.MEMBER else None
        joined = self._membership.join_until_ms if self.phase is Phase.JOINING else None
        later = (judgement, joined, self._requests.next_ms(), copies)
        return min([self._heartbeats.next_ms, *(due for due in later if due is not None)])

    def _handle(self, event: Event) -> None:
        match event:
            case Received(content):
                self._inbox.receive(content, self._now_ms)
            case Wake():
                self._wake()
            case Start():
                self._membership.start(self._now_ms)
            case _:
                self._check_member()
                self._do(event)

    def _do(self, event: Event) -> None:
        """Do what this broker's own clients ask."""
        if self._prepared[0] is event:
            rows = self._prepared[1]
            self._ledger.on_disk(rows)
        else:
            rows = self._asked(event)
        match event:
            case Commit(group, _, token):
                self._commit(group, rows, token)
            case CreateTopic(token) | DeleteTopic(token):
                self._changes.tell_all(token, _table_rows(rows)[0], self._now_ms)
            case ChangeInSync() | Resign():
                self._changes.write(_table_rows(rows), self._now_ms)
            case Forget(groups):
                self.offsets.forget(groups)
            case Gather(token, group):
                self._requests.check_room()
                self._gather(token, group)
            case Hear():
                self._membership.hear()
            case Leave(token):
                self._membership.leave(token, self._now_ms)

    def _commit(self, group: str, rows: Sequence[Row], token: int) -> None:
        """First places are waited for until others keep copies of them."""
        asked = self.offsets.commit(group, cast("Sequence[OffsetRow]", rows), self._now_ms, token)
        if token:
            body = Copy(self.offsets.copies.begun(token), token)
            self._ledger.send([self.table.members[number].broker for number in asked], body)
            self._requests.begin(token, body, asked, self._now_ms)

    def _finished(self, token: int) -> None:
        self._membership.finished(token)
        self.offsets.copies.finished(token)
        group = self._gathering.pop(token, None)
        if group is not None:
            self.offsets.gathered.add(group)

    # --- time ---------------------------------------------------------------------------------------------

    def _wake(self) -> None:
        if self._now_ms >= self._heartbeats.next_ms:
            self._heartbeats.beat(self._now_ms)
        if self.phase is Phase.MEMBER:
            self._heartbeats.judge(self._now_ms)
        self._requests.check(self._now_ms)
        copies_due_ms = self.offsets.copies.next_ms
        if copies_due_ms is not None and self._now_ms >= copies_due_ms:
            self.offsets.copies.send(self._now_ms)

    def _gather(self, token: int, group: str) -> None:
        """Ask the brokers that may hold copies of a group's offsets."""
        asked = self.offsets.copies.whom_to_ask(group)
        members, body = self.table.members, AskOffsets(group, token)
        self._gathering[token] = group
        self._ledger.send([members[number].broker for number in asked], body)
        self._requests.begin(token, body, asked, self._now_ms)


def _table_rows(rows: Iterable[Row]) -> list[TableRow]:
    return [row for row in rows if not isinstance(row, OffsetRow)]
