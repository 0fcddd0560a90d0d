"""A process of its own for one broker's coordinator: `python -m tests.contract.member SOCKET`.

Whoever connects to the socket has it make a DSBS coordinator, with the broker's own gRPC transport and journals, and
then calls its verbs (`frames`). It ends with the connection, as a process does: it tells nobody.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack
from typing import Any

import grpc.aio

from brokers.journal import FileJournal
from brokers.rpc.peer import GrpcAsking, GrpcTransport, PeerService
from brokers.rpc.peer_pb2_grpc import add_PeerServicer_to_server
from coordinators.dsbs.coordinator import DsbsCoordinator
from coordinators.errors import CoordinationError
from coordinators.model import Partition
from coordinators.registry import CoordinatorSetup
from tests.contract.frames import Call, Hello, Told, read, write


class Member:
    """One coordinator, for as long as a connection lasts."""

    def __init__(self, coordinator: DsbsCoordinator, writer: asyncio.StreamWriter) -> None:
        self._coordinator = coordinator
        self._writer = writer
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader) -> None:
        self._keep(self._tell_views())
        try:
            while True:
                self._keep(self._do(await read(reader)))
        except asyncio.IncompleteReadError:
            for task in self._tasks:
                task.cancel()
            self._coordinator._shell.end("it was killed")

    def _keep(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _tell_views(self) -> None:
        async for view in self._coordinator.views():
            write(self._writer, Told(view))

    async def _do(self, call: Call) -> None:
        try:
            if call.verb == "leader":
                found = self._coordinator.leader(*call.arguments)
                value = found if isinstance(found, Partition) else await found
            else:
                value = await getattr(self._coordinator, call.verb)(*call.arguments)
        except CoordinationError as error:
            write(self._writer, Told(self._coordinator.view(), call.token, error=error))
        else:
            write(self._writer, Told(self._coordinator.view(), call.token, value))


async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    hello: Hello = await read(reader)
    transport, server = GrpcTransport(), grpc.aio.server(options=[("grpc.so_reuseport", 0)])
    async with AsyncExitStack() as closing:
        closing.callback(writer.close)
        add_PeerServicer_to_server(PeerService(transport, GrpcAsking()), server)
        server.add_insecure_port(f"{hello.me.host}:{hello.me.rpc_port}")

        def journal(name: str) -> FileJournal:
            made = FileJournal(hello.journals / f"{name}.journal", durable=False)
            closing.callback(made.close)
            return made

        await server.start()
        closing.push_async_callback(server.stop, None)
        closing.push_async_callback(transport.close)
        setup = CoordinatorSetup(hello.me, hello.brokers, journal, hello.options, transport)
        await Member(DsbsCoordinator(setup), writer).serve(reader)


async def main(path: str) -> None:
    server = await asyncio.start_unix_server(accept, path)
    print("ready", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
