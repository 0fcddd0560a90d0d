"""The owner of a playground's cluster: `python -m workloads.playground.supervisor DIRECTORY`, told on stdin what to do.

It says one line of JSON on stdout, `{"ready": true}` or `{"failed": "why", "exit_code": 2}`, and stays until SIGTERM.
A broker that ends does not end the others: killing one is part of playing, and the state says so. On its socket it is
told what to do to a process, `{"verb": "kill", "name": "broker-2"}`, and answers `{"done": "..."}`, or as above.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from workloads.errors import BrokerlabError
from workloads.playground.playground import ClusterState, NotUp, Playground
from workloads.playground.verbs import Verbs, states_of
from workloads.spec.settings import Architecture, ClusterSettings
from workloads.systems.api import SystemSetup
from workloads.systems.registry import create

if TYPE_CHECKING:
    from workloads.processes.process import Process


class Supervisor:
    def __init__(self, playground: Playground, architecture: Architecture, settings: ClusterSettings) -> None:
        self._playground = playground
        self._architecture = architecture.name
        self._data = playground.data(architecture.name, settings.brokers)
        setup = SystemSetup(architecture, settings, self._data, playground.logs, keep=True)
        self._system = create(setup)
        self._verbs = Verbs(self._system)
        self._watched: dict[Process, asyncio.Task[None]] = {}
        self._ends = False

    async def run(self) -> None:
        """Own the cluster until this is cancelled. Raises `BrokerlabError` where it does not start."""
        try:
            await self._system.start()
            self._watch()
            await asyncio.start_unix_server(self._serve, sock=self._playground.listen())
            _say(ready=True)
            await asyncio.Event().wait()  # also where all have ended: they may be started again, and `down` is to come
        finally:
            self._ends = True
            for watch in self._watched.values():
                watch.cancel()
            await self._system.stop()
            self._playground.forget()

    def _watch(self) -> None:
        """Note the end of each process that is not watched yet, and write down how it is with all.

        Not when this ends: nothing is to be written behind what is forgotten then.
        """
        if self._ends:
            return
        for _, process in self._system.nodes.processes.values():
            if process not in self._watched:
                self._watched[process] = asyncio.create_task(self._note_end(process))
        self._write()

    async def _note_end(self, process: Process) -> None:
        await process.ended()
        print(process.failure(), file=sys.stderr, flush=True)
        self._write()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            order = json.loads(await reader.readline())
            if self._ends:  # nothing is to be started behind the back of what ends all
                raise NotUp("the cluster is being ended")
            answer: dict[str, object] = {"done": await self._verbs.do(order["verb"], order["name"])}
        except BrokerlabError as error:
            answer = {"failed": str(error), "exit_code": error.exit_code}
        self._watch()
        with suppress(ConnectionError):  # who asked may be gone
            writer.write(json.dumps(answer).encode() + b"\n")
            await writer.drain()
        writer.close()

    def _write(self) -> None:
        self._playground.write(
            ClusterState(
                architecture=self._architecture,
                bootstrap=self._system.bootstrap("kafka"),
                grpc=self._system.bootstrap("grpc"),
                processes=states_of(self._system.nodes),
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
        architecture = Architecture.from_json(order["architecture"])
        supervisor = Supervisor(playground, architecture, ClusterSettings(**order["settings"]))
        asyncio.run(_until_told(supervisor))
        os.close(held)
    except (BrokerlabError, OSError) as error:
        _say(failed=str(error), exit_code=getattr(error, "exit_code", 1))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
