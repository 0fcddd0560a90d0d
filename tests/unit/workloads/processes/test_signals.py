"""A wish to end is heard once; where there is none, nothing has changed."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterator

import pytest

from workloads.processes.signals import SIGNALS, heard_once, run_until_told, wait_until_told


@pytest.fixture(autouse=True)
def _own_signals() -> Iterator[None]:
    """Who was told hears no more; these tests go on."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_where_no_signal_came_all_is_as_before() -> None:
    before = [signal.getsignal(number) for number in SIGNALS]

    async def quiet() -> int:
        return 7

    assert run_until_told(quiet()) == 7
    assert wait_until_told([sys.executable, "-c", "raise SystemExit(3)"], os.environ) == 3
    assert [signal.getsignal(number) for number in SIGNALS] == before


@pytest.mark.parametrize("number", SIGNALS)
def test_work_is_cancelled_once_and_tidies_up_whatever_comes_then(number: signal.Signals) -> None:
    tidied = []

    async def work() -> None:
        try:
            signal.raise_signal(number)
            await asyncio.Event().wait()
        finally:
            for again in SIGNALS:
                signal.raise_signal(again)
                await asyncio.sleep(0)
            tidied.append(number)

    with pytest.raises(KeyboardInterrupt):
        run_until_told(work())
    assert tidied == [number]
    signal.raise_signal(signal.SIGINT)


def test_work_that_ends_before_it_can_be_cancelled_was_interrupted_all_the_same() -> None:
    async def work() -> None:
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run_until_told(work())


def test_the_signal_is_acted_on_once() -> None:
    acts = []

    def told_again_and_again() -> None:
        with heard_once(lambda: acts.append("act")):
            for number in (*SIGNALS, *SIGNALS):
                signal.raise_signal(number)

    with pytest.raises(KeyboardInterrupt):
        told_again_and_again()
    assert acts == ["act"]


def test_an_error_of_the_end_is_told() -> None:
    async def work() -> None:
        signal.raise_signal(signal.SIGINT)
        raise ValueError("the disk is full")

    with pytest.raises(ValueError, match="the disk is full"):
        run_until_told(work())
