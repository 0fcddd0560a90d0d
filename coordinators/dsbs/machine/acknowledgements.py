"""Changes whose maker waits until all live peers know of them, or until it can name those that do not. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from coordinators.dsbs.machine.events import Finished
from coordinators.dsbs.tables.messages import AskOffsets, Copy, Push
from coordinators.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from coordinators.dsbs.machine.ledger import Ledger
    from coordinators.dsbs.tables.messages import Body

WAITING_MAX: Final = 1000


@dataclass(slots=True)
class Request:
    body: Push | AskOffsets | Copy
    missing: set[int]
    known_to: set[int]
    deadline_ms: int


class Requests:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._waiting: dict[int, Request] = {}

    def check_room(self) -> None:
        """Raises `Unavailable`."""
        if len(self._waiting) >= WAITING_MAX:
            raise Unavailable(f"{WAITING_MAX} changes wait for their acknowledgement already")

    def begin(self, token: int, body: Push | AskOffsets | Copy, asked: Iterable[int], now_ms: int) -> None:
        """Wait for the answers of `asked`; `body` is repeated to those that stay silent."""
        deadline_ms = now_ms + self._ledger.settings.acknowledge_ms
        self._waiting[token] = Request(body, set(asked), {self._ledger.me.broker.id}, deadline_ms)
        self._finish_if_over(token, now_ms)

    def expects(self, broker: int, token: int) -> bool:
        """Whether somebody here waits for that answer."""
        return token in self._waiting and broker in self._waiting[token].missing

    def answered(self, broker: int, token: int, now_ms: int) -> None:
        if self.expects(broker, token):
            self._waiting[token].missing.discard(broker)
            self._waiting[token].known_to.add(broker)
            self._finish_if_over(token, now_ms)

    def check(self, now_ms: int) -> None:
        """Give up requests whose time is over, and stop waiting for dead brokers."""
        for token in list(self._waiting):
            self._finish_if_over(token, now_ms)

    def repeat(self) -> None:
        """Repeat each request to the brokers that have not answered."""
        for request in self._waiting.values():
            silent = self._ledger.some(sorted(request.missing), self._ledger.settings.push_all_max)
            self._send(silent, request.body)

    def _send(self, brokers: Iterable[int], body: Body) -> None:
        members = self._ledger.table.members
        self._ledger.send([members[number].broker for number in brokers if number in members], body)

    def next_ms(self) -> int | None:
        return min((request.deadline_ms for request in self._waiting.values()), default=None)

    def _finish_if_over(self, token: int, now_ms: int) -> None:
        request = self._waiting[token]
        members = self._ledger.table.members
        request.missing = {number for number in request.missing if number in members and members[number].live}
        if not request.missing or now_ms >= request.deadline_ms:
            del self._waiting[token]
            self._ledger.ask(Finished(token, frozenset(request.known_to), frozenset(request.missing)))
