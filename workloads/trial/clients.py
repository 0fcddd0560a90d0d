"""The producers and consumers of one trial, led through their job and its windows together."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import asdict
from time import monotonic
from typing import TYPE_CHECKING, Any

from workloads.clients.drivers.api import STORAGE_FAILED, DriverError, WindowOrder
from workloads.trial.jobs import refuse_shares

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from workloads.clients.process import Client
    from workloads.processes.process import Process
    from workloads.trial.jobs import Jobs
    from workloads.trial.record import TrialRecord

Parts = list[dict[str, Any]]  # what each client did, in a window or outside of any


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

    # --- before the windows -------------------------------------------------------------------------------

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

    # --- a window -----------------------------------------------------------------------------------------

    async def prepare(
        self, who: Sequence[Client], number: int, messages: int | None = None, rate: float | None = None
    ) -> None:
        """Let them make what they can before a window."""
        for client in who:
            order = WindowOrder(number, None, None)
            if client.role == "producer":
                order = self._jobs.order(number, self.producers.index(client), messages, rate)
            await client.tell(window=asdict(order))
        for client in who:
            await client.hear("prepared")

    async def begin(self, who: Sequence[Client], targets: Mapping[int, int] | None = None) -> Work:
        """Return when all are at work: consumers first, for what is sent is to find them there."""
        if targets is not None:
            await self.aim(targets)
        for role in ("consumer", "producer"):
            own = [client for client in who if client.role == role]
            for client in own:
                await client.tell(go=True)
            for client in own:
                await client.hear("working", acknowledged=self._teller(client))
        return Work(who, self._done)

    async def aim(self, targets: Mapping[int, int]) -> None:
        """Tell the consumers how far they are to come."""
        for client in self.consumers:
            await client.tell(targets=targets)

    async def _done(self, client: Client) -> dict[str, Any]:
        part: dict[str, Any] = await client.hear("done", acknowledged=self._teller(client))
        self._record.note_part(part)
        if unstored := part.get("failed", {}).get(STORAGE_FAILED, 0):
            free = shutil.disk_usage(self._jobs.work).free // 1024**2
            raise DriverError(f"{unstored} messages could not be stored; {free:,} MiB are free in {self._jobs.work}")
        return part

    def _teller(self, client: Client) -> Callable[[int], None]:
        def told(count: int) -> None:
            self._told[client.name] = count
            self._acknowledged(sum(self._told.values()))

        return told

    # --- after the windows --------------------------------------------------------------------------------

    async def keep(self, *, joined: bool, written: bool = True) -> None:
        """Let those that have a job end it, and write down what they saw."""
        who = [*self.producers, *(self.consumers if joined else ())]
        for client in who:
            await client.tell(keep=written)
        for client in who:
            await client.hear("kept")


class Work:
    """Clients at work in a window, until each has said what it did. Use as a context: its end waits for nobody."""

    def __init__(self, who: Sequence[Client], done: Callable[[Client], Any]) -> None:
        self._who = who
        self._done = {client.name: asyncio.ensure_future(done(client)) for client in who}

    async def __aenter__(self) -> Work:
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._done.values():
            task.cancel()
        await asyncio.gather(*self._done.values(), return_exceptions=True)

    async def lasts(self, seconds: float) -> bool:
        """Let time pass; False where a consumer ran dry before, or all have ended. Raises what ended a client.

        One that has no partitions ends at once, and is not missed.
        """
        until = monotonic() + seconds
        going = set(self._done.values())
        while going and (left := until - monotonic()) > 0:
            ended, going = await asyncio.wait(going, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if any(task.result().get("dry") for task in ended):
                return False
        return bool(going)

    async def stop(self) -> None:
        for client in self._who:
            await client.tell(stop=True)

    async def parts(self, role: str | None = None) -> Parts:
        """What each of them (of that role) did; waits until all have ended."""
        own = [self._done[client.name] for client in self._who if role in (None, client.role)]
        return list(await asyncio.gather(*own))
