"""What a person may do to one process of a playground while the cluster runs; each returns when it has come about."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import TYPE_CHECKING, Final

from workloads.errors import BrokerlabError, UserError
from workloads.playground.playground import ProcessState
from workloads.processes.liveness import Liveness

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from workloads.processes.process import Process
    from workloads.systems.brokerlab import Cluster

EFFECT_WITHIN_S: Final = 5.0
LOOK_EVERY_S: Final = 0.005


class WrongState(UserError):
    """The process is not in a state in which that can be done to it."""


class NoSuchProcess(UserError):
    """The cluster has no process of that name."""


class NoEffect(BrokerlabError):
    """A signal was sent, and the process does not do what it says."""


def states_of(cluster: Cluster) -> list[ProcessState]:
    return [state_of(cluster, name) for name in cluster.processes]


def state_of(cluster: Cluster, name: str) -> ProcessState:
    role, process = cluster.processes[name]
    liveness = process.liveness
    end = process.end if liveness is Liveness.GONE and not process.running else None
    return ProcessState(name, role, process.pid, process.started, liveness.value, end)


class Verbs:
    """On the processes of a cluster that runs, one after the other."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._turn = asyncio.Lock()
        self._known: Mapping[str, Callable[[str], Awaitable[str]]] = {
            "start": self._start,
            "stop": self._stop,
            "kill": self._kill,
            "pause": self._pause,
            "resume": self._resume,
        }

    async def do(self, verb: str, name: str) -> str:
        """What was done, in words. Raises `NoSuchProcess`, `WrongState`, `NoEffect`, and what a start raises."""
        if name not in self._cluster.names:
            raise NoSuchProcess(f"this cluster has no {name}; it has {', '.join(self._cluster.names)}")
        async with self._turn:
            return await self._known[verb](name)

    async def _start(self, name: str) -> str:
        self._require(name, Liveness.GONE)
        await self._cluster.start_again(name)
        return f"{name} serves again (process {self._process(name).pid})"

    async def _stop(self, name: str) -> str:
        process = self._require(name, Liveness.RUNNING)
        await process.stop()
        return f"{name} {process.end} (process {process.pid})"

    async def _kill(self, name: str) -> str:
        process = self._require(name, Liveness.RUNNING, Liveness.PAUSED)
        process.kill()
        await process.ended()
        return f"{name} {process.end} (process {process.pid})"

    async def _pause(self, name: str) -> str:
        process = self._require(name, Liveness.RUNNING)
        process.pause()
        await self._until(process, Liveness.PAUSED)
        return f"{name} stands still (process {process.pid})"

    async def _resume(self, name: str) -> str:
        process = self._require(name, Liveness.PAUSED)
        process.resume()
        await self._until(process, Liveness.RUNNING)
        return f"{name} goes on (process {process.pid})"

    def _process(self, name: str) -> Process:
        return self._cluster.processes[name][1]

    def _require(self, name: str, *allowed: Liveness) -> Process:
        process = self._process(name)
        if process.liveness not in allowed:
            raise WrongState(str(state_of(self._cluster, name)))
        return process

    async def _until(self, process: Process, wanted: Liveness) -> None:
        deadline = monotonic() + EFFECT_WITHIN_S
        while process.liveness is not wanted:
            if process.liveness is Liveness.GONE or monotonic() > deadline:
                raise NoEffect(f"{process.name} is not {wanted.value} but {process.liveness.value}")
            await asyncio.sleep(LOOK_EVERY_S)
