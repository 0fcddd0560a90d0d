"""The owner of a playground's cluster: `python -m workloads.supervisor DIRECTORY`, told on stdin what to start.

It says one line of JSON on stdout, `{"ready": true}` or `{"failed": "why", "exit_code": 2}`, and stays until SIGTERM.
A broker that ends does not end the others: killing one is part of playing, and the state says so.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from workloads.cluster import Cluster
from workloads.errors import BrokerlabError
from workloads.playground import ClusterState, Playground, ProcessState
from workloads.settings import Architecture, ClusterSettings

if TYPE_CHECKING:
    from workloads.processes import Process


class Supervisor:
    def __init__(self, playground: Playground, architecture: Architecture, settings: ClusterSettings) -> None:
        self._playground = playground
        self._architecture = architecture.name
        self._data = playground.data(architecture.name, settings.brokers)
        self._cluster = Cluster(architecture, settings, self._data, playground.logs, keep=True)

    async def run(self) -> None:
        """Own the cluster until this is cancelled. Raises `BrokerlabError` where it does not start."""
        try:
            await self._cluster.start()
            self._write()
            _say(ready=True)
            await asyncio.gather(*(self._note_end(process) for _, process in self._cluster.processes.values()))
            await asyncio.Event().wait()  # all have ended; `down` is still to come
        finally:
            await self._cluster.stop()
            self._playground.forget()

    async def _note_end(self, process: Process) -> None:
        await process.ended()
        print(process.failure(), file=sys.stderr, flush=True)
        self._write()

    def _write(self) -> None:
        processes = [
            ProcessState(process.name, role, process.pid, process.running)
            for role, process in self._cluster.processes.values()
        ]
        self._playground.write(
            ClusterState(
                architecture=self._architecture,
                bootstrap=self._cluster.kafka_addresses,
                grpc=self._cluster.rpc_addresses,
                processes=processes,
                supervisor=os.getpid(),
                data=str(self._data),
                logs=str(self._playground.logs),
            )
        )


def _say(**message: object) -> None:
    print(json.dumps(message), flush=True)


async def _until_told(supervisor: Supervisor) -> None:
    work = asyncio.create_task(supervisor.run())
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, work.cancel)
    await asyncio.wait({work})
    if not work.cancelled():
        await work


def main() -> int:
    playground = Playground(Path(sys.argv[1]))
    order = json.load(sys.stdin)
    try:
        held = playground.hold()
        supervisor = Supervisor(playground, Architecture(**order["architecture"]), ClusterSettings(**order["settings"]))
        asyncio.run(_until_told(supervisor))
        os.close(held)
    except (BrokerlabError, OSError) as error:
        _say(failed=str(error), exit_code=getattr(error, "exit_code", 1))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
