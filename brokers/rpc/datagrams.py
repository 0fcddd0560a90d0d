"""Small frames between brokers as datagrams (UDP), at the number of the port at which the gRPC service listens.

A call of gRPC costs both ends together about a millisecond of processor time, and an idle cluster says little but
heartbeats, which may be lost. So a small frame goes as a datagram wherever the peer has shown that datagrams reach it
and come back; else, and where it shows that no more, it takes the other way. The peer shows it by its own frames, which
say that it has heard lately; one that has not is answered by a short datagram.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from ipaddress import ip_address
from math import inf
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

Address = tuple[str, int]
CONTENT_BYTES_MAX: Final = 1200  # so that no network takes it apart
# After so long without an answer, a peer has not shown that datagrams reach it.
ANSWERED_WITHIN_S: Final = 1.0
PEERS_MAX: Final = 2000
READ_AT_ONCE_MAX: Final = 100
_FRAME, _FRAME_AND_HEARD, _HEARD = b"f", b"F", b"h"


class Datagrams:
    """`deliver` is called with each frame that comes in."""

    def __init__(self, deliver: Callable[[bytes], None], clock: Callable[[], float]) -> None:
        self._deliver = deliver
        self._clock = clock
        self._socket: socket.socket | None = None
        self._reached: set[Address] = set()
        self._unanswered: dict[Address, float] = {}  # since when
        self._heard: dict[Address, float] = {}  # when last

    def open(self, here: Address) -> None:
        """From now on datagrams come in; where that cannot be, none go out either."""
        if not _is_number(here[0]):
            return
        made = socket.socket(socket.AF_INET6 if ":" in here[0] else socket.AF_INET, socket.SOCK_DGRAM)
        made.setblocking(False)
        try:
            made.bind(here)
        except OSError:
            made.close()
            return
        self._socket = made
        asyncio.get_running_loop().add_reader(made.fileno(), self._read)

    def send(self, to: Address, content: bytes) -> bool:
        """Whether the frame is on its way; if not, it has to take another."""
        if self._socket is None or len(content) > CONTENT_BYTES_MAX or not _is_number(to[0]):
            return False
        now = self._clock()
        if now - self._unanswered.get(to, now) >= ANSWERED_WITHIN_S:
            self._reached.discard(to)
        if to not in self._reached:
            self._unanswered.pop(to, None)
            self._put(_FRAME, to)  # without content: who hears it answers
            return False
        self._unanswered.setdefault(to, now)
        has_heard = now - self._heard.get(to, -inf) < ANSWERED_WITHIN_S
        return self._put((_FRAME_AND_HEARD if has_heard else _FRAME) + content, to)

    def close(self) -> None:
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket.fileno())
            self._socket.close()
            self._socket = None

    def _put(self, datagram: bytes, to: Address) -> bool:
        if self._socket is None:
            return False
        with suppress(OSError):  # as good as lost on its way
            return self._socket.sendto(datagram, to) == len(datagram)
        return False

    def _read(self) -> None:
        for _ in range(READ_AT_ONCE_MAX):
            if self._socket is None:
                return
            try:
                datagram, sender = self._socket.recvfrom(1 + CONTENT_BYTES_MAX)
            except OSError:  # nothing is left, or a peer's port was closed
                return
            self._take(datagram, (sender[0], sender[1]))

    def _take(self, datagram: bytes, sender: Address) -> None:
        kind, content = datagram[:1], datagram[1:]
        if sender not in self._heard and len(self._heard) >= PEERS_MAX:
            return
        self._heard[sender] = self._clock()
        if kind in (_HEARD, _FRAME_AND_HEARD):
            self._unanswered.pop(sender, None)
            self._reached.add(sender)
        if kind == _FRAME:
            self._put(_HEARD, sender)
        if content and kind in (_FRAME, _FRAME_AND_HEARD):
            self._deliver(content)


def _is_number(host: str) -> bool:
    """A name would have to be looked up first, and is not what a datagram comes from."""
    with suppress(ValueError):
        return not ip_address(host).is_unspecified
    return False
