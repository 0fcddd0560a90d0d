"""One broker's part in DSBS: `step(event, now) -> actions`. Pure: time and chance are arguments.

A member sends heartbeats, answers everybody, suspects who is silent, buries suspects, inherits what dead brokers led
where it is the heir, and refutes whoever thinks it dead. Bad input is counted in `refused` by its reason and changes
nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, cast

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
    Heard,
    Joined,
    Leave,
    Lost,
    Received,
    Refused,
    Resign,
    Start,
    Wake,
)
from coordinators.dsbs.machine.gossip import Gossip
from coordinators.dsbs.machine.identity import Identity
from coordinators.dsbs.machine.joining import Joining
from coordinators.dsbs.machine.leaders import Leaders
from coordinators.dsbs.machine.ledger import TRANSITIONS, Ledger, Phase
from coordinators.dsbs.machine.liveness import Liveness
from coordinators.dsbs.machine.offsets import Offsets
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
from coordinators.dsbs.tables.rows import MemberRow, OffsetRow, Row, Status, TableRow
from coordinators.dsbs.tables.tables import outranks
from coordinators.errors import Unavailable
from coordinators.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from coordinators.dsbs.machine.events import Action, Event
    from coordinators.dsbs.machine.ledger import Chance
    from coordinators.dsbs.options import Settings
    from coordinators.dsbs.tables.messages import Body
    from coordinators.dsbs.tables.tables import Table
    from coordinators.model import Broker

JOIN_BEATS_PER_HEARTBEAT: Final = 4
TAKERS_MAX: Final = 3


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
        self._identity = Identity(self._ledger, self._liveness)
        self._joining = Joining(self._ledger, contacts)
        self._gossip = Gossip(self._ledger)
        self._requests = Requests(self._ledger)
        self._leaders = Leaders(self._ledger)
        self.offsets = Offsets(self._ledger, offsets)
        self._changes = Changes(self._ledger, self._liveness, self._gossip, self._requests, self._leaders, self.offsets)
        self._takers: set[int] = set()
        self._prepared: tuple[Event | None, Sequence[Row]] = (None, ())
        self._gathering: dict[int, str] = {}
        self._reborn = True
        self._leave_token = 0
        self._hears = False
        self.wake_ms = 0  # when the machine wants to be woken, whatever else happens
        self._now_ms = 0
        self._next_beat_ms = 0
        self._join_until_ms = 0

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
        self._prepared = (event, self._asked(event))
        return self._prepared[1]

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
        if self.phase is Phase.JOINING:
            self._check_joined()
        if self._hears and not self._ledger.peers():
            self._be_sure()
        self.wake_ms = self._due_ms(event)
        actions = self._ledger.take()
        for action in actions:
            if isinstance(action, Finished):
                self._finished(action.token)
        return actions

    def _due_ms(self, event: Event) -> int:
        copies = self.offsets.next_ms()
        if isinstance(event, Commit):  # on the path of every consumed batch, and moves nothing else
            return self.wake_ms if copies is None else min(self.wake_ms, copies)
        judgement = self._liveness.next_ms() if self.phase is Phase.MEMBER else None
        joined = self._join_until_ms if self.phase is Phase.JOINING else None
        later = (judgement, joined, self._requests.next_ms(), copies)
        return min([self._next_beat_ms, *(due for due in later if due is not None)])

    def _handle(self, event: Event) -> None:
        match event:
            case Received(content):
                self._receive(content)
            case Wake():
                self._wake()
            case Start():
                self._start()
            case _:
                self._check_member()
                self._do(event)

    def _do(self, event: Event) -> None:
        """What this broker's own clients ask."""
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
                self._hear()
            case Leave(token):
                self._leave(token)

    def _commit(self, group: str, rows: Sequence[Row], token: int) -> None:
        """First places are waited for until others keep copies of them."""
        asked = self.offsets.commit(group, cast("Sequence[OffsetRow]", rows), self._now_ms, token)
        if token:
            body = Copy(self.offsets.begun(token), token)
            self._ledger.send([self.table.members[number].broker for number in asked], body)
            self._requests.begin(token, body, asked, self._now_ms)

    def _finished(self, token: int) -> None:
        if self.phase is Phase.LEAVING and token == self._leave_token:
            self._become(Phase.OUT)
        self.offsets.finished(token)
        group = self._gathering.pop(token, None)
        if group is not None:
            self.offsets.gathered.add(group)

    def _become(self, phase: Phase) -> None:
        assert (self.phase, phase) in TRANSITIONS, f"{self.phase} does not become {phase}"
        self._ledger.phase = phase

    # --- joining and leaving ------------------------------------------------------------------------------

    def _start(self) -> None:
        """A new session is a new incarnation; the old one, if peers know it, is thereby over."""
        held = self.table.members.get(self.me.broker.id)
        self._reborn = held is None or held.session != self.me.session
        self._become(Phase.JOINING)
        self._join_until_ms = self._now_ms + self._ledger.settings.join_ms
        self._ledger.become(1 if held is None else held.incarnation + self._reborn, Status.ALIVE)
        self._beat()

    def _check_joined(self) -> None:
        late = self._now_ms >= self._join_until_ms
        if late and self._joining.contested is not None:
            self._be_out(self._joining.contested)
        elif late or self._joining.done:
            self._become(Phase.MEMBER)
            self._next_beat_ms = self._now_ms + self._ledger.chance.randrange(self._ledger.settings.heartbeat_ms)
            renewed = self._leaders.renewed() if self._reborn else []
            lost = self._leaders.lost() if self._ledger.new and self._ledger.lived_before else []
            self._ledger.joined()
            if lost:
                self._ledger.ask(Lost(tuple(TopicPartition(row.topic, row.partition) for row in lost)))
            self._changes.write(lost or [*self._leaders.all_inherited(), *renewed], self._now_ms)
            self.offsets.members_changed(self._now_ms)
            self._ledger.ask(Joined())

    def _leave(self, token: int) -> None:
        self._become(Phase.LEAVING)
        self._leave_token = token
        row = self._ledger.become(self.me.incarnation, Status.LEFT)
        self._changes.tell_all(token, row, self._now_ms)

    def _hear(self) -> None:
        """A new incarnation makes tables that nobody had before: a peer whose tables have the same hash has answered
        what was asked by now, and not what still lay on its way when this broker was stopped."""
        self._hears = True
        self._gossip.spread([self._ledger.become(self.me.incarnation + 1, Status.ALIVE)])
        self._ledger.send(self._whom_to_ask(), Heartbeat(self.table.hash))

    def _compare(self, sender: MemberRow, table_hash: int) -> None:
        if not self._hears:
            self._gossip.compare(sender, table_hash, self._now_ms, self._pause_ms())
        elif table_hash == self.table.hash:
            self._be_sure()
        else:
            self._gossip.ask_for_difference(sender.broker)

    def _be_sure(self) -> None:
        self._hears = False
        self._ledger.ask(Heard())

    def _be_out(self, reason: str) -> None:
        self._become(Phase.OUT)
        self._ledger.ask(Refused(reason))

    def _be_told_taken(self, sender: MemberRow, taken: Taken) -> None:
        """In joining, one who is certain is enough; a member gives way to several."""
        if self.phase is Phase.JOINING:
            self._joining.contested = taken.reason
            if taken.certain:
                self._be_out(taken.reason)
        elif self.phase is Phase.MEMBER and taken.certain:
            self._takers.add(sender.broker.id)
            if len(self._takers) >= min(TAKERS_MAX, len(self._ledger.peers()) // 2 + 1):
                self._be_out(taken.reason)

    # --- time ---------------------------------------------------------------------------------------------

    def _wake(self) -> None:
        if self._now_ms >= self._next_beat_ms:
            self._beat()
        if self.phase is Phase.MEMBER:
            self._judge()
        self._requests.check(self._now_ms)
        copies_due_ms = self.offsets.next_ms()
        if copies_due_ms is not None and self._now_ms >= copies_due_ms:
            self.offsets.copy(self._now_ms)

    def _beat(self) -> None:
        body = Heartbeat(self.table.hash)
        self._next_beat_ms = self._now_ms + self._pause_ms()
        if self.phase is Phase.JOINING:
            self._ledger.send(self._joining.whom_to_greet(), body)
            return
        if self.phase is Phase.MEMBER:
            asked = self._whom_to_ask()
            for broker in asked:
                self._liveness.asked(broker.id, self._now_ms)
            self._ledger.send([*asked, *self._estranged()], body)
        self._requests.repeat()
        self._gossip.retell()

    def _pause_ms(self) -> int:
        """Between two heartbeats, and between two repairs."""
        beats = JOIN_BEATS_PER_HEARTBEAT if self.phase is Phase.JOINING else 1
        return max(1, self._ledger.settings.heartbeat_ms // beats)

    def _whom_to_ask(self) -> list[Broker]:
        """All peers, or in a crowd some at random, and those that have not answered yet."""
        peers = self._ledger.peers()
        if not self._ledger.crowded:
            return [peer.broker for peer in peers]
        chosen = {peer.broker.id: peer.broker for peer in self._ledger.some(peers, self._ledger.settings.fanout)}
        members = self.table.members
        chosen.update({n: members[n].broker for n in self._liveness.waiting_for if n in members and members[n].live})
        return list(chosen.values())

    def _estranged(self) -> list[Broker]:
        """Some of the dead, and of those never heard of: after a split of the network somebody has to knock."""
        dead = [row.broker for row in self.table.members.values() if row.status is Status.DEAD]
        return self._ledger.some([*dead, *self._joining.strangers()], self._ledger.settings.fanout)

    def _judge(self) -> None:
        """Suspect who is silent, bury who did not refute it."""
        members = self.table.members
        silent = self._liveness.silent(self._now_ms)
        for number in silent:
            self._liveness.accused(number)
        verdicts = [(number, Status.SUSPECT) for number in silent]
        verdicts += [(number, Status.DEAD) for number in self._liveness.over(self._now_ms)]
        self._changes.write([replace(members[number], status=status) for number, status in verdicts], self._now_ms)

    # --- messages -----------------------------------------------------------------------------------------

    def _receive(self, content: bytes) -> None:
        try:
            envelope = decode(content)
        except Malformed:
            self._ledger.refuse("malformed")
            return
        sender = envelope.sender
        if not self._identity.admits(envelope, self._now_ms, member=self.phase is Phase.MEMBER):
            return
        if isinstance(envelope.body, Taken):
            self._be_told_taken(sender, envelope.body)
            return
        self._changes.absorb([sender], self._now_ms, forward=True)
        held = self.table.members.get(sender.broker.id)
        if held is None or held.session != sender.session:
            return
        if not self._liveness.heard(sender, envelope.sequence, self._now_ms):
            self._ledger.refuse("replayed")
        self._takers.discard(sender.broker.id)
        self._answer(sender, envelope.body)

    def _answer(self, sender: MemberRow, body: Body) -> None:
        to = sender.broker
        match body:
            case Heartbeat():
                self._ledger.send([to], Here(self.table.hash))
            case Here(table_hash):
                self._joining.compared(to.id, same=table_hash == self.table.hash)
                self._compare(sender, table_hash)
            case Push():
                self._learn(sender, body)
            case Known(token, rows):
                self._changes.absorb(rows, self._now_ms)
                self._requests.answered(to.id, token, self._now_ms)
            case Digest():
                self._gossip.answer_digest(to, body)
            case Repair():
                self._repair(sender, body)
            case Copy(copies, token):
                self.offsets.copied_here(copies)
                self._ledger.send([to], Kept(token))
            case Kept(token):
                self.offsets.kept(to.id, token)
                self._requests.answered(to.id, token, self._now_ms)
            case AskOffsets(group, token):
                self._ledger.send([to], self.offsets.tell(group, token))
            case TellOffsets(told, token):
                if self._requests.expects(to.id, token):
                    self.offsets.copied_here(told)
                    self._requests.answered(to.id, token, self._now_ms)

    def _repair(self, sender: MemberRow, repair: Repair) -> None:
        useful = bool(self._changes.absorb(repair.rows, self._now_ms))
        self._gossip.answer_repair(sender.broker, repair, useful=useful)
        if self._hears and not repair.more:
            self._ledger.send([sender.broker], Heartbeat(self.table.hash))
        if self.phase is Phase.JOINING and not repair.more:
            self._joining.repaired(sender.broker.id)
            self._ledger.send(self._joining.differing(), Heartbeat(self.table.hash))

    def _learn(self, sender: MemberRow, push: Push) -> None:
        """Take in what was pushed; tell its origin, if that waits for it."""
        news = self._changes.absorb(push.rows, self._now_ms)
        mine = [(row, self.table.held(row)) for row in push.rows]
        origin = self.table.members.get(push.origin)
        if push.token and origin is not None and (news or push.origin == sender.broker.id):
            higher = tuple(held for row, held in mine if held is not None and held != row)
            if all(held is not None and not outranks(row, held) for row, held in mine):
                self._ledger.send([origin.broker], Known(push.token, higher))
        if news and self._ledger.crowded:
            self._gossip.rumour(replace(push, rows=tuple(news)))

    def _gather(self, token: int, group: str) -> None:
        """Ask those who may hold copies of a group's offsets."""
        asked = self.offsets.whom_to_ask(group)
        members, body = self.table.members, AskOffsets(group, token)
        self._gathering[token] = group
        self._ledger.send([members[number].broker for number in asked], body)
        self._requests.begin(token, body, asked, self._now_ms)


def _table_rows(rows: Iterable[Row]) -> list[TableRow]:
    return [row for row in rows if not isinstance(row, OffsetRow)]
