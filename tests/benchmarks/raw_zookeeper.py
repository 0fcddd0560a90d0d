"""As little of a ZooKeeper client as reads znodes, by the wire protocol: what the reads themselves cost a process."""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from itertools import count
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from types import TracebackType

GET_DATA: Final = 4
NO_NODE: Final = -101
_CONNECT: Final = struct.Struct(">iiqiqi16sb")  # length, version, last zxid, timeout, session, password, read-only
_CONNECTED: Final = struct.Struct(">iiqi")  # version, timeout, session, length of the password
_REQUEST: Final = struct.Struct(">iiii")  # length, xid, type, length of the path
_ANSWER: Final = struct.Struct(">iqi")  # xid, zxid, error
_LENGTH: Final = struct.Struct(">i")
TIMEOUT_MS: Final = 20_000


class RawZooKeeper(asyncio.Protocol):
    """One connection and its session, without pings: for less than the session's timeout at a time."""

    def __init__(self) -> None:
        self._received = b""
        self._xids = count(1)
        self._asked: deque[tuple[int, asyncio.Future[bytes | None]]] = deque()
        self._greeted: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._transport: asyncio.Transport

    async def __aenter__(self) -> Self:
        self.granted_ms = await self._greeted
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._transport.close()

    def get(self, path: str) -> asyncio.Future[bytes | None]:
        """The data of a znode, or None where there is none. Any number may be under way."""
        xid, name = next(self._xids), path.encode()
        size = _REQUEST.size - _LENGTH.size + len(name) + 1
        self._transport.write(_REQUEST.pack(size, xid, GET_DATA, len(name)) + name + b"\0")
        answer: asyncio.Future[bytes | None] = asyncio.get_running_loop().create_future()
        self._asked.append((xid, answer))
        return answer

    # --- asyncio.Protocol ---------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(_CONNECT.pack(_CONNECT.size - _LENGTH.size, 0, 0, TIMEOUT_MS, 0, 16, b"", 0))

    def data_received(self, data: bytes) -> None:
        received, at = self._received + data, 0
        while len(received) - at >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(received, at)
            if len(received) - at - _LENGTH.size < length:
                break
            at += _LENGTH.size
            self._take(received[at : at + length])
            at += length
        self._received = received[at:]

    def _take(self, answer: bytes) -> None:
        if not self._greeted.done():
            self._greeted.set_result(_CONNECTED.unpack_from(answer)[1])
            return
        xid, _, error = _ANSWER.unpack_from(answer)
        asked, future = self._asked.popleft()
        if xid != asked or error not in {0, NO_NODE}:
            future.set_exception(RuntimeError(f"asked {asked}, answered {xid} with error {error}"))
        elif error:
            future.set_result(None)
        else:
            (length,) = _LENGTH.unpack_from(answer, _ANSWER.size)
            begin = _ANSWER.size + _LENGTH.size
            future.set_result(answer[begin : begin + length])

    def connection_lost(self, error: Exception | None) -> None:
        for _, future in self._asked:
            if not future.done():
                future.set_exception(error or ConnectionResetError("the server has closed the connection"))


async def connected(host: str, port: int) -> RawZooKeeper:
    """For `async with`."""
    _, made = await asyncio.get_running_loop().create_connection(RawZooKeeper, host, port)
    return made
