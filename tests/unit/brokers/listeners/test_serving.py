"""How requests that had to wait are carried out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from brokers.log.errors import SequenceError
from brokers.log.log import Batch, Log
from tests.integration.kafka.raw import batch, produce_request
from tests.unit.brokers.listeners.harness import HeldBack, listening, run, until


def test_requests_of_a_read_that_waited_for_their_leaders_are_one_append(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> None:
        async with listening(tmp_path, kind=HeldBack) as harness:
            coordinator = harness.coordinator
            assert isinstance(coordinator, HeldBack)
            calls: list[int] = []
            append = Log.append

            def counted(log: Log, batches: Sequence[Batch], epoch: int) -> list[int | SequenceError]:
                calls.append(len(batches))
                return append(log, batches, epoch)

            monkeypatch.setattr(Log, "append", counted)
            client = await harness.connect()
            client.send(*(produce_request("one", batch(b"v"), correlation_id=n) for n in range(5)))
            await until(lambda: coordinator.asked)
            coordinator.release(0)
            assert [int.from_bytes(answer[:4]) for answer in await client.receive_all(5)] == list(range(5))
            assert calls == [5]

    run(work())
