"""What a client may keep others waiting for, and for how long."""

from __future__ import annotations

from pathlib import Path

from brokers.listeners.config import ListenerLimits
from brokers.wire.framing import FrameLimits
from tests.integration.kafka.raw import batch, produce_request, produced
from tests.unit.brokers.listeners.harness import HeldBack, listening, run, turn, until


def test_who_stops_sending_amid_a_large_request_keeps_nobody_waiting(tmp_path: Path) -> None:
    async def work() -> None:
        limits = ListenerLimits(frames=FrameLimits(receive_bytes=16 * 1024), large_requests_bytes_max=1 << 20)
        async with listening(tmp_path, limits=limits, kind=HeldBack) as harness:
            coordinator = harness.coordinator
            assert isinstance(coordinator, HeldBack)
            gone, other = await harness.connect(), await harness.connect()
            large = produce_request("two", batch(bytes(200_000)))
            gone.send(produce_request("one", batch(b"v")), large[:100_000])
            await until(lambda: len(coordinator.asked) == 1)
            for _ in range(100):
                await turn()
            other.send(large)
            for _ in range(100):
                await turn()
            assert len(coordinator.asked) == 1, "it waits for the one that has the right of way"
            gone.writer.write_eof()
            await until(lambda: len(coordinator.asked) == 2)
            coordinator.release(1)
            assert produced(await other.receive()) == (0, 0)
            coordinator.release(0)
            assert produced(await gone.receive()) == (0, 0)

    run(work())
