from __future__ import annotations

import asyncio

import pytest

from coordinators.keyed_lock import Turns
from tests.contract.backend import asynchronous


@asynchronous
async def test_turns_at_one_thing_come_in_the_order_of_asking_and_at_others_at_once() -> None:
    turns, seen, go_on = Turns(), list[str](), asyncio.Event()

    async def take(name: str, who: str) -> None:
        async with turns.at(name):
            seen.append(f"{who} begins")
            await go_on.wait()
            seen.append(f"{who} ends")

    tasks = [asyncio.create_task(take(name, who)) for name, who in (("a", "1"), ("a", "2"), ("b", "3"), ("a", "4"))]
    await asyncio.sleep(0)
    assert seen == ["1 begins", "3 begins"]
    go_on.set()
    await asyncio.gather(*tasks)
    in_turn = [f"{who} {what}" for who in "124" for what in ("begins", "ends")]
    assert [line for line in seen if "3" not in line] == in_turn


@asynchronous
async def test_a_thing_is_forgotten_after_its_last_turn_however_that_ended() -> None:
    turns = Turns()

    async def fail() -> None:
        async with turns.at("a"):
            assert "a" in turns
            await asyncio.sleep(0)
            raise ValueError

    first, second = asyncio.create_task(fail()), asyncio.create_task(fail())
    await asyncio.sleep(0)
    second.cancel()
    with pytest.raises(ValueError):
        await first
    await asyncio.wait([second])
    assert "a" not in turns
    assert not turns._lines
