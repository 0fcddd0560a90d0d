"""Brokers and ZooKeeper on other machines, by ssh; the clients and the runner stay on this one, whose clock times all.

On each host the project is set up at the same path as here. A process there is the child of its ssh session and dies
with it (`processes/tether.py`), and the session is a process of ours: so it ends as one that runs here does, the
runner's kill -9 included. Its output comes back by the same channel, and so do files.
"""

from __future__ import annotations

import asyncio
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from workloads.processes.process import TETHER, tethered
from workloads.topology.api import LOOPBACK, TopologyFailed, TopologyUnavailable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from workloads.processes.process import Process
    from workloads.spec.settings import Hosts

ROOT: Final = TETHER.parents[1]
WITHIN_S: Final = 60.0  # for one errand
# Never ask for a password; notice a host that has gone within some 15 s.
_OPTIONS: Final = (
    "BatchMode=yes",
    "ConnectTimeout=10",
    "ServerAliveInterval=5",
    "ServerAliveCountMax=3",
    "LogLevel=ERROR",
)


class OtherHosts:
    """A topology (`workloads.topology.api`)."""

    def __init__(self, hosts: Hosts) -> None:
        self._hosts = hosts
        self._files: dict[str, Mapping[Path, str]] = {}  # place -> what its process will read

    async def check(self) -> None:
        """Look whether each host has what it takes. Raises `TopologyUnavailable`."""
        if shutil.which("ssh") is None:
            raise TopologyUnavailable("topology hosts: ssh is not there; it comes with openssh-client")
        errand = _there([sys.executable, "-c", "import brokers, workloads"])
        try:
            await asyncio.gather(*(self._errand(host, errand) for host in self._all))
        except TopologyFailed as failed:
            raise TopologyUnavailable(f"topology hosts: {failed}") from failed

    async def start(self, logs: Path) -> None:
        """Nothing to do."""

    async def stop(self) -> None:
        """Nothing to do: each session ends with its process."""

    @property
    def _all(self) -> list[str]:
        return sorted({*self._hosts.brokers, self._hosts.zookeeper})

    def is_here(self, place: str) -> bool:
        return self._host(place) is None

    def _host(self, place: str) -> str | None:
        """None for a place on this machine."""
        role, _, number = place.partition("-")
        if role == "broker":
            return self._hosts.brokers[(int(number) - 1) % len(self._hosts.brokers)]
        return self._hosts.zookeeper if role == "zookeeper" else None

    def address(self, place: str) -> str:
        return self._host(place) or LOOPBACK

    def inside(self, place: str, command: Sequence[str]) -> list[str]:
        host = self._host(place)
        if host is None:
            return list(command)
        written = "".join(f"{_written(path.absolute(), text)} && " for path, text in self._files.get(place, {}).items())
        tether = [sys.executable, "-I", "-S", str(TETHER)]
        # The shell becomes the command; its parent is the session.
        return self._ssh(host, f"{written}{_there(tether)} $PPID {shlex.join(command)}")

    def _ssh(self, host: str, line: str) -> list[str]:
        config = [] if self._hosts.ssh_config is None else ["-F", self._hosts.ssh_config]
        return ["ssh", *config, *(word for option in _OPTIONS for word in ("-o", option)), host, line]

    @property
    def proxy(self) -> None:
        return None

    @property
    def carriers(self) -> Sequence[Process]:
        return ()

    async def connect(self, place: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(self.address(place), port)

    async def put(self, place: str, files: Mapping[Path, str]) -> None:
        """Done on the way, when the process is started: a session takes longer than a file."""
        self._files[place] = files

    async def fetch(self, place: str, folder: Path, into: Path) -> Path:
        host = self._host(place)
        assert host is not None, "who is here is read where it is"
        line = f"tar -C {shlex.quote(str(folder.absolute().parent))} -c {shlex.quote(folder.name)}"
        packed = await self._errand(host, line)
        into.mkdir(parents=True, exist_ok=True)
        await _run(["tar", "-C", str(into), "-x"], packed)
        return into / folder.name

    async def remove(self, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        remove = f"rm -rf {shlex.quote(str(folder.absolute()))}"
        line = f"{remove} || (sleep 1; {remove})"  # what ended just now may have written while it was removed
        # A host that cannot be reached keeps it until the next start of a cluster of this name.
        await asyncio.gather(*(self._errand(host, line) for host in self._all), return_exceptions=True)

    async def _errand(self, host: str, line: str) -> bytes:
        """Run a short command on a host; what it said. Raises `TopologyFailed`."""
        try:
            async with asyncio.timeout(WITHIN_S):
                return await _run(self._ssh(host, line))
        except TimeoutError:
            raise TopologyFailed(f"{host}: no answer within {WITHIN_S:.0f} s") from None
        except OSError as error:
            raise TopologyFailed(f"{host}: {error}") from error


def _there(command: Sequence[str]) -> str:
    """A line for the shell of a host, which becomes this command in the project's folder."""
    return f"cd {shlex.quote(str(ROOT))} && exec {shlex.join(command)}"


def _written(path: Path, text: str) -> str:
    """A line for the shell of a host, which writes a file."""
    return f"mkdir -p {shlex.quote(str(path.parent))} && printf %s {shlex.quote(text)} > {shlex.quote(str(path))}"


async def _run(command: Sequence[str], given: bytes = b"") -> bytes:
    """Raises `OSError` with what it said last, where it does not end well."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*tethered(command), stdin=pipe, stdout=pipe, stderr=pipe)
    try:
        said, errors = await process.communicate(given)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        lines = errors.decode(errors="replace").strip().splitlines()
        raise OSError(lines[-1] if lines else f"{command[0]} ended with {process.returncode}")
    return said
