"""Which connections are closed for being idle, and when."""

from __future__ import annotations

from pathlib import Path

from brokers.listeners.events import Event
from tests.unit.brokers.listeners.harness import listening, run, until


def test_a_client_that_is_told_to_end_has_as_long_again_to_read_what_is_due(tmp_path: Path) -> None:
    async def work() -> None:
        async with listening(tmp_path) as harness:
            await harness.connect()
            await until(lambda: harness.listener.counts.connections)
            (connection,) = harness.listener._connections._open
            connection.idle_sweeps = 5
            connection.tell(Event.GIVE_UP)
            assert connection.idle_sweeps == 0

    run(work())
