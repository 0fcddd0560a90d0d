"""A Spark standalone cluster from PySpark's wheel: a master and two workers, each a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from workloads.processes.java import with_java

WORKERS = 2
ON_LOOPBACK = {"SPARK_LOCAL_IP": "127.0.0.1"}  # so that nothing hangs on what this machine calls itself
_START_S = 90
_LOOK_EVERY_S = 0.1
_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"


@contextmanager
def standalone(folder: Path) -> Iterator[str]:
    """The address of a master that has all its workers. Everything ends when the block does."""
    started: list[subprocess.Popen[bytes]] = []
    host = "127.0.0.1"
    try:
        log = folder / "master.log"
        # Port 0: Spark takes a free one and says which.
        started.append(_start(folder, log, _MASTER, "--host", host, "--port", "0", "--webui-port", "0"))
        port = _said(log, started[0], r"Starting Spark master at spark://[^:]+:(\d+)", 1)[0]
        address = f"spark://{host}:{port}"
        for number in range(WORKERS):
            own = ("--host", host, "--cores", "1", "--memory", "1500m", "--work-dir", str(folder / f"work-{number}"))
            worker_log = folder / f"worker-{number}.log"
            started.append(_start(folder, worker_log, _WORKER, *own, "--webui-port", "0", address))
        _said(log, started[0], r"Registering worker", WORKERS)
        yield address
    finally:
        for process in started:
            # With their executors, which a worker starts in its own group.
            os.killpg(process.pid, signal.SIGTERM)
        for process in started:
            process.wait(_START_S)


def _start(folder: Path, log: Path, role: str, *arguments: str) -> subprocess.Popen[bytes]:
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    command = [str(Path(spec.origin).parent / "bin" / "spark-class"), role, *arguments]
    environment = (
        with_java()
        | ON_LOOPBACK
        | {
            "SPARK_LOCAL_DIRS": str(folder / "local"),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # they live for seconds
        }
    )
    with log.open("wb") as output:
        return subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, cwd=folder, env=environment, start_new_session=True
        )


def _said(log: Path, process: subprocess.Popen[bytes], words: str, times: int) -> list[str]:
    """What a process has logged so many times, as soon as it has."""
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline:
        found = re.findall(words, log.read_text(errors="replace"))
        if len(found) >= times:
            return found
        assert process.poll() is None, log.read_text(errors="replace")
        try:
            process.wait(_LOOK_EVERY_S)
        except subprocess.TimeoutExpired:
            continue
    raise AssertionError(f"{words} did not come {times} times: {log.read_text(errors='replace')}")
