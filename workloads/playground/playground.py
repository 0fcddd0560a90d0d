"""A cluster to play with, which outlives the command that starts it: `up`, `status`, `down`, and verbs on one process.

A supervisor process (`supervisor.py`) owns the brokers and ZooKeeper. It holds a lock in the playground's
folder as long as it lives, so whether a cluster is up is never guessed from process ids that others may have by now;
and what it owns is tethered to it, so nothing outlives it, however it ends. Verbs are its work, for it is the parent:
it is asked for them through a socket in that folder, a line of JSON there and one back.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from workloads.errors import BrokerlabError, UserError
from workloads.processes.liveness import Liveness, liveness_of
from workloads.results import write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from workloads.spec.settings import Architecture, ClusterSettings

FOLDER: Final = ".brokerlab"
CONTROL: Final = "control"
DOWN_WITHIN_S: Final = 30.0
# ZooKeeper's start is given half a minute, and another verb may be under way.
DONE_WITHIN_S: Final = 90.0


class AlreadyUp(UserError):
    """The folder has a cluster that runs; the message says which."""


class NotUp(UserError):
    """The folder has no cluster that runs."""


class DidNotStart(BrokerlabError):
    """The cluster, or its supervisor, ended on its way up; the message has what was said last."""


class NotDone(BrokerlabError):
    """A verb failed; the message says how far it came."""


@dataclass(frozen=True, slots=True)
class ProcessState:
    name: str
    role: str  # broker | coordinator
    pid: int
    started: int | None  # in the kernel's ticks; with `pid` it is this process and no other
    state: str  # running | paused | gone
    end: str | None = None  # how it ended, where its supervisor knows

    def now(self) -> ProcessState:
        """As it is at this moment, which may be newer than what its supervisor wrote."""
        return replace(self, state=liveness_of(self.pid, self.started).value)

    @property
    def command(self) -> tuple[str, str] | None:
        """The verb that brings it back, and on what; None where it runs."""
        verb = {Liveness.GONE.value: "start", Liveness.PAUSED.value: "resume"}.get(self.state)
        return None if verb is None else (verb, self.name.removeprefix("broker-"))

    def __str__(self) -> str:
        if self.command is None:
            return f"{self.name} is running"
        how = self.end or "has ended" if self.state == Liveness.GONE.value else "is paused"
        does = "starts it" if self.state == Liveness.GONE.value else "lets it go on"
        return f"{self.name} {how}: `brokerlab cluster {' '.join(self.command)}` {does}"


@dataclass(frozen=True, slots=True)
class ClusterState:
    """The running cluster, as its supervisor last wrote it down."""

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

    def now(self) -> ClusterState:
        return replace(self, processes=[process.now() for process in self.processes])

    def one_line(self) -> str:
        brokers = sum(process.role == "broker" for process in self.processes)
        counted = f"{brokers} brokers, " if brokers else ""  # of a cluster that somebody else runs, nothing is known
        whole = f"{self.architecture}, {counted}bootstrap {','.join(self.bootstrap)}"
        return "; ".join([whole, *(str(process) for process in self.processes if process.command is not None)])


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
        """The cluster that runs here, or None. The remains of a killed supervisor are cleared away."""
        try:
            text = self._state.read_text()
        except FileNotFoundError:
            return None
        with self._lock.open("ab") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return ClusterState.read(text).now()
            self.forget()
        return None

    def up(self, architecture: Architecture, settings: ClusterSettings) -> ClusterState:
        """Start a cluster and return when it serves. Raises `AlreadyUp`, `DidNotStart`, `UserError`."""
        if found := self.status():
            raise AlreadyUp(f"a cluster is up here: {found.one_line()}; end it with `brokerlab cluster down`")
        self.logs.mkdir(parents=True, exist_ok=True)
        (self.folder / ".gitignore").write_text("*\n")
        order = json.dumps({"architecture": architecture.as_json(), "settings": asdict(settings)})
        answer = json.loads(self._asked(order) or '{"failed": "its supervisor ended", "exit_code": 1}')
        if "failed" in answer:
            raise (UserError if answer["exit_code"] == UserError.exit_code else DidNotStart)(answer["failed"])
        return ClusterState.read(self._state.read_text())

    def _asked(self, order: str) -> str:
        """The one line that a new supervisor says, when the cluster serves or has failed; nothing where it ended."""
        command = [sys.executable, "-m", "workloads.playground.supervisor", str(self.folder.parent)]
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
            signal.pidfd_send_signal(supervisor, signal.SIGCONT)  # it may be paused itself
            if not select.select([supervisor], [], [], DOWN_WITHIN_S)[0]:
                signal.pidfd_send_signal(supervisor, signal.SIGKILL)  # what it owns dies with it
                select.select([supervisor], [], [])
        except ProcessLookupError:
            return  # it ended by itself
        finally:
            os.close(supervisor)

    def do(self, verb: str, name: str) -> str:
        """Have something done to one process, and return, when it has come about, what was done. Raises `NotUp`;
        `UserError` where that cannot be done now, and `NotDone`."""
        if self.status() is None:
            raise NotUp(f"no cluster is up in {self.folder.parent}; `brokerlab cluster up` starts one")
        try:
            text = self._told(json.dumps({"verb": verb, "name": name}))
        except TimeoutError:
            raise NotDone(f"the supervisor has not answered within {DONE_WITHIN_S:.0f} s") from None
        except OSError:
            text = ""
        if not text:
            raise NotDone("the supervisor ended meanwhile, and the cluster with it")
        answer = json.loads(text)
        if "failed" in answer:
            raise (UserError if answer["exit_code"] == UserError.exit_code else NotDone)(answer["failed"])
        done: str = answer["done"]
        return done

    def _told(self, order: str) -> str:
        """The supervisor's answer; nothing where it ended."""
        with self._control_path() as path, socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(DONE_WITHIN_S)
            connection.connect(path)
            with connection.makefile("rw") as both:
                both.write(order + "\n")
                both.flush()
                return both.readline()

    def listen(self) -> socket.socket:
        """Where the supervisor is told what to do."""
        (self.folder / CONTROL).unlink(missing_ok=True)
        listening = socket.socket(socket.AF_UNIX)
        with self._control_path() as path:
            listening.bind(path)
        (self.folder / CONTROL).chmod(0o600)
        listening.listen()
        return listening

    @contextmanager
    def _control_path(self) -> Iterator[str]:
        """The socket's path, short however deep the folder is: an address has 108 bytes at most."""
        folder = os.open(self.folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield f"/proc/self/fd/{folder}/{CONTROL}"
        finally:
            os.close(folder)

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
        write_atomically(self._state, json.dumps(asdict(state), indent=2).encode())

    def forget(self) -> None:
        self._state.unlink(missing_ok=True)
        (self.folder / CONTROL).unlink(missing_ok=True)
