"""A cluster to play with, which outlives the command that starts it: `up`, `status`, `down`.

A supervisor process (`workloads.supervisor`) owns the brokers and ZooKeeper. It holds a lock in the playground's
folder as long as it lives, so whether a cluster is up is never guessed from process ids that others may have by now;
and what it owns is tethered to it, so nothing outlives it, however it ends.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from workloads.errors import BrokerlabError, UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workloads.settings import Architecture, ClusterSettings

FOLDER: Final = ".brokerlab"
DOWN_WITHIN_S: Final = 30.0


class AlreadyUp(UserError):
    """The folder has a cluster that runs; the message says which."""


class NotUp(UserError):
    """The folder has no cluster that runs."""


class DidNotStart(BrokerlabError):
    """The cluster, or its supervisor, ended on its way up; the message has what was said last."""


@dataclass(frozen=True, slots=True)
class ProcessState:
    name: str
    role: str  # broker | coordinator
    pid: int
    running: bool


@dataclass(frozen=True, slots=True)
class ClusterState:
    """What runs, as its supervisor last wrote it down."""

    architecture: str
    bootstrap: Sequence[str]  # of the Kafka wire
    grpc: Sequence[str]
    processes: Sequence[ProcessState]
    supervisor: int  # process id
    data: str
    logs: str

    @classmethod
    def read(cls, text: str) -> ClusterState:
        found: dict[str, Any] = json.loads(text)
        return cls(**{**found, "processes": [ProcessState(**process) for process in found["processes"]]})

    def one_line(self) -> str:
        brokers = sum(process.role == "broker" for process in self.processes)
        return f"{self.architecture}, {brokers} brokers, bootstrap {','.join(self.bootstrap)}"


class Playground:
    """The playground of a directory; everything of it is in the folder `.brokerlab` there."""

    def __init__(self, directory: Path) -> None:
        self.folder = directory.absolute() / FOLDER
        self.logs = self.folder / "logs"
        self._lock = self.folder / "lock"
        self._state = self.folder / "state.json"

    def data(self, architecture: str, brokers: int) -> Path:
        """Where a cluster of that kind keeps its data. Another kind has other placement, so it has its own."""
        return self.folder / f"{architecture}-{brokers}"

    def status(self) -> ClusterState | None:
        """What runs here, or None. What a supervisor left that was killed is cleared away."""
        try:
            text = self._state.read_text()
        except FileNotFoundError:
            return None
        with self._lock.open("ab") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return ClusterState.read(text)
            self._state.unlink(missing_ok=True)
        return None

    def up(self, architecture: Architecture, settings: ClusterSettings) -> ClusterState:
        """Start a cluster and return when it serves. Raises `AlreadyUp`, `DidNotStart`, `UserError`."""
        if found := self.status():
            raise AlreadyUp(f"a cluster is up here: {found.one_line()}; end it with `brokerlab cluster down`")
        self.logs.mkdir(parents=True, exist_ok=True)
        (self.folder / ".gitignore").write_text("*\n")
        order = json.dumps({"architecture": asdict(architecture), "settings": asdict(settings)})
        answer = json.loads(self._asked(order) or '{"failed": "its supervisor ended", "exit_code": 1}')
        if "failed" in answer:
            raise (UserError if answer["exit_code"] == UserError.exit_code else DidNotStart)(answer["failed"])
        return ClusterState.read(self._state.read_text())

    def _asked(self, order: str) -> str:
        """The one line that a new supervisor says, when the cluster serves or has failed; nothing where it ended."""
        command = [sys.executable, "-m", "workloads.supervisor", str(self.folder.parent)]
        with (self.logs / "supervisor.log").open("ab") as log:
            supervisor = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
            )
        assert supervisor.stdin is not None
        assert supervisor.stdout is not None
        try:
            with supervisor.stdin, supervisor.stdout:
                supervisor.stdin.write(order)
                supervisor.stdin.close()
                return supervisor.stdout.readline()
        except BaseException:  # Ctrl-C, mostly: a cluster that nobody heard of must not stay
            supervisor.terminate()
            supervisor.wait()
            raise

    def down(self) -> None:
        """End the cluster and return when its supervisor is gone; its data stays. Raises `NotUp`."""
        found = self.status()
        if found is None:
            raise NotUp(f"no cluster is up in {self.folder.parent}")
        supervisor = os.pidfd_open(found.supervisor)
        try:
            signal.pidfd_send_signal(supervisor, signal.SIGTERM)
            if not select.select([supervisor], [], [], DOWN_WITHIN_S)[0]:
                signal.pidfd_send_signal(supervisor, signal.SIGKILL)  # what it owns dies with it
                select.select([supervisor], [], [])
        except ProcessLookupError:
            return  # it ended by itself
        finally:
            os.close(supervisor)

    def hold(self) -> int:
        """Be the one supervisor, until the returned file is closed. Raises `AlreadyUp`."""
        held = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(held)
            raise AlreadyUp("another `cluster up` is starting a cluster here") from None
        return held

    def write(self, state: ClusterState) -> None:
        fresh = self._state.with_name(".state.json")
        fresh.write_text(json.dumps(asdict(state), indent=2))
        fresh.replace(self._state)

    def forget(self) -> None:
        self._state.unlink(missing_ok=True)
