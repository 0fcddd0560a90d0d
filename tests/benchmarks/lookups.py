"""What kazoo costs: the same reads of one znode by a raw client, by a broker's session, and by kazoo as it comes.

`python -m tests.benchmarks.lookups` prints processor time of this process for each read, and the reads in a second,
with one under way and with many; the three in turn, medians of rounds, and each as a multiple of the raw client's.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from contextlib import suppress
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

from kazoo.client import KazooClient

from coordinators.meter import Meter
from coordinators.zookeeper.requests import Create, Exists
from coordinators.zookeeper.session import Session
from tests.benchmarks.raw_zookeeper import connected
from tests.contract.servers import Server

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from kazoo.interfaces import IAsyncResult

    Read = Callable[[], Awaitable[object]]

PATH: Final = "/read"
DATA: Final = b"x" * 76  # as much as the state of a partition
IN_FLIGHT: Final = (1, 128)
READS: Final = 5_000
ROUNDS: Final = 5


class Cost(NamedTuple):
    processor_us: float
    reads_per_s: float
    of_kazoo_us: float = 0.0  # of the processor time, as the session tells


async def measured(read: Read, in_flight: int, reads: int) -> Cost:
    async def reader() -> None:
        for _ in range(reads // in_flight):
            await read()

    start_s, start_ns = time.perf_counter(), time.process_time_ns()
    await asyncio.gather(*(reader() for _ in range(in_flight)))
    done = reads // in_flight * in_flight
    used_us = (time.process_time_ns() - start_ns) / 1000
    return Cost(used_us / done, done / (time.perf_counter() - start_s))


def plain_read(client: KazooClient) -> Awaitable[object]:
    """kazoo as it comes, each result handed to the loop."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[object] = loop.create_future()

    def hand_over(result: IAsyncResult) -> None:
        loop.call_soon_threadsafe(future.set_result, result.value)

    client.get_async(PATH).rawlink(hand_over)
    return future


def session_at(address: str) -> Session:
    return Session(
        address,
        timeout_ms=20_000,
        auth=None,
        meter=Meter(),
        clock=time.monotonic,
    )


async def compared(server: Server, reads: int, rounds: int) -> dict[tuple[str, int], list[Cost]]:
    """Client and number under way -> a cost for each round."""
    host, port = server.address.split(":")
    found: dict[tuple[str, int], list[Cost]] = {}
    session, plain = session_at(server.address), KazooClient(server.address)
    await session.start()
    await asyncio.to_thread(plain.start)
    try:
        with suppress(Exists):
            await session.commit("bench", Create(PATH, DATA))
        for _ in range(rounds):
            for in_flight in IN_FLIGHT:
                async with await connected(host, int(port)) as raw:
                    cost = await measured(partial(raw.get, PATH), in_flight, reads)
                found.setdefault(("raw", in_flight), []).append(cost)
                before_ns = session.client.cpu_ns
                cost = await measured(partial(session.get, "bench", PATH), in_flight, reads)
                of_kazoo_us = (session.client.cpu_ns - before_ns) / 1000 / (reads // in_flight * in_flight)
                found.setdefault(("session", in_flight), []).append(cost._replace(of_kazoo_us=of_kazoo_us))
                cost = await measured(partial(plain_read, plain), in_flight, reads)
                found.setdefault(("kazoo as it comes", in_flight), []).append(cost)
    finally:
        await session.stop()
        await asyncio.to_thread(plain.stop)
        plain.close()
    return found


def lines(found: dict[tuple[str, int], list[Cost]]) -> list[str]:
    said = [
        "| client | under way | processor time of a read | of it kazoo | times raw | reads/s |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for (client, in_flight), costs in sorted(found.items(), key=lambda entry: entry[0][1]):
        used, of_kazoo, rate = (
            median(column)
            for column in (
                [cost.processor_us for cost in costs],
                [cost.of_kazoo_us for cost in costs],
                [cost.reads_per_s for cost in costs],
            )
        )
        raw = median(cost.processor_us for cost in found["raw", in_flight])
        share = f"{of_kazoo:.0f} us" if of_kazoo else ""
        said.append(f"| {client} | {in_flight} | {used:.0f} us | {share} | {used / raw:.1f} | {rate:,.0f} |")
    return said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reads", type=int, default=READS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    chosen = parser.parse_args()
    server = Server()
    try:
        found = asyncio.run(compared(server, chosen.reads, chosen.rounds))
    finally:
        server.close()
    print("\n".join(lines(found)))


if __name__ == "__main__":
    main()
