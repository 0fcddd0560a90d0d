"""One architecture's cluster in a fleet, with clients of its own: started, watched, started again when it is lost."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from shutil import rmtree
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from workloads.clients.drivers.api import DriverError
from workloads.clients.process import Client, ClientFailed
from workloads.errors import BrokerlabError
from workloads.processes.pinning import bind
from workloads.processes.ports import NoFreePort
from workloads.processes.process import ProcessFailed
from workloads.systems.api import SystemSetup, SystemUnready
from workloads.systems.nodes import NoEffect
from workloads.systems.registry import create
from workloads.topology.api import TopologyFailed, TopologyUnavailable
from workloads.topology.choice import topology_of
from workloads.trial.trial import TrialRun

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine, Sequence
    from pathlib import Path

    from workloads.faults.script import Script
    from workloads.spec.plan import Cell, Fleet, Plan, Trial
    from workloads.spec.settings import Architecture
    from workloads.systems.api import System
    from workloads.topology.api import Topology

# A client that loses its broker may say so before the broker's own end is noticed, which is the better reason.
END_NOTICED_WITHIN_S: Final = 1.0


class ClusterLost(BrokerlabError):
    """A cluster did not start."""


class TrialTimeout(BrokerlabError):
    """A trial took longer than the spec allows."""


# What ends one trial and its cluster, while the others go on.
ENDS: Final = (ProcessFailed, ClientFailed, DriverError, NoEffect, TopologyFailed, TrialTimeout)


class Arm:
    """`label` names its folders; `everybody` tells the pids of the whole run."""

    def __init__(
        self,
        architecture: Architecture,
        fleet: Fleet,
        plan: Plan,
        results: Path,
        label: str,
        everybody: Callable[[], Collection[int]],
    ) -> None:
        self.architecture = architecture
        self._fleet = fleet
        self._plan = plan
        self._label = label
        self._work = results / "work" / label
        self._logs = results / "logs" / label
        self._everybody = everybody
        self._life: AsyncExitStack | None = None
        self._system: System
        self._clients: list[Client] = []
        self._starts = 0

    @property
    def up(self) -> bool:
        return self._life is not None

    @property
    def pids(self) -> list[int]:
        """Its processes on this machine."""
        if not self.up:
            return []
        served = [process.pid for _, process in self._system.nodes.processes_here.values()]
        return served + [client.process.pid for client in self._clients]

    async def start(self) -> None:
        """Raises `ClusterLost`, and `UserError` where the user can mend it; then nothing of it is left."""
        self._starts += 1
        logs = self._logs if self._starts == 1 else self._logs.with_name(f"{self._label}-{self._starts}")
        cells = [visit.cell for visit in self._fleet.visits]
        counts = max(cell.workload.producers for cell in cells), max(cell.workload.consumers for cell in cells)
        async with AsyncExitStack() as stack:
            topology = topology_of(self._fleet.cluster, *counts, self._plan.hosts)
            stack.push_async_callback(topology.stop)
            setup = SystemSetup(self.architecture, self._fleet.cluster, self._work / "cluster", logs, topology)
            self._system = create(setup)
            stack.push_async_callback(self._system.stop)
            try:
                await topology.start(logs)
                self._clients = await _clients(stack, cells, counts, logs, topology)  # they load beside the cluster
                await self._system.start()
            except (ProcessFailed, SystemUnready, NoFreePort, TopologyUnavailable, TopologyFailed) as error:
                raise ClusterLost(f"the cluster did not start: {error}") from error
            served = self._system.nodes.processes_here.values()
            for role, process in [*served, *((client.role, client.process) for client in self._clients)]:
                bind(process.pid, self._plan.pin.of_role(role))
            self._life = stack.pop_all()

    async def stop(self) -> None:
        """Safe to call twice, and before a start."""
        life, self._life = self._life, None
        if life is not None:
            await life.aclose()
        rmtree(self._work, ignore_errors=True)

    def trial(self, trial: Trial, script: Script, *, history: bool) -> TrialRun:
        """Begin a trial: there is one at a time."""
        work = self._work / "trial"
        rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        return TrialRun(
            trial, self._system, self._clients, work, self._plan.timeout_s, self._everybody, script, history=history
        )

    async def guarded(self, run: TrialRun, step: Callable[[], Coroutine[Any, Any, None]]) -> bool:
        """Do a step of a trial while the system lives and the trial's time lasts; whether it came to its end. Else the
        record says why not, and the cluster is not fit for another trial."""
        before = monotonic()
        try:
            await self._watched(run, step, self._plan.timeout_s - run.record.spent_s)
        except ENDS as failed:
            run.record.fail(str(failed))
            run.record.note_steps(run.faults.done)
            await self.stop()
            return False
        finally:
            run.record.spent_s += monotonic() - before
        return True

    async def _watched(self, run: TrialRun, step: Callable[[], Coroutine[Any, Any, None]], left_s: float) -> None:
        work = asyncio.create_task(step())
        watch = asyncio.create_task(run.faults.failed())
        try:
            await asyncio.wait({work, watch}, timeout=max(0.0, left_s), return_when=asyncio.FIRST_COMPLETED)
            if work.done() and work.exception() is not None:
                await asyncio.wait({watch}, timeout=END_NOTICED_WITHIN_S)
            if watch.done():
                raise watch.result()
            if not work.done():
                raise TrialTimeout(f"not finished within {self._plan.timeout_s:g} s; it was {run.record.doing}")
            work.result()
        finally:
            watch.cancel()
            work.cancel()
            await asyncio.gather(work, watch, return_exceptions=True)


async def _clients(
    stack: AsyncExitStack, cells: Sequence[Cell], counts: tuple[int, int], logs: Path, topology: Topology
) -> list[Client]:
    """As many producers and consumers as the hungriest of the cells needs."""
    clients = []
    drivers = sorted({cell.workload.driver for cell in cells})
    for role, count in zip(("producer", "consumer"), counts, strict=True):
        for number in range(count):
            client = await Client.start(role, number, drivers, logs, topology)
            stack.push_async_callback(client.process.stop)
            clients.append(client)
    return clients
