"""A process of its own for one broker's coordinator: `python -m tests.contract.member SOCKET`.

Whoever connects to the socket has it make a DSBS coordinator, with the broker's own gRPC transport and journals, and
then calls its verbs. It ends with the connection, as a process does: it tells nobody. Both sides are this project's
tests, so what passes is pickled.
"""

from __future__ import annotations

import asyncio
import copyreg
import pickle
import sys
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import grpc.aio

from brokers.journal import FileJournal
from brokers.rpc.peer import GrpcTransport, PeerService
from brokers.rpc.peer_pb2_grpc import add_PeerServicer_to_server
from coordinators.config import CoordinatorSetup
from coordinators.dsbs.coordinator import DsbsCoordinator
from coordinators.errors import CoordinationError
from coordinators.model import Broker, ClusterView

if TYPE_CHECKING:
    from collections.abc import Mapping

_SIZE_BYTES: Final = 4
copyreg.pickle(MappingProxyType, lambda mapping: (MappingProxyType, (dict(mapping),)))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Hello:
    me: Broker
    brokers: tuple[Broker, ...]
    options: Mapping[str, object]
    journals: Path


@dataclass(frozen=True, slots=True)
class Call:
    token: int
    verb: str
    arguments: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Told:
    """What the coordinator's view is by now, and the outcome of a call if it is one that is told of."""

    view: ClusterView
    token: int = 0
    value: object = None
    error: CoordinationError | None = None


async def read(reader: asyncio.StreamReader) -> Any:
    """The next message. Raises `IncompleteReadError` where there is none."""
    size = int.from_bytes(await reader.readexactly(_SIZE_BYTES))
    return pickle.loads(await reader.readexactly(size))


def write(writer: asyncio.StreamWriter, message: object) -> None:
    content = pickle.dumps(message)
    writer.write(len(content).to_bytes(_SIZE_BYTES) + content)


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
            self._coordinator._end("it was killed")

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
                value = self._coordinator.known_leader(*call.arguments)
            else:
                value = await getattr(self._coordinator, call.verb)(*call.arguments)
        except CoordinationError as error:
            write(self._writer, Told(self._coordinator.view(), call.token, error=error))
        else:
            write(self._writer, Told(self._coordinator.view(), call.token, value))


async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    hello: Hello = await read(reader)
    transport, server = GrpcTransport(), grpc.aio.server(options=[("grpc.so_reuseport", 0)])
    add_PeerServicer_to_server(PeerService(transport), server)
    server.add_insecure_port(f"{hello.me.host}:{hello.me.rpc_port}")
    async with AsyncExitStack() as closing:
        closing.callback(writer.close)

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
