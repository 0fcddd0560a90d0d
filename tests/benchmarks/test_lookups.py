"""The raw client reads what is there, and the benchmark that is set beside it tells of each client."""

from __future__ import annotations

import asyncio

import pytest

from coordinators.zookeeper.requests import Create
from tests.benchmarks.lookups import IN_FLIGHT, compared, lines, session_at
from tests.benchmarks.raw_zookeeper import TIMEOUT_MS, connected
from tests.contract.backend import asynchronous
from tests.contract.servers import fresh_chroot, servers_are_stopped, shared_server

__all__ = ["servers_are_stopped"]
pytestmark = pytest.mark.java
READS = 300


@asynchronous
async def test_a_raw_client_has_the_answer_to_each_of_many_reads() -> None:
    server = shared_server()
    host, port = server.address.split(":")
    session = session_at(server.address)
    await session.start()
    paths = [fresh_chroot() for _ in range(3)]
    for path in paths:
        await session.commit("test", Create(path, path.encode()))
    await session.stop()
    async with await connected(host, int(port)) as raw:
        assert raw.granted_ms == TIMEOUT_MS
        asked = [*paths, f"{paths[0]}/nothing"] * 100
        found = await asyncio.gather(*map(raw.get, asked))
    assert found == [path.encode() if path in paths else None for path in asked]


@asynchronous
async def test_a_comparison_has_a_row_for_each_client_and_number_of_reads_under_way() -> None:
    found = await compared(shared_server(), READS, 1)
    assert len(lines(found)) == 2 + 3 * len(IN_FLIGHT)
    for in_flight in IN_FLIGHT:
        (cost,) = found["session", in_flight]
        assert 0 < cost.of_kazoo_us < cost.processor_us
