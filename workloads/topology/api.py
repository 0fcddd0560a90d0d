"""Where the processes of a cluster are, and what lies between them.

A place is named for the process that lives there: `zookeeper`, `broker-1`, `producer-0`. A topology gives it an
address that the others use, says how a command is started there, and lets the runner in.
"""

from __future__ import annotations

import asyncio
from shutil import rmtree
from typing import TYPE_CHECKING, Final, Protocol

from workloads.errors import BrokerlabError, UserError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from workloads.processes.process import Process

LOOPBACK: Final = "127.0.0.1"


class TopologyUnavailable(UserError):
    """This machine cannot have the topology; the message says what is missing."""


class TopologyFailed(BrokerlabError):
    """A place could not be reached though it could be before. Indefinite: what was asked for may have been done."""


class Topology(Protocol):
    """Used from its `start` to its `stop`."""

    async def start(self, logs: Path) -> None:
        """Return when every place is there. Raises `TopologyUnavailable`."""

    async def stop(self) -> None:
        """Nothing of it is left after this. Safe to call twice."""

    def address(self, place: str) -> str:
        """Under which its peers reach a place."""

    def inside(self, place: str, command: Sequence[str]) -> list[str]:
        """The command that becomes `command` in that place, as the same process."""

    def is_here(self, place: str) -> bool:
        """Whether the process of a place runs on the runner's machine, where its costs can be read."""

    @property
    def proxy(self) -> str | None:
        """An HTTP proxy through which the runner reaches every place, where it cannot do so by itself."""

    @property
    def carriers(self) -> Sequence[Process]:
        """The process that carries packets from place to place: it costs processor time, and without it all is lost."""

    async def connect(self, place: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """From the runner to a server in a place. Raises `OSError`."""

    async def put(self, place: str, files: Mapping[Path, str]) -> None:
        """Write texts to files that the process of a place will read. Raises `TopologyFailed`."""

    async def fetch(self, place: str, folder: Path, into: Path) -> Path:
        """Where the runner can read a folder of a place: there, or a copy in `into`. Raises `TopologyFailed`."""

    async def remove(self, folder: Path) -> None:
        """Remove a folder everywhere, with what is in it."""


class OneMachine:
    """The common part of topologies that are all on the runner's machine."""

    def is_here(self, place: str) -> bool:
        return True

    async def put(self, place: str, files: Mapping[Path, str]) -> None:
        for path, text in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    async def fetch(self, place: str, folder: Path, into: Path) -> Path:
        return folder

    async def remove(self, folder: Path) -> None:
        rmtree(folder, ignore_errors=True)


class Loopback(OneMachine):
    """All in the machine's own network: nothing lies between anybody."""

    @property
    def proxy(self) -> None:
        return None

    @property
    def carriers(self) -> Sequence[Process]:
        return ()

    async def start(self, logs: Path) -> None:
        """Nothing to do."""

    async def stop(self) -> None:
        """Nothing to do."""

    def address(self, place: str) -> str:
        return LOOPBACK

    def inside(self, place: str, command: Sequence[str]) -> list[str]:
        return list(command)

    async def connect(self, place: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(LOOPBACK, port)
