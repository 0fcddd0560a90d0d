"""A TCP relay in a thread of its own, which can fall silent or break: what a network does to a session."""

from __future__ import annotations

import asyncio
from threading import Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


NO_REQUEST = b"\x7f\xff\xff\xff"  # a number that none has


class Proxy:
    """`address` leads to `port`. `silence` keeps connections open and carries nothing; `cut` breaks them and takes no
    others; `heal` ends either. `garble` makes the next answer one to no request. `connections` counts those that were
    made, `carried_bytes` what went through."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._open: set[asyncio.StreamWriter] = set()
        self._carrying = asyncio.Event()
        self._accepting = True
        self._garbling = False
        self.connections = 0
        self.carried_bytes = 0
        self._server = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def _listen(self) -> asyncio.Server:
        self._carrying.set()
        return await asyncio.start_server(self._accept, "127.0.0.1", 0)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._accepting:
            writer.transport.abort()
            return
        try:
            onwards, back = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            return
        self.connections += 1
        self._open |= {writer, back}
        await asyncio.gather(self._carry(reader, back), self._carry(onwards, writer, answers=True))
        self._open -= {writer, back}

    async def _carry(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, answers: bool = False
    ) -> None:
        try:
            while data := await reader.read(65_536):
                await self._carrying.wait()
                if answers and self._garbling:
                    data, self._garbling = data[:4] + NO_REQUEST + data[8:], False
                self.carried_bytes += len(data)
                writer.write(data)
        except OSError:
            pass
        writer.close()

    def _do(self, work: Callable[[], object]) -> None:
        async def done() -> None:
            work()

        asyncio.run_coroutine_threadsafe(done(), self._loop).result()

    def silence(self) -> None:
        self._do(self._carrying.clear)

    def go_on_carrying(self) -> None:
        """After `silence`: what was said meanwhile arrives after all, as from one who was slow to read it."""
        self._do(self._carrying.set)

    def garble(self) -> None:
        self._garbling = True

    def cut(self) -> None:
        self._do(self._cut)

    def _cut(self) -> None:
        self._accepting = False
        self._break()

    def _break(self) -> None:
        for writer in self._open:
            writer.transport.abort()

    def heal(self) -> None:
        """What was silent is broken by now: its bytes would come late, and no network keeps them this long."""
        self._do(self._heal)

    def _heal(self) -> None:
        self._accepting = True
        if not self._carrying.is_set():
            self._break()
            self._carrying.set()

    def close(self) -> None:
        async def end() -> None:
            self._server.close()
            self._carrying.set()
            self._break()
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()

        asyncio.run_coroutine_threadsafe(end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
