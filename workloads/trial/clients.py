"""The producers and consumers of one trial, led through their jobs together."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from workloads.clients.drivers.api import STORAGE_FAILED, DriverError
from workloads.trial.jobs import refuse_shares

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from workloads.clients.process import Client
    from workloads.processes.process import Process
    from workloads.trial.jobs import Jobs
    from workloads.trial.record import TrialRecord


class TrialClients:
    """Their results go into the record. Raises `ClientFailed` and `ProcessFailed` throughout."""

    def __init__(
        self,
        clients: Sequence[Client],
        jobs: Jobs,
        record: TrialRecord,
        acknowledged: Callable[[int], None] = lambda _: None,
    ) -> None:
        """`acknowledged` hears how many messages are acknowledged, where the jobs say that producers tell."""
        workload = record.trial.cell.workload
        self.producers = [c for c in clients if c.role == "producer"][: workload.producers]
        self.consumers = [c for c in clients if c.role == "consumer"][: workload.consumers]
        self._jobs = jobs
        self._record = record
        self._acknowledged = acknowledged
        self._told: dict[str, int] = {}  # acknowledged messages of each producer

    @property
    def processes(self) -> Mapping[str, tuple[str, Process]]:
        """Name -> role and process."""
        return {client.name: (client.role, client.process) for client in (*self.producers, *self.consumers)}

    def outs(self, role: str) -> list[Path]:
        """The prefix of their files' names."""
        found = self.producers if role == "producer" else self.consumers
        return [self._jobs.out(role, number) for number in range(len(found))]

    async def begin_connecting(self) -> None:
        for number, client in enumerate(self.producers):
            await client.tell(produce=asdict(self._jobs.produce(number)))

    async def connected(self) -> None:
        self._record.doing = "connecting the producers"
        self._record.connect_s = max([(await client.hear("ready"))["seconds"] for client in self.producers])

    async def join(self) -> None:
        """Let the consumers join, and go on when each partition is the matter of one of them for good."""
        self._record.doing = "joining the consumers"
        for number, client in enumerate(self.consumers):
            await client.tell(consume=asdict(self._jobs.consume(number)))
        for client in self.consumers:
            await client.hear("joined")
        for client in self.consumers:
            await client.tell(all_joined=True)
        ready = [await client.hear("ready") for client in self.consumers]
        refuse_shares(self._record.trial.cell.cluster.partitions, [part["partitions"] for part in ready])
        self._record.join_s = max(part["seconds"] for part in ready)

    async def produce(self) -> None:
        """Return when every message is acknowledged or has failed."""
        self._record.doing = "producing"
        await self._begin("producer", self.producers)
        self._record.produced = await asyncio.gather(*(self._produced(client) for client in self.producers))
        if unstored := sum(part["failed"].get(STORAGE_FAILED, 0) for part in self._record.produced):
            free = shutil.disk_usage(self._jobs.work).free // 1024**2
            raise DriverError(f"{unstored} messages could not be stored; {free:,} MiB are free in {self._jobs.work}")

    async def _begin(self, role: str, clients: Sequence[Client]) -> None:
        for number, client in enumerate(clients):
            await client.tell(window=asdict(self._jobs.order(role, number)))
        for client in clients:
            await client.hear("prepared")
        for client in clients:
            await client.tell(go=True)

    async def _produced(self, client: Client) -> dict[str, Any]:
        def told(count: int) -> None:
            self._told[client.name] = count
            self._acknowledged(sum(self._told.values()))

        await client.hear("working", acknowledged=told)
        await self._stop([client])
        done: dict[str, Any] = await client.hear("done", acknowledged=told)
        return done

    async def _stop(self, clients: Sequence[Client]) -> None:
        """Where the window goes by time."""
        if (duration_s := self._jobs.duration_s()) is not None:
            await asyncio.sleep(duration_s)
            for client in clients:
                await client.tell(stop=True)

    async def start_consuming(self) -> None:
        """Return when the first fetches are on their way."""
        await self._begin("consumer", self.consumers)
        for client in self.consumers:
            await client.hear("working")

    async def finish_consuming(self, targets: Mapping[int, int]) -> None:
        """Tell the consumers how far they are to come, and wait until they are there."""
        self._record.doing = "consuming"
        for client in self.consumers:
            await client.tell(targets=targets)
        await self._stop(self.consumers)
        self._record.consumed = [await client.hear("done") for client in self.consumers]

    async def keep(self, clients: Sequence[Client]) -> None:
        """Let those whose work is over write it down; of a warm-up only the rates are wanted, and they have been
        told."""
        for client in clients:
            await client.tell(keep=self._jobs.size is not None)
        for client in clients:
            await client.hear("kept")
