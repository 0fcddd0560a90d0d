from __future__ import annotations

import asyncio
import itertools
from pathlib import Path

import pytest

from brokers.listeners.config import ListenerLimits
from brokers.listeners.events import Event
from brokers.listeners.intake import Reads
from brokers.listeners.read_delay import ENOUGH, READ_BYTES_MAX, READS_ALONE, READS_ALONE_MAX, TRIES, ReadDelay
from brokers.wire.apis.metadata import MetadataRequest
from brokers.wire.apis.table import ApiKey
from tests.integration.kafka.raw import batch, produce_request, request
from tests.unit.brokers.listeners.harness import listening, run, until

NEVER_ENDS_MS = 3_600_000


def delayed_after(delay: ReadDelay, *reads: int, nbytes: int = 1000) -> list[bool]:
    """Whether what follows each read is put off."""
    return [delay.after(requests, nbytes) for requests in reads]


def test_reads_of_a_client_that_pipelines_are_put_off_for_a_moment_each() -> None:
    assert delayed_after(ReadDelay(), 2, 30, 40, 35, 60, 50) == [True] * 6


def test_a_client_that_waits_for_each_answer_is_never_put_off() -> None:
    assert delayed_after(ReadDelay(), *[1] * 10) == [False] * 10


def test_a_client_that_has_pipelined_is_put_off_after_single_requests_too() -> None:
    assert delayed_after(ReadDelay(), 1, 2, 1, 40, 1, 1, 50, 1) == [False] + [True] * 7


@pytest.mark.parametrize(
    ("numbers", "why"),
    [
        ([5, 4, 3, 5, 4], "few"),
        ([20] * 5, "the same, all that its window allows"),
        ([30, 1, 1, 1, 1, 1], "it pipelines no longer"),
    ],
)
def test_a_client_whose_waits_bring_little_is_left_alone_soon(numbers: list[int], why: str) -> None:
    waited = delayed_after(ReadDelay(), *numbers)
    assert sum(waited) == TRIES, why
    assert not any(waited[TRIES:]), why


def test_a_client_that_was_left_alone_is_tried_again_when_it_pipelines() -> None:
    delay = ReadDelay()
    delayed_after(delay, *[2] * (TRIES + 1))
    assert not any(delayed_after(delay, *[2] * (READS_ALONE - 1), 1, 1))
    assert delayed_after(delay, 2, ENOUGH, ENOUGH + 1, ENOUGH + 2) == [True] * 4


def test_it_is_tried_again_ever_later_until_a_wait_pays() -> None:
    delay = ReadDelay()
    delayed_after(delay, 2)

    def left_alone_after(*numbers: int) -> int:
        """How many reads it takes from these, which end with too few, to the next wait."""
        delayed_after(delay, *numbers)
        return next(count for count in itertools.count(1) if delay.after(2, 1000))

    few = [2] * TRIES
    alone = [left_alone_after(*few) for _ in range(10)]
    assert alone == [min(READS_ALONE << times, READS_ALONE_MAX) for times in range(10)]
    assert alone[-1] == alone[-2] == READS_ALONE_MAX
    assert left_alone_after(ENOUGH, *few) == READS_ALONE


def test_large_reads_are_not_put_off() -> None:
    assert delayed_after(ReadDelay(), 50, 51, nbytes=READ_BYTES_MAX + 1) == [False, False]


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
            assert connection.pipeline.intake.reads is Reads.PAUSED
            connection.tell(Event.DELAY_OVER)
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
