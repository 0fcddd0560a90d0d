"""Every process in a network namespace of its own, with a delay between those that are to be apart."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from workloads.processes.process import Process, ProcessFailed
from workloads.topology.api import LOOPBACK, OneMachine, TopologyUnavailable
from workloads.topology.places import RUNNER, placed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from workloads.spec.settings import Rtt

UP_WITHIN_S: Final = 30.0


class Namespaces(OneMachine):
    """A topology (`workloads.topology.api`) by two processes: the links, and the runner's entrance.

    Both are tethered to this process, and the namespaces are theirs and those of the processes inside. So they go with
    the last of them, and nothing has to be cleaned up.
    """

    def __init__(self, names: Sequence[str], rtt: Rtt) -> None:
        self._places = {place.name: place for place in placed(names, rtt)}
        self._processes: dict[str, Process] = {}
        self._files: dict[str, int] = {}
        self._user: int | None = None
        self._entrance_port = 0

    async def start(self, logs: Path) -> None:
        if shutil.which("nsenter") is None:
            raise TopologyUnavailable("topology namespaces: nsenter is not there; it comes with util-linux")
        try:
            async with asyncio.timeout(UP_WITHIN_S):
                await self._start(logs)
        except TimeoutError:
            raise TopologyUnavailable(f"topology namespaces: not up within {UP_WITHIN_S:.0f} s") from None
        except ProcessFailed as failed:
            raise TopologyUnavailable(f"topology namespaces: {failed}") from failed

    async def _start(self, logs: Path) -> None:
        links = await self._started("links", logs, "-m", "workloads.topology.links")
        await links.write_line(json.dumps([asdict(place) for place in self._places.values()]).encode())
        said = json.loads(await links.read_line())
        if "failed" in said:
            raise TopologyUnavailable(f"topology namespaces: {said['failed']}")
        self._files, self._user = said["ready"], said["user"]
        entrance = await self._started("entrance", logs, "-m", "workloads.topology.entrance", *self._entered(RUNNER))
        self._entrance_port = json.loads(await entrance.read_line())["port"]

    async def _started(self, name: str, logs: Path, *arguments: str) -> Process:
        command = [sys.executable, *arguments]
        self._processes[name] = await Process.start(name, command, logs / f"{name}.log", spoken_with=True)
        return self._processes[name]

    async def stop(self) -> None:
        await asyncio.gather(*(process.stop() for process in self._processes.values()))

    def address(self, place: str) -> str:
        return self._places[place].address

    def inside(self, place: str, command: Sequence[str]) -> list[str]:
        network, *user = self._entered(place)
        become = [f"--user={user[0]}", "--preserve-credentials"] if user else []
        return ["nsenter", *become, f"--net={network}", "--", *command]

    def _entered(self, place: str) -> list[str]:
        """The files of the namespaces to be entered: the network, and the user's where one had to be made."""
        numbers = [self._files[place], *([] if self._user is None else [self._user])]
        return [f"/proc/{self._processes['links'].pid}/fd/{number}" for number in numbers]

    @property
    def proxy(self) -> str | None:
        return f"http://{LOOPBACK}:{self._entrance_port}"

    @property
    def carriers(self) -> Sequence[Process]:
        return [self._processes["links"]]

    async def connect(self, place: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(LOOPBACK, self._entrance_port)
        target = f"{self.address(place)}:{port}"
        writer.write(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            head = b""
        if b" 200 " not in head:
            writer.close()
            raise ConnectionRefusedError(f"{target} does not answer")
        return reader, writer

    async def carried(self) -> dict[str, Any]:
        """Packets held back so far, by the addresses that they went from and to, and how many were dropped."""
        links = self._processes["links"]
        await links.write_line(b"")
        found: dict[str, Any] = json.loads(await links.read_line())
        return found
