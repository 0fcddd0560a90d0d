"""Which brokers answer, which are suspected, and whose time is over. Pure; time is an argument.

A broker that was asked and has said nothing for `timeout_ms` is silent, and is then suspected in everybody's tables. A
suspect that has not refuted it `suspicion_ms` later is dead. A broker whose own clock stood still (it was paused,
or starved) starts to wait from the beginning: it hears before it judges.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from coordinators.dsbs.tables.rows import Status

if TYPE_CHECKING:
    from coordinators.dsbs.options import Settings
    from coordinators.dsbs.tables.rows import MemberRow


@dataclass(slots=True)
class Heard:
    session: int
    sequence: int
    at_ms: int


class Liveness:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._heard: dict[int, Heard] = {}
        self._unanswered: dict[int, int] = {}
        self._suspected: dict[int, tuple[int, int]] = {}  # broker -> incarnation, since when
        self._accused: set[int] = set()  # those of them that this broker itself suspected

    def asked(self, broker: int, now_ms: int) -> None:
        """A heartbeat went out; what counts is the first that is not answered."""
        self._unanswered.setdefault(broker, now_ms)

    def heard(self, sender: MemberRow, sequence: int, now_ms: int) -> bool:
        """Take a message as a sign of life; False where it is one that was heard before, or came late."""
        known = self._heard.get(sender.broker.id)
        if known is not None and known.session == sender.session and sequence <= known.sequence:
            return False
        self._heard[sender.broker.id] = Heard(sender.session, sequence, now_ms)
        self._unanswered.pop(sender.broker.id, None)
        return True

    def heard_lately(self, member: MemberRow, now_ms: int) -> bool:
        """Whether this very process was heard within the timeout."""
        known = self._heard.get(member.broker.id)
        recent = known is not None and now_ms - known.at_ms < self._settings.timeout_ms
        return recent and known is not None and known.session == member.session

    def changed(self, member: MemberRow, now_ms: int) -> None:
        """The tables say something new of a broker."""
        number = member.broker.id
        if member.status is Status.SUSPECT:
            if self._suspected.get(number, (-1, 0))[0] != member.incarnation:
                # The accuser buries first; the others need not say the same again.
                grace_ms = 0 if number in self._accused else self._settings.heartbeat_ms
                self._suspected[number] = (member.incarnation, now_ms + grace_ms)
            return
        self._accused.discard(number)
        self._suspected.pop(number, None)
        if not member.live:
            self._unanswered.pop(number, None)
        elif number in self._unanswered:  # it spoke to somebody
            self._unanswered[number] = now_ms

    @property
    def waiting_for(self) -> list[int]:
        """Brokers that have not answered yet."""
        return list(self._unanswered)

    def silent(self, now_ms: int) -> list[int]:
        """Brokers to suspect, which are not suspected yet."""
        patience = self._settings.timeout_ms
        return [broker for broker, since in self._unsuspected() if now_ms - since >= patience]

    def over(self, now_ms: int) -> list[int]:
        """Brokers to bury."""
        patience = self._settings.suspicion_ms
        return [broker for broker, (_, since) in self._suspected.items() if now_ms - since >= patience]

    def next_ms(self) -> int | None:
        """When the next judgement is due."""
        silent = [since + self._settings.timeout_ms for _, since in self._unsuspected()]
        over = [since + self._settings.suspicion_ms for _, since in self._suspected.values()]
        return min([*silent, *over], default=None)

    def _unsuspected(self) -> list[tuple[int, int]]:
        return [(broker, since) for broker, since in self._unanswered.items() if broker not in self._suspected]

    def accused(self, broker: int) -> None:
        """This broker itself is about to say that it suspects another."""
        self._accused.add(broker)

    def slept(self, now_ms: int) -> None:
        """This broker's own clock stood still: nobody's silence counts until now."""
        self._unanswered = dict.fromkeys(self._unanswered, now_ms)
        self._suspected = {number: (incarnation, now_ms) for number, (incarnation, _) in self._suspected.items()}
