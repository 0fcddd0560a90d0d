"""Frames between brokers: the gRPC service that takes them in, and the connections that they go out on.

Small ones go as datagrams where that is known to work (`datagrams.py`). For the others, each peer has one connection
and one queue; frames go out one after the other, each with a deadline. A lost frame is no error: the coordinator is
made for that. A connection on which a frame was lost is given up, and the next frame has a new one: after a silent
break TCP itself would wait for minutes, and gRPC pauses between its attempts to reach a broker that was dead, which
would keep the answer from one that has just come back.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING, Final

import grpc.aio

from brokers.rpc import peer_pb2 as pb
from brokers.rpc.datagrams import Address, Datagrams
from brokers.rpc.peer_pb2_grpc import PeerServicer, PeerStub
from coordinators.errors import OutcomeUnknown

if TYPE_CHECKING:
    from collections.abc import Callable

    from coordinators.model import Broker
    from coordinators.registry import Answering

DEADLINE_S: Final = 1.0
IDLE_S: Final = 30.0
FRAME_BYTES_MAX: Final = 16 * 1024 * 1024
QUEUED_FRAMES_MAX: Final = 1000
CONNECTIONS_MAX: Final = 2000
_OPTIONS: Final = (
    ("grpc.max_send_message_length", FRAME_BYTES_MAX + 1024),
    ("grpc.use_local_subchannel_pool", 1),  # else a new channel would get the old one's broken connection
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 500),
    ("grpc.enable_retries", 0),
)


class GrpcTransport:
    """A `coordinators.registry.Transport`; `PeerService` hands it what comes in."""

    def __init__(self, me: Broker | None = None) -> None:
        """Without `me` nothing is sent as a datagram."""
        self._me = me
        self._lines: dict[Address, Line] = {}
        self._datagrams = Datagrams(self.arrived, time.monotonic)
        self._deliver: Callable[[bytes], None] | None = None

    def listen(self, deliver: Callable[[bytes], None]) -> None:
        self._deliver = deliver
        if self._me is not None:
            self._datagrams.open((self._me.host, self._me.rpc_port))

    def arrived(self, content: bytes) -> None:
        if self._deliver is not None:
            self._deliver(content)

    def send(self, to: Broker, content: bytes) -> None:
        address = (to.host, to.rpc_port)
        if self._datagrams.send(address, content):
            return
        line = self._lines.get(address)
        if line is None:
            if len(self._lines) >= CONNECTIONS_MAX:
                return
            line = self._lines[address] = Line(address, lambda: self._lines.pop(address, None))
        line.put(content)

    async def close(self) -> None:
        self._datagrams.close()
        lines = list(self._lines.values())
        self._lines.clear()
        await asyncio.gather(*(line.close() for line in lines))


class Line:
    """The way to one peer: a bounded queue and the task that empties it. Ends by itself when long unused."""

    def __init__(self, address: Address, ended: Callable[[], object]) -> None:
        self._target = f"{address[0]}:{address[1]}"
        self._queue: deque[bytes] = deque(maxlen=QUEUED_FRAMES_MAX)  # the oldest is lost where there is no room
        self._filled = asyncio.Event()
        self._ended = ended
        self._task = asyncio.create_task(self._run())

    def put(self, content: bytes) -> None:
        self._queue.append(content)
        self._filled.set()

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _run(self) -> None:
        try:
            while await self._has_more():
                await self._send_on_one_connection()
        finally:
            self._ended()

    async def _has_more(self) -> bool:
        """Wait for a frame; False where none came for long."""
        self._filled.clear()
        if self._queue:
            return True
        try:
            async with asyncio.timeout(IDLE_S):
                await self._filled.wait()
        except TimeoutError:
            return bool(self._queue)
        return True

    async def _send_on_one_connection(self) -> None:
        """Until it breaks, or nothing has been sent for long."""
        async with grpc.aio.insecure_channel(self._target, options=_OPTIONS) as channel:
            stub = PeerStub(channel)
            while await self._has_more():
                try:
                    await stub.Tell(pb.Frame(content=self._queue.popleft()), timeout=DEADLINE_S)
                except grpc.aio.AioRpcError as error:
                    if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                        self._queue.clear()  # what waited behind it is as old, and was or will be said again
                    return


class GrpcAsking:
    """A `coordinators.registry.Asking`; `PeerService` hands it what comes in. A connection for each question: there
    are few, and one of before may be broken in silence, or wait before it tries a broker again that has come back."""

    def __init__(self) -> None:
        self._answering: Answering | None = None

    def answer_with(self, answering: Answering | None) -> None:
        self._answering = answering

    async def answered(self, question: bytes) -> bytes | None:
        """None where this broker answers nobody, because it starts or stops."""
        return None if self._answering is None else await self._answering(question)

    async def ask(self, to: Broker, question: bytes, within_s: float) -> bytes:
        """Raises `OutcomeUnknown`."""
        target = f"{to.host}:{to.rpc_port}"
        async with grpc.aio.insecure_channel(target, options=_OPTIONS) as channel:
            try:
                return (await PeerStub(channel).Ask(pb.Frame(content=question), timeout=within_s)).content
            except grpc.aio.AioRpcError as error:
                if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                    raise OutcomeUnknown(f"no answer from {target} within {within_s:g} s") from error
                if error.code() is grpc.StatusCode.UNAVAILABLE:
                    raise OutcomeUnknown(f"{target} cannot be reached") from error
                raise OutcomeUnknown(f"{target}: {error.details()}") from error


class PeerService(PeerServicer):
    def __init__(self, transport: GrpcTransport, asking: GrpcAsking) -> None:
        self._transport = transport
        self._asking = asking

    async def Tell(  # noqa: N802 - the service's name
        self, request: pb.Frame, context: grpc.aio.ServicerContext[pb.Frame, pb.Arrived]
    ) -> pb.Arrived:
        self._transport.arrived(request.content)
        return pb.Arrived()

    async def Ask(  # noqa: N802 - the service's name
        self, request: pb.Frame, context: grpc.aio.ServicerContext[pb.Frame, pb.Frame]
    ) -> pb.Frame:
        answer = await self._asking.answered(request.content)
        if answer is None:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "it is starting or stopping")
        return pb.Frame(content=answer)
