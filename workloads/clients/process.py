"""A client process as the runner holds it: started, told, heard."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from workloads.errors import BrokerlabError
from workloads.processes.process import Process

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from workloads.topology.api import Topology


class ClientFailed(BrokerlabError):
    """A client process could not do its job; the message says why."""


class Client:
    """A process that works for the runner, spoken with in lines of JSON (`workloads.clients.client`)."""

    def __init__(self, name: str, role: str, process: Process) -> None:
        self.name = name
        self.role = role
        self.process = process

    @classmethod
    async def start(cls, role: str, number: int, drivers: Sequence[str], logs: Path, topology: Topology) -> Client:
        name = f"{role}-{number}"
        command = [sys.executable, "-m", "workloads.clients.client", *drivers]
        return await cls._start(name, role, topology.inside(name, command), logs)

    @classmethod
    async def start_reader(cls, logs: Path) -> Client:
        """The one that reads our brokers' logs off the disk for the audit."""
        return await cls._start("log-reader", "reader", [sys.executable, "-m", "brokers.readback"], logs)

    @classmethod
    async def _start(cls, name: str, role: str, command: Sequence[str], logs: Path) -> Client:
        return cls(name, role, await Process.start(name, command, logs / f"{name}.log", spoken_with=True))

    async def tell(self, **message: object) -> None:
        await self.process.write_line(json.dumps(message).encode())

    async def hear(self, word: str) -> Any:
        """The value of the next answer, which must be `word`. Raises `ClientFailed`, `ProcessFailed`."""
        answer = json.loads(await self.process.read_line())
        if "failed" in answer:
            raise ClientFailed(f"{self.name}: {answer['failed']}")
        assert word in answer, f"{self.name} said {sorted(answer)}, not {word}"
        return answer[word]
