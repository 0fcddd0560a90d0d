"""When a broker that starts knows enough to serve. Pure.

It says hello to all whom it knows of and waits until each has answered and their tables agree with its own, so that it
neither leads by an old table what others lead by now, nor creates topics for too few brokers. In a crowd a few will
do. After `join_ms` it goes on without those who are silent.

Who had gone by its own table may be back: where all brokers were stopped, each has heard the others leave. So until
somebody has answered, those are waited for as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinators.dsbs.tables.rows import Status

if TYPE_CHECKING:
    from collections.abc import Iterable

    from coordinators.dsbs.machine.ledger import Ledger
    from coordinators.model import Broker


class Joining:
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
        """Contacts that the tables do not know, or of which nothing was heard since they left, before this start."""
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
        """What the contact holds is in this broker's table now."""
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
