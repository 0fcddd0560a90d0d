"""A planted delay holds up results, keeps their order, and leaves the event loop free."""

from __future__ import annotations

import asyncio
import time

import pytest

from coordinators.waits.delay import Delay
from tests.contract.backend import asynchronous

DELAY_US = 5_000


async def known(value: int) -> int:
    return value


async def failed() -> None:
    raise ZeroDivisionError


@asynchronous
async def test_a_result_comes_no_sooner_than_the_delay_and_others_work_meanwhile() -> None:
    delay = Delay(DELAY_US)
    begun_ns, turns = time.monotonic_ns(), 0
    held = asyncio.ensure_future(delay.after(known(7)))
    while not held.done():
        turns += 1
        await asyncio.sleep(0)
    assert held.result() == 7
    assert time.monotonic_ns() - begun_ns >= DELAY_US * 1000
    assert turns > 2


@asynchronous
async def test_results_that_are_held_up_side_by_side_keep_their_order() -> None:
    delay, told = Delay(DELAY_US), []

    async def tell(value: int) -> None:
        told.append(await delay.after(known(value)))

    await asyncio.gather(*map(tell, range(20)))
    assert told == list(range(20))


@asynchronous
async def test_an_error_passes_and_who_gives_up_waits_no_longer() -> None:
    delay = Delay(DELAY_US)
    with pytest.raises(ZeroDivisionError):
        await delay.after(failed())
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(Delay(10_000_000).after(known(1)), 0.001)
    assert await delay.after(known(2)) == 2


def test_no_delay_is_none() -> None:
    assert not Delay(0)
    assert Delay(1)
