from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from brokers.listeners.config import ListenerLimits
from brokers.listeners.read_delay import ENOUGH, READ_BYTES_MAX, READS_ALONE, READS_ALONE_MAX, TRIES, Gathering
from brokers.wire.apis.metadata import MetadataRequest
from brokers.wire.apis.table import ApiKey
from tests.contract.backend import asynchronous, eventually
from tests.integration.kafka.raw import batch, produce_request, request
from tests.unit.brokers.listeners.harness import listening, run, until

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
            await self.rest()
        return waited

    async def rest(self) -> None:
        await eventually(lambda: not self.gathering.under_way)


@asynchronous
async def test_reads_of_a_client_that_pipelines_are_put_off_for_a_moment_each() -> None:
    reads = Reads()
    assert await reads.waits_after(2, 30, 40, 35, 60, 50) == [True] * 6
    assert reads.paced == 12, "at the beginning and at the end of each"


@asynchronous
async def test_a_client_that_waits_for_each_answer_is_never_put_off() -> None:
    assert await Reads().waits_after(*[1] * 10) == [False] * 10


@asynchronous
async def test_a_client_that_has_pipelined_is_put_off_after_single_requests_too() -> None:
    assert await Reads().waits_after(1, 2, 1, 40, 1, 1, 50, 1) == [False] + [True] * 7


@pytest.mark.parametrize(
    ("numbers", "why"),
    [
        ([5, 4, 3, 5, 4], "few"),
        ([20] * 5, "the same, all that its window allows"),
        ([30, 1, 1, 1, 1, 1], "it pipelines no longer"),
    ],
)
@asynchronous
async def test_a_client_whose_waits_bring_little_is_left_alone_soon(numbers: list[int], why: str) -> None:
    waited = await Reads().waits_after(*numbers)
    assert sum(waited) == TRIES, why
    assert not any(waited[TRIES:]), why


@asynchronous
async def test_a_client_that_was_left_alone_is_tried_again_when_it_pipelines() -> None:
    reads = Reads()
    await reads.waits_after(*[2] * (TRIES + 1))
    assert not any(await reads.waits_after(*[2] * (READS_ALONE - 1), 1, 1))
    assert await reads.waits_after(2, ENOUGH, ENOUGH + 1, ENOUGH + 2) == [True] * 4


@asynchronous
async def test_it_is_tried_again_ever_later_until_a_wait_pays() -> None:
    reads = Reads()
    await reads.waits_after(2)

    async def left_alone_after(*numbers: int) -> int:
        """How many reads it takes from these, which end with too few, to the next wait."""
        await reads.waits_after(*numbers)
        count = 0
        while not reads.gathering.under_way:
            reads.gathering.after(2, 1000)
            count += 1
        await reads.rest()
        return count

    few = [2] * TRIES
    alone = [await left_alone_after(*few) for _ in range(10)]
    assert alone == [min(READS_ALONE << times, READS_ALONE_MAX) for times in range(10)]
    assert alone[-1] == alone[-2] == READS_ALONE_MAX
    assert await left_alone_after(ENOUGH, *few) == READS_ALONE


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
