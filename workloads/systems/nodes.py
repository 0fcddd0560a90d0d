"""The processes of a system by name, and what can be done to one of them while the others run."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import TYPE_CHECKING, Final

from workloads.errors import BrokerlabError
from workloads.processes.liveness import Liveness

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workloads.processes.process import Process

EFFECT_WITHIN_S: Final = 5.0
LOOK_EVERY_S: Final = 0.005


class NoEffect(BrokerlabError):
    """A signal was sent, and the process does not do what it says."""


class Nodes:
    """Everything that serves, and what carries packets between them. A process that has ended stays until another takes
    its name."""

    def __init__(self) -> None:
        self._processes: dict[str, tuple[str, Process]] = {}
        self._elsewhere: set[str] = set()

    def put(self, name: str, role: str, process: Process, *, here: bool = True) -> None:
        """A process was started. One that is not `here` runs on another machine, where its costs cannot be read."""
        self._processes[name] = (role, process)
        (self._elsewhere.discard if here else self._elsewhere.add)(name)

    @property
    def processes(self) -> Mapping[str, tuple[str, Process]]:
        """Name -> role and process: brokers first, by number."""
        return dict(sorted(self._processes.items(), key=lambda item: (item[1][0], len(item[0]), item[0])))

    @property
    def processes_here(self) -> Mapping[str, tuple[str, Process]]:
        """Those whose costs can be read."""
        return {name: found for name, found in self.processes.items() if name not in self._elsewhere}

    @property
    def names(self) -> list[str]:
        """Those that can be killed and started again: all but what carries packets."""
        return [name for name, (role, _) in self.processes.items() if role != "network"]

    def __getitem__(self, name: str) -> Process:
        return self._processes[name][1]

    async def kill(self, name: str) -> None:
        """SIGKILL; returns when the process is gone."""
        self[name].kill()
        await self[name].ended()

    async def terminate(self, name: str) -> None:
        """SIGTERM, and SIGKILL to one that does not end in time; returns when the process is gone."""
        await self[name].stop()

    async def pause(self, name: str) -> None:
        """SIGSTOP; returns when the process stands still. Raises `NoEffect`."""
        self[name].pause()
        await self._until(name, Liveness.PAUSED)

    async def resume(self, name: str) -> None:
        """SIGCONT; returns when the process runs. Raises `NoEffect`."""
        self[name].resume()
        await self._until(name, Liveness.RUNNING)

    async def stop(self) -> None:
        """Terminate all but what carries packets, and forget them: brokers first, while they can still take leave of
        their service. Paused processes are resumed, because they hear nothing before."""
        for _, process in self._processes.values():
            process.resume()
        for serving in ("broker", "coordinator"):
            leaving = [process for role, process in self._processes.values() if role == serving]
            await asyncio.gather(*(process.stop() for process in leaving))
        self._processes.clear()

    async def _until(self, name: str, wanted: Liveness) -> None:
        process, deadline = self[name], monotonic() + EFFECT_WITHIN_S
        while process.liveness is not wanted:
            if process.liveness is Liveness.GONE or monotonic() > deadline:
                raise NoEffect(f"{name} is not {wanted.value} but {process.liveness.value}")
            await asyncio.sleep(LOOK_EVERY_S)
