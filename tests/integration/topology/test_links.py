"""Namespaces and the links between them: the delay is really there, and nothing of it outlives its owner."""

from __future__ import annotations

import asyncio
import signal
import statistics
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from tests.contract.backend import asynchronous
from tests.integration.processes.running import PROC, alive, eventually
from workloads.processes.process import Process
from workloads.spec.settings import Rtt
from workloads.topology.namespaces import Namespaces

pytestmark = [pytest.mark.machine, pytest.mark.usefixtures("namespaces")]

RTT = Rtt(broker_zookeeper=1, broker_broker=3, client_broker=0.2)
NAMES = ["runner", "zookeeper", "broker-1", "broker-2", "producer-0"]
ROUND_TRIPS = 40
PORT = 5000  # in a network of its own, any port is free

# Says that it listens; then answers each visitor with what it sends, until killed.
SERVER = """
import socket, sys
listener = socket.create_server((sys.argv[1], int(sys.argv[2])))
print(flush=True)
while True:
    visitor = listener.accept()[0]
    visitor.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while said := visitor.recv(65536):
        visitor.sendall(said)
"""
# The milliseconds of connecting, then of so many echoes.
VISITOR = """
import socket, sys
from time import perf_counter
before = perf_counter()
server = socket.create_connection((sys.argv[1], int(sys.argv[2])))
times = [perf_counter() - before]
server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
for _ in range(int(sys.argv[3])):
    before = perf_counter()
    server.sendall(b"?" * 100)
    server.recv(65536)
    times.append(perf_counter() - before)
print(*(1000 * each for each in times), flush=True)
"""
# Starts the topology and says the process ids and the inodes of the namespaces; then waits to be killed.
OWNER = """
import asyncio, os, sys
from pathlib import Path
from workloads.processes.process import Process
from workloads.spec.settings import Rtt
from workloads.topology.namespaces import Namespaces

async def main():
    topology = Namespaces(["runner", "zookeeper", "broker-1"], Rtt(broker_zookeeper=1))
    await topology.start(Path(sys.argv[1]))
    inside = await Process.start(
        "inside", topology.inside("broker-1", ["sleep", "600"]), Path(sys.argv[1]) / "inside.log"
    )
    print(topology.carriers[0].pid, inside.pid, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@asynccontextmanager
async def started(logs: Path, rtt: Rtt = RTT) -> AsyncIterator[Namespaces]:
    topology = Namespaces(NAMES, rtt)
    try:
        await topology.start(logs)
        yield topology
    finally:
        await topology.stop()


@asynccontextmanager
async def echoing(topology: Namespaces, place: str, logs: Path) -> AsyncIterator[None]:
    command = [sys.executable, "-c", SERVER, topology.address(place), str(PORT)]
    server = await Process.start("server", topology.inside(place, command), logs / "server.log", spoken_with=True)
    try:
        await server.read_line()
        yield
    finally:
        await server.stop()


async def visited(topology: Namespaces, visitor: str, place: str, logs: Path) -> list[float]:
    """Milliseconds that the visitor waited, for its connection and for each echo."""
    command = [sys.executable, "-c", VISITOR, topology.address(place), str(PORT), str(ROUND_TRIPS)]
    process = await Process.start("visitor", topology.inside(visitor, command), logs / "visitor.log", spoken_with=True)
    try:
        return [float(word) for word in (await process.read_line()).split()]
    finally:
        await process.stop()


def networks_of(links: int) -> set[int]:
    """The inodes of the network namespaces that the links process holds open."""
    found = set()
    for file in (PROC / str(links) / "fd").iterdir():
        if str(file.readlink()).startswith("net:"):
            found.add(file.stat().st_ino)
    return found


def networks_in_use() -> set[int]:
    found = set()
    for process in PROC.glob("[0-9]*"):
        try:
            found.add((process / "ns" / "net").stat().st_ino)
        except OSError:  # it has ended
            continue
    return found


@asynchronous
async def test_a_round_trip_takes_at_least_what_is_claimed_and_goes_through_the_links(tmp_path: Path) -> None:
    async with started(tmp_path) as topology:
        claimed: Mapping[tuple[str, str], float] = {
            ("broker-1", "zookeeper"): RTT.broker_zookeeper,
            ("broker-1", "broker-2"): RTT.broker_broker,
            ("producer-0", "broker-2"): RTT.client_broker,
        }
        for (visitor, place), rtt_ms in claimed.items():
            async with echoing(topology, place, tmp_path):
                connected, *echoes = await visited(topology, visitor, place, tmp_path)
            assert connected >= rtt_ms
            assert min(echoes) >= rtt_ms
            assert len(echoes) == ROUND_TRIPS
            assert statistics.median(echoes) >= rtt_ms
            carried = (await topology.carried())["carried"]
            there, back = topology.address(visitor), topology.address(place)
            assert carried[there][back] > ROUND_TRIPS
            assert carried[back][there] > ROUND_TRIPS
        assert (await topology.carried())["dropped"] == 0


@asynchronous
async def test_who_is_not_apart_is_not_carried_by_the_links(tmp_path: Path) -> None:
    async with started(tmp_path, Rtt(broker_zookeeper=1)) as topology:
        async with echoing(topology, "broker-2", tmp_path):
            assert len(await visited(topology, "producer-0", "broker-2", tmp_path)) == 1 + ROUND_TRIPS
        carried = (await topology.carried())["carried"]
        zookeeper = topology.address("zookeeper")
        brokers = {topology.address("broker-1"), topology.address("broker-2")}
        assert {place: set(peers) for place, peers in carried.items()} == {
            zookeeper: brokers, **{broker: {zookeeper} for broker in brokers},
        }  # fmt: skip
        assert not any(sum(peers.values()) for peers in carried.values())


@asynchronous
async def test_a_place_is_reached_through_the_entrance_and_by_no_other_way(tmp_path: Path) -> None:
    async with started(tmp_path) as topology:
        with pytest.raises(ConnectionRefusedError, match="does not answer"):
            await topology.connect("broker-1", PORT)
        async with echoing(topology, "broker-1", tmp_path):
            reader, writer = await topology.connect("broker-1", PORT)
            writer.write(b"hello")
            assert await reader.readexactly(5) == b"hello"
            writer.close()
        assert topology.address("broker-1") not in (PROC / "net" / "fib_trie").read_text(), "the machine's own network"


@asynchronous
async def test_what_comes_to_the_entrance_and_asks_for_nothing_is_turned_away(tmp_path: Path) -> None:
    async with started(tmp_path) as topology:
        assert topology.proxy is not None
        for said in (b"GET / HTTP/1.1\r\n\r\n", b"CONNECT nowhere HTTP/1.1\r\n\r\n", b"\r\n\r\n", b"\0" * 100_000):
            reader, writer = await asyncio.open_connection("127.0.0.1", int(topology.proxy.rpartition(":")[2]))
            writer.write(said)
            writer.write_eof()
            assert b" 200 " not in await answered(reader)
            writer.close()


async def answered(reader: asyncio.StreamReader) -> bytes:
    """All that comes until the connection ends, or is reset because what was said is not read to its end."""
    came = b""
    with suppress(ConnectionResetError):
        while some := await reader.read(1000):
            came += some
    return came


@asynchronous
async def test_the_namespaces_and_their_processes_are_gone_after_a_stop(tmp_path: Path) -> None:
    async with started(tmp_path) as topology:
        links = topology.carriers[0].pid
        networks = networks_of(links)
        assert len(networks) == len(NAMES) + 1, "one for each place, and the hub's"
    assert not alive(links)
    assert not networks & networks_in_use()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_is_left_of_a_topology_whose_owner_is_killed(tmp_path: Path, number: signal.Signals) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(OWNER), str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout is not None
    try:
        links, inside = map(int, owner.stdout.readline().split())
        eventually(lambda: networks_of(links) & networks_in_use(), "the process inside is inside")
        networks = networks_of(links)
        assert len(networks) == 4
        owner.send_signal(number)
        owner.wait(10)
    finally:
        owner.kill()
        owner.communicate()
    eventually(lambda: not alive(links) and not alive(inside), "its processes are gone")
    eventually(lambda: not networks & networks_in_use(), "the namespaces are empty")


@asynchronous
async def test_a_process_inside_is_the_one_that_was_started_and_ends_by_its_own_id(tmp_path: Path) -> None:
    async with started(tmp_path) as topology:
        networks = networks_of(topology.carriers[0].pid)
        command = [sys.executable, "-c", "import os, sys; print(os.getpid(), flush=True); sys.stdin.read()"]
        inside = topology.inside("zookeeper", command)
        process = await Process.start("inside", inside, tmp_path / "inside.log", spoken_with=True)
        assert int(await process.read_line()) == process.pid
        assert (PROC / str(process.pid) / "ns" / "net").stat().st_ino in networks
        await process.stop()
        assert not alive(process.pid)
