"""What one turn of the event loop asks to be written is written once, and answered when it is."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from coordinators.errors import JournalFailed
from coordinators.waits.turn import Turn
from tests.contract.backend import asynchronous


class Written:
    def __init__(self) -> None:
        self.writes: list[dict[str, int]] = []
        self.refuses = False

    def __call__(self, values: Mapping[str, int]) -> None:
        if self.refuses:
            raise JournalFailed("no room")
        self.writes.append(dict(values))


@asynchronous
async def test_a_turn_is_written_once_and_the_last_for_each_key_counts() -> None:
    written = Written()
    turn = Turn(written)
    asked = [turn.add({"a": 1}), turn.add({"b": 2}), turn.add({"a": 3})]
    assert written.writes == []
    assert not any(future.done() for future in asked), "nobody is answered before the write has returned"
    await asyncio.gather(*asked)
    assert written.writes == [{"a": 3, "b": 2}]
    await turn.add({"c": 4})
    assert written.writes == [{"a": 3, "b": 2}, {"c": 4}]


@asynchronous
async def test_a_write_that_fails_fails_all_that_it_held_and_nothing_after_it() -> None:
    written = Written()
    turn = Turn(written)
    asked = [turn.add({"a": 1}), turn.add({"b": 2})]
    written.refuses = True
    for future in asked:
        with pytest.raises(JournalFailed):
            await future
    written.refuses = False
    await turn.add({"b": 5})
    assert written.writes == [{"b": 5}]
