"""Real broker processes on free ports, for tests: a config file each, started, killed, restarted, stopped."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workloads.processes.ports import free_ports

STOP_S_MAX = 20
# It complains, too, where its event loop stands still.
WATCHED_BROKER = "tests.integration.processes.watched_broker"


@dataclass
class Cluster:
    """Brokers 0 to n-1 with the `static` coordinator. `options` are merged into each config file."""

    folder: Path
    brokers: int = 1
    options: dict[str, Any] = field(default_factory=dict)
    processes: dict[int, subprocess.Popen[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ports = free_ports(2 * self.brokers)
        self.rows = [
            {"id": number, "host": "127.0.0.1", "kafka_port": ports[2 * number], "rpc_port": ports[2 * number + 1]}
            for number in range(self.brokers)
        ]

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{row['kafka_port']}" for row in self.rows)

    def port(self, number: int = 0) -> int:
        port = self.rows[number]["kafka_port"]
        assert isinstance(port, int)
        return port

    def start(self) -> Cluster:
        for number in range(self.brokers):
            self.launch(number)
        for number in range(self.brokers):
            self._await_ready(number)
        return self

    def launch(self, number: int) -> None:
        config = {
            "broker": number,
            "brokers": self.rows,
            "data_dir": str(self.folder / f"broker-{number}"),
            "coordinator": {"name": "static"},
            **self.options,
        }
        path = self.folder / f"broker-{number}.json"
        path.write_text(json.dumps(config))
        command = [sys.executable, "-m", WATCHED_BROKER, str(path)]
        with self._stderr(number).open("a") as stderr:
            self.processes[number] = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True)

    def _stderr(self, number: int) -> Path:
        return self.folder / f"broker-{number}.stderr"

    def complaints(self, number: int = 0) -> str:
        """What the broker has said on stderr, where a sound one says nothing."""
        return self._stderr(number).read_text()

    def _await_ready(self, number: int) -> None:
        process = self.processes[number]
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, f"broker {number} ended with {process.wait()}: {self.complaints(number)}"

    def kill(self, number: int = 0) -> None:
        """kill -9, nothing is written any more."""
        process = self.processes.pop(number)
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()

    def revive(self, number: int = 0) -> None:
        """Start one that is down, and wait until it serves."""
        self.launch(number)
        self._await_ready(number)

    def restart(self, number: int = 0) -> None:
        self.kill(number)
        self.revive(number)

    def stop(self) -> None:
        """Orderly; asserts that every broker was still alive, ends well, and never complained."""
        for process in self.processes.values():
            process.send_signal(signal.SIGTERM)
        codes, numbers = [], list(self.processes)
        for process in self.processes.values():
            codes.append(process.wait(STOP_S_MAX))
            assert process.stdout is not None
            process.stdout.close()
        self.processes.clear()
        told = "".join(map(self.complaints, numbers))
        assert codes == [0] * len(codes), told
        assert not told, told

    def pid(self, number: int = 0) -> int:
        return self.processes[number].pid

    def alive(self, number: int = 0) -> bool:
        return self.processes[number].poll() is None

    def resident_bytes(self, number: int = 0) -> int:
        pages = Path(f"/proc/{self.pid(number)}/statm").read_text().split()[1]
        return int(pages) * 4096

    def open_files(self, number: int = 0) -> int:
        return len(list(Path(f"/proc/{self.pid(number)}/fd").iterdir()))
