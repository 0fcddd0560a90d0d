"""The socket of one client, as far as answers leave by it: through the transport, or past it from files."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, cast

from brokers.listeners.events import Event
from brokers.listeners.sendfile import LentSender
from brokers.log.errors import LogError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence

    from brokers.listeners.config import ListenerLimits
    from brokers.wire.apis.fetch import Records


class ClientSocket:
    """`tell` hears what becomes of what was given here, `failed` of an answer that left in part or not at all."""

    def __init__(
        self,
        transport: asyncio.Transport,
        limits: ListenerLimits,
        tell: Callable[[Event], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        self._transport = transport
        self._bytes_max = limits.unsent_bytes_max
        self._tell = tell
        self._failed = failed
        self._lent: LentSender | None = None
        transport.set_write_buffer_limits(high=limits.unsent_bytes_max)
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, limits.send_buffer_bytes)

    @property
    def behind(self) -> bool:
        """Whether the client has not read yet what was sent."""
        return self._transport.get_write_buffer_size() > 0 or (self._lent is not None and self._lent.busy)

    @property
    def backlog(self) -> tuple[int, int]:
        """How much the client has left unread, and how much has left from files: one changes while it reads."""
        return self._transport.get_write_buffer_size(), 0 if self._lent is None else self._lent.bytes_sent

    def write(self, pieces: Sequence[Records]) -> None:
        self._transport.writelines(cast("list[bytes | memoryview]", pieces))

    def drain(self, _: None) -> None:
        """Tell when all that was written has been taken."""
        if self._transport.get_write_buffer_size():
            self._transport.set_write_buffer_limits(high=0)
        else:
            self._tell(Event.DRAINED)

    def lend(self, pieces: Sequence[Records]) -> None:
        """Send an answer past the transport, which has nothing left to send."""
        self._transport.set_write_buffer_limits(high=self._bytes_max)
        try:
            if self._lent is None:
                self._lent = LentSender(self._transport, self._lent_left)
            left = self._lent.send(pieces)
        except (OSError, LogError) as error:
            self._failed(error)
            return
        if left:
            self._tell(Event.LENT_LEFT)

    def read(self, wanted: bool) -> None:
        """Read on, or no further."""
        if wanted is not self._transport.is_reading():
            (self._transport.resume_reading if wanted else self._transport.pause_reading)()

    def close(self, _: None = None) -> None:
        """After what was written."""
        self._transport.close()

    def abort(self, _: None = None) -> None:
        if self._lent is not None:
            self._lent.close()
            self._lent = None
        self._transport.abort()

    def _lent_left(self, error: Exception | None) -> None:
        """A lent answer has left, or will not: half an answer is no answer."""
        if error is not None:
            self._failed(error)
        else:
            self._tell(Event.LENT_LEFT)
