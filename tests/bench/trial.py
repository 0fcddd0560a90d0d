"""One trial: a topic of its own, filled and read, or both at once; what the window took, and what it cost whom."""

from __future__ import annotations

import json
import sys
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from tests.bench.target import PARTITIONS
from workloads.clients.drivers.api import ConsumeJob, ProduceJob
from workloads.clients.process import Client
from workloads.errors import BrokerlabError
from workloads.processes.process import Process

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from tests.bench.cells import Cell, Mode
    from tests.bench.target import Requests, Target

# A consumer takes what lies ready, up to this much at once: its own cost must not hide the brokers'.
TAKEN_MESSAGES_MAX: Final = 1000
TAKEN_BYTES_MAX: Final = 4 * 1024 * 1024


class Unbalanced(BrokerlabError):
    """Messages failed, or came back other than they were sent: no rate of such a trial counts."""


@dataclass(frozen=True, slots=True)
class Length:
    """Exactly so many messages, or as many as a time takes."""

    messages: int | None
    duration_s: float | None


@dataclass(frozen=True, slots=True)
class Window:
    """What one window measured."""

    mode: Mode
    messages: int
    seconds: float
    broker_cpu_s: float  # all brokers together
    client_cpu_s: float  # all clients together
    produced_each: float | None  # messages per produce request, as the brokers counted them
    fetched_each: float | None

    @property
    def rate(self) -> float:
        return self.messages / self.seconds


class Clients:
    """A producer's and a consumer's process, which serve one trial after the other."""

    producer: Client
    consumer: Client

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._running: list[Client] = []

    async def start(self) -> None:
        """Anew if need be: who was in a trial that failed may still be in the middle of it."""
        await self.stop()
        self.producer = await self._started("producer")
        self.consumer = await self._started("consumer")

    async def _started(self, role: str) -> Client:
        command = [sys.executable, "-m", "tests.bench.client"]
        process = await Process.start(role, command, self._logs / f"{role}.log", spoken_with=True)
        self._running.append(Client(role, role, process))
        return self._running[-1]

    async def stop(self) -> None:
        while self._running:
            await self._running.pop().process.stop()


class Trial:
    def __init__(self, target: Target, who: Clients, cell: Cell, topic: str, length: Length) -> None:
        self._target = target
        self._who = who
        self._cell = cell
        self._topic = topic
        self._length = length

    async def split(self) -> list[Window]:
        """Produce alone, then consume alone what was produced."""
        async with self._topic_made():
            await self._who.producer.tell(produce=asdict(self._produce_job()))
            await self._who.producer.hear("ready")
            produced = await self._measured("produce", [self._who.producer])
            await self._join()
            await self._who.consumer.tell(targets=await self._target.end_offsets(self._topic))
            consumed = await self._measured("consume", [self._who.consumer])
        return [produced, consumed]

    async def both(self) -> list[Window]:
        """Consume while producing; the window ends with the last message received."""
        async with self._topic_made():
            await self._join()
            await self._who.producer.tell(produce=asdict(self._produce_job()))
            await self._who.producer.hear("ready")
            window = await self._measured("both", [self._who.consumer, self._who.producer])
        return [window]

    @asynccontextmanager
    async def _topic_made(self) -> AsyncIterator[None]:
        """A topic for the trial, which goes with it, because what it holds may be large."""
        await self._target.create_topic(self._topic)
        try:
            yield
        finally:
            await self._target.delete_topic(self._topic)

    async def _join(self) -> None:
        await self._who.consumer.tell(consume=asdict(self._consume_job()))
        await self._who.consumer.hear("ready")

    async def _measured(self, mode: Mode, running: Sequence[Client]) -> Window:
        """Let the clients run, the producer last, and read the brokers' counters around it."""
        produce, fetch = await self._requests("produce"), await self._requests("fetch")
        cpu_s = self._target.cpu_s()
        for client in running:
            await client.tell(go=True)
            if client is self._who.consumer:
                await client.hear("started")
        done = [await running[-1].hear("done")]
        if mode == "both":
            await self._who.consumer.tell(targets=await self._target.end_offsets(self._topic))
            done.append(await self._who.consumer.hear("done"))
        cpu_s = self._target.cpu_s() - cpu_s
        self._refuse_unbalanced(done)
        return Window(
            mode=mode,
            messages=done[0]["messages"],
            seconds=(done[-1]["ended_ns"] - done[0]["started_ns"]) / 1e9,
            broker_cpu_s=cpu_s,
            client_cpu_s=sum(each["cpu_s"] for each in done),
            produced_each=_each(await self._requests("produce"), produce),
            fetched_each=_each(await self._requests("fetch"), fetch),
        )

    async def _requests(self, operation: str) -> Requests | None:
        return await self._target.requests(operation)

    def _refuse_unbalanced(self, done: Sequence[dict[str, Any]]) -> None:
        if any(each["wrong"] for each in done) or len({each["messages"] for each in done}) > 1:
            raise Unbalanced(f"{self._target.name} {self._cell.name}: {json.dumps(list(done))}")

    def _produce_job(self) -> ProduceJob:
        return ProduceJob(
            driver="kafka",
            bootstrap=self._target.bootstrap,
            topic=self._topic,
            partitions=PARTITIONS,
            producer=0,
            messages=self._length.messages,
            duration_s=self._length.duration_s,
            message_size=self._cell.message_bytes,
            batch_size=self._cell.batch_messages,
            acks=1,
            rate=None,
            out="",
        )

    def _consume_job(self) -> ConsumeJob:
        size = self._cell.message_bytes
        return ConsumeJob(
            driver="kafka",
            bootstrap=self._target.bootstrap,
            topic=self._topic,
            partitions=tuple(range(PARTITIONS)),
            consumer=0,
            group=f"group-{self._topic}",
            message_size=size,
            batch_size=max(1, min(TAKEN_MESSAGES_MAX, TAKEN_BYTES_MAX // size)),
            fetch="stream",
            commit="end",
            commit_interval_ms=None,
            duration_s=None,
            out="",
        )


def _each(now: Requests | None, before: Requests | None) -> float | None:
    return None if now is None or before is None else now.since(before).messages_each
