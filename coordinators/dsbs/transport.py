"""How frames travel between brokers: what the broker lends its coordinator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from coordinators.model import Broker


class Transport(Protocol):
    """Best effort: a frame may be lost, late, twice or out of order; it is never changed. On one event loop."""

    def listen(self, deliver: Callable[[bytes], None]) -> None:
        """Call `deliver` with each frame that comes in; frames that came before are lost."""

    def send(self, to: Broker, content: bytes) -> None:
        """Send a frame to a broker's `rpc_port`. Never waits; what cannot be sent in time is lost."""
