"""The verbs for one process of a playground while the cluster runs; each returns when its effect is there."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from workloads.errors import UserError
from workloads.playground.playground import ProcessState
from workloads.processes.liveness import Liveness

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from workloads.processes.process import Process
    from workloads.systems.api import System
    from workloads.systems.nodes import Nodes


class WrongState(UserError):
    """The process is not in a state in which that can be done to it."""


class NoSuchProcess(UserError):
    """The cluster has no process of that name."""


def states_of(nodes: Nodes) -> list[ProcessState]:
    return [state_of(nodes, name) for name in nodes.processes]


def state_of(nodes: Nodes, name: str) -> ProcessState:
    role, process = nodes.processes[name]
    liveness = process.liveness
    end = process.end if liveness is Liveness.GONE and not process.running else None
    return ProcessState(name, role, process.pid, process.started, liveness.value, end)


class Verbs:
    """On the processes of a cluster that runs, one after the other."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._nodes = system.nodes
        self._turn = asyncio.Lock()
        self._known: Mapping[str, Callable[[str], Awaitable[str]]] = {
            "start": self._start,
            "stop": self._stop,
            "kill": self._kill,
            "pause": self._pause,
            "resume": self._resume,
        }

    async def do(self, verb: str, name: str) -> str:
        """The action done, in words. Raises `NoSuchProcess`, `WrongState`, `NoEffect`, and the errors of a start."""
        if name not in self._nodes.names:
            raise NoSuchProcess(f"this cluster has no {name}; it has {', '.join(self._nodes.names) or 'no process'}")
        async with self._turn:
            return await self._known[verb](name)

    async def _start(self, name: str) -> str:
        self._require(name, Liveness.GONE)
        await self._system.start_again(name)
        return f"{name} serves again (process {self._nodes[name].pid})"

    async def _stop(self, name: str) -> str:
        process = self._require(name, Liveness.RUNNING)
        await self._nodes.terminate(name)
        return f"{name} {process.end} (process {process.pid})"

    async def _kill(self, name: str) -> str:
        process = self._require(name, Liveness.RUNNING, Liveness.PAUSED)
        await self._nodes.kill(name)
        return f"{name} {process.end} (process {process.pid})"

    async def _pause(self, name: str) -> str:
        process = self._require(name, Liveness.RUNNING)
        await self._nodes.pause(name)
        return f"{name} stands still (process {process.pid})"

    async def _resume(self, name: str) -> str:
        process = self._require(name, Liveness.PAUSED)
        await self._nodes.resume(name)
        return f"{name} goes on (process {process.pid})"

    def _require(self, name: str, *allowed: Liveness) -> Process:
        process = self._nodes[name]
        if process.liveness not in allowed:
            raise WrongState(str(state_of(self._nodes, name)))
        return process
