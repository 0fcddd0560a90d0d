from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from brokers.listeners.config import ListenerLimits
from brokers.listeners.gathering import ENOUGH, READ_BYTES_MAX, READS_ALONE, TRIES, Gathering
from brokers.wire.apis import ApiKey
from brokers.wire.metadata import MetadataRequest
from tests.contract.backend import asynchronous, eventually
from tests.integration.kafka.raw import batch, produce_request, request
from tests.unit.listeners.harness import listening, run, until

NEVER_ENDS_MS = 3_600_000


class Reads:
    """A connection, as far as reads go."""

    def __init__(self, wait_ms: int = 1) -> None:
        self.paced = 0
        self.gathering = Gathering(wait_ms, self._pace)

    def _pace(self) -> None:
        self.paced += 1

    async def waits_after(self, *reads: int, nbytes: int = 1000) -> list[bool]:
        """Whether each read was followed by a wait."""
        waited = []
        for requests in reads:
            self.gathering.after(requests, nbytes)
            waited.append(self.gathering.under_way)
            await eventually(lambda: not self.gathering.under_way)
        return waited


@asynchronous
async def test_reads_of_a_client_that_pipelines_are_put_off_for_a_moment_each() -> None:
    reads = Reads()
    assert await reads.waits_after(2, 30, 40, 35, 60, 50) == [True] * 6
    assert reads.paced == 12, "at the beginning and at the end of each"


@asynchronous
async def test_a_client_that_waits_for_each_answer_is_never_put_off() -> None:
    assert await Reads().waits_after(*[1] * 10) == [False] * 10


@pytest.mark.parametrize(
    ("numbers", "why"),
    [([5, 4, 3, 5, 4], "few"), ([20] * 5, "the same, all that its window allows")],
)
@asynchronous
async def test_a_client_whose_window_is_small_is_left_alone_soon(numbers: list[int], why: str) -> None:
    waited = await Reads().waits_after(*numbers)
    assert sum(waited) <= TRIES + 1, why
    assert not waited[-1], why


@asynchronous
async def test_a_client_that_was_left_alone_is_tried_again_and_then_kept_if_it_pipelines() -> None:
    reads = Reads()
    await reads.waits_after(*[2] * (TRIES + 1))
    assert not any(await reads.waits_after(*[2] * (READS_ALONE - 2)))
    assert await reads.waits_after(2, ENOUGH, ENOUGH + 1, ENOUGH + 2) == [True] * 4


@asynchronous
async def test_large_reads_are_not_put_off() -> None:
    assert await Reads().waits_after(50, 51, nbytes=READ_BYTES_MAX + 1) == [False, False]


@asynchronous
async def test_it_can_be_switched_off() -> None:
    assert await Reads(wait_ms=0).waits_after(50, 51) == [False, False]


def test_what_gathers_is_carried_out_in_one_read_and_answered(tmp_path: Path) -> None:
    async def work() -> None:
        async with listening(tmp_path, limits=ListenerLimits(gather_ms=NEVER_ENDS_MS)) as harness:
            client = await harness.connect()
            frames = [produce_request("one", batch(b"v"), correlation_id=n) for n in range(10)]
            client.send(*frames[:5])
            await client.receive_all(5)
            for frame in frames[5:]:
                client.send(frame)
                await asyncio.sleep(0.005)
            assert harness.metrics.produce.requests == 5
            (connection,) = harness.listener._connections._open
            assert connection._gathering.under_way
            connection._gathering._end()
            await client.receive_all(5)
            assert harness.metrics.produce.requests == 10

    run(work())


def test_a_client_that_leaves_while_requests_gather_is_forgotten_afterwards(tmp_path: Path) -> None:
    async def work() -> None:
        async with listening(tmp_path, limits=ListenerLimits(gather_ms=10)) as harness:
            client = await harness.connect()
            client.send(*(produce_request("one", batch(b"v"), correlation_id=n) for n in range(5)))
            await client.receive_all(5)
            client.writer.close()
            await until(lambda: not harness.listener._connections._open)

    run(work())


def test_requests_of_other_kinds_do_not_gather(tmp_path: Path) -> None:
    async def work() -> None:
        async with listening(tmp_path, limits=ListenerLimits(gather_ms=NEVER_ENDS_MS)) as harness:
            client = await harness.connect()
            for _ in range(3):
                client.send(*(request(ApiKey.METADATA, 5, MetadataRequest(topics=None), n) for n in range(5)))
                await client.receive_all(5)

    run(work())
