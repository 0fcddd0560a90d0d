"""How a broker asks another: what the broker lends its coordinator beside frames that nobody answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from coordinators.model import Broker

    Answering = Callable[[bytes], Awaitable[bytes]]


class Asking(Protocol):
    """A question reaches the other broker once or not at all. On one event loop."""

    def answer_with(self, answering: Answering | None) -> None:
        """Call `answering` with each question that comes in; None refuses them, as before the first call."""

    async def ask(self, to: Broker, question: bytes, within_s: float) -> bytes:
        """The other broker's answer. Raises `OutcomeUnknown` where none comes in time: it may have been asked."""
