"""Answers that wait for several acknowledgements, alone."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

from brokers.listeners.requests.unacknowledged import Unacknowledged
from brokers.log.errors import LogSyncFailed
from tests.unit.brokers.listeners.harness import run, turn


def test_where_several_syncs_fail_the_connection_hears_of_one_and_the_loop_has_nothing_to_report() -> None:
    async def work() -> None:
        loop, reported = asyncio.get_running_loop(), list[dict[str, Any]]()
        loop.set_exception_handler(lambda _, context: reported.append(context))
        waits = [loop.create_future() for _ in range(2)]
        answer = Unacknowledged(frozenset(waits)).answer
        for wait in waits:
            wait.set_exception(LogSyncFailed("the disk is gone"))
        waits.clear()
        del wait
        await turn()
        await turn()
        assert isinstance(answer.exception(), LogSyncFailed)
        gc.collect()
        assert reported == []

    run(work())
