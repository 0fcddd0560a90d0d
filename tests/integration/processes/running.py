"""Processes for tests: brokers with a config and a port of their own, and what is left of somebody's processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc

from brokers.rpc.brokerlab_pb2_grpc import AdminStub, DataStub
from workloads.processes.ports import free_ports

PROC = Path("/proc")
PATIENCE_S = 60.0
WATCHED_BROKER = "tests.integration.processes.watched_broker"


def eventually(holds: Callable[[], object], what: str) -> None:
    """Wait, with a bound, until something holds that no event tells of."""
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end, f"not within {PATIENCE_S:.0f} s: {what}"
        time.sleep(0.02)


def processes_of(marker: str | Path) -> dict[int, str]:
    """Processes, by id, whose command line holds `marker`; this one and its parents excepted."""
    found = {}
    for entry in PROC.iterdir():
        if entry.name.isdigit() and int(entry.name) not in {os.getpid(), os.getppid()}:
            command = command_of(int(entry.name))
            if str(marker) in command:
                found[int(entry.name)] = command
    return found


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits to be reaped does not."""
    try:
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def command_of(pid: int) -> str:
    """A process's command line; empty where it is gone."""
    try:
        return (PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def descendants(pid: int) -> set[int]:
    """Ids of the children of a process, and theirs."""
    found: set[int] = set()
    waiting = [pid]
    while waiting:
        task = PROC / str(waiting.pop()) / "task"
        for children in task.glob("*/children"):
            try:
                new = {int(word) for word in children.read_text().split()} - found
            except OSError:
                continue
            found |= new
            waiting += new
    return found


@contextmanager
def small_disk(folder: Path, size: str = "4m") -> Iterator[Path]:
    """A file system of its own, of a few MiB. Raises `PermissionError` where it may not be mounted."""
    folder.mkdir(parents=True, exist_ok=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "brokerlab-test", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        raise PermissionError(mounted.stderr.decode())
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """Take all that is left of a disk; the file that holds it."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while file.write(b"\0" * 65_536):
                pass
        except OSError:
            return ballast
    raise AssertionError("a disk without an end")


class RunningBroker:
    """A broker process, alone or as the first row of a longer list of brokers; `other` is one of the others.

    `module` is what runs, with arguments before the config: the broker, or one with a fault put in.
    """

    module: Sequence[str] = (WATCHED_BROKER,)

    def __init__(self, folder: Path, *, brokers: int = 1, **changes: Any) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        ports = free_ports(2 * brokers)
        rows = [
            {"id": n, "host": "127.0.0.1", "kafka_port": ports[2 * n - 2], "rpc_port": ports[2 * n - 1]}
            for n in range(1, brokers + 1)
        ]
        self.rpc_port = ports[1]
        self.data = folder / "data"
        self.config: dict[str, Any] = {
            "broker": 1, "brokers": rows, "data_dir": str(self.data), "coordinator": {"name": "static"}, **changes,
        }  # fmt: skip
        self.process: subprocess.Popen[bytes] | None = None
        self._channels: list[grpc.Channel] = []

    def other(self, number: int) -> RunningBroker:
        """The broker of another row, not started."""
        made = RunningBroker(self.folder / f"broker-{number}")
        made.config |= {"broker": number, "brokers": self.config["brokers"]}
        made.rpc_port = self.config["brokers"][number - 1]["rpc_port"]
        return made

    def spawn(self) -> subprocess.Popen[bytes]:
        """The process, without waiting for it to serve."""
        path = self.folder / "broker.json"
        path.write_text(json.dumps(self.config))
        with (self.folder / "broker.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-W", "error", "-m", *self.module, str(path)], stdout=subprocess.PIPE, stderr=log
            )
        return self.process

    def start(self) -> Mapping[str, Any]:
        """Wait until it serves; its ready line."""
        process = self.spawn()
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, f"the broker ended with {process.wait()}: {self.log}"
        found: dict[str, Any] = json.loads(line)
        return found

    @property
    def log(self) -> str:
        return (self.folder / "broker.log").read_text()

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and wait; the exit code."""
        assert self.process is not None
        self.process.send_signal(number)
        code = self.process.wait(PATIENCE_S)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._close()
        self.process = None
        return code

    def _close(self) -> None:
        for channel in self._channels:
            channel.close()
        self._channels.clear()

    def stop(self) -> None:
        """End it if it runs. Safe to call twice. Asserts that its event loop never stood still."""
        if self.process is not None:
            self.end(signal.SIGKILL)
        self._close()
        assert "watchdog:" not in self.log, self.log

    def channel(self) -> grpc.Channel:
        channel = grpc.insecure_channel(
            f"127.0.0.1:{self.rpc_port}",
            [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)],
        )
        self._channels.append(channel)
        return channel

    def data_stub(self) -> DataStub:
        return DataStub(self.channel())

    def admin_stub(self) -> AdminStub:
        return AdminStub(self.channel())
