"""Real clients led through a window together: when they are at work, how it ends, and what each of them did."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.backend import asynchronous
from tests.integration.runs.one_arm import running, trial_on
from workloads.processes.process import ProcessFailed

SECONDS_MAX = 30.0


@asynchronous
async def test_a_number_of_messages_is_shared_among_producers_and_ends_the_window(tmp_path: Path) -> None:
    async with running(tmp_path) as arm:
        run = trial_on(arm)
        await run.open()
        clients = run.clients
        await clients.prepare(clients.producers, 1, 110)
        async with await clients.begin(clients.producers) as work:
            assert not await work.lasts(SECONDS_MAX), "the first of them ended"
            parts = await work.parts("producer")
        assert [part["sent"] for part in parts] == [part["acknowledged"] for part in parts] == [55, 55]
        assert run.record.acknowledged == 110
        await run.forget()


@asynchronous
async def test_without_a_number_clients_work_until_they_are_told_to_stop(tmp_path: Path) -> None:
    async with running(tmp_path) as arm:
        run = trial_on(arm)
        await run.open()
        clients = run.clients
        await clients.prepare(clients.producers, 1)
        async with await clients.begin(clients.producers) as work:
            assert await work.lasts(0.05)
            assert run.record.acknowledged == 0, "nobody has said what became of the window"
            await work.stop()
            parts = await work.parts()
        assert len(parts) == 2
        assert run.record.acknowledged == sum(part["acknowledged"] for part in parts) > 0
        await run.forget()


@asynchronous
async def test_consumers_read_up_to_their_targets_and_say_that_they_are_dry(tmp_path: Path) -> None:
    async with running(tmp_path) as arm:
        run = trial_on(arm)
        await run.open()
        await run.fill(90)
        await run.join()
        clients = run.clients
        ends = dict(await run.system.end_offsets(run.topic))
        half = {partition: end // 2 for partition, end in ends.items()}
        for number, targets in enumerate((half, ends), start=1):
            await clients.prepare(clients.consumers, number)
            async with await clients.begin(clients.consumers, targets) as work:
                (part,) = await work.parts("consumer")
            assert part["dry"]
            assert run.record.consumed == sum(targets.values())
        await run.forget()


@asynchronous
async def test_a_rate_is_kept_by_all_producers_together(tmp_path: Path) -> None:
    """No batch leaves before its time: 200 messages at 400/s take their last batch 0.45 s and more."""
    async with running(tmp_path) as arm:
        run = trial_on(arm)
        await run.open()
        clients = run.clients
        await clients.prepare(clients.producers, 1, 200, 400.0)
        async with await clients.begin(clients.producers) as work:
            parts = await work.parts("producer")
        assert sum(part["acknowledged"] for part in parts) == 200
        assert min(part["window_s"] for part in parts) >= 0.45
        await run.forget()


@asynchronous
async def test_a_client_that_dies_in_a_window_is_told_and_the_others_are_let_go(tmp_path: Path) -> None:
    async with running(tmp_path) as arm:
        run = trial_on(arm)
        await run.open()
        clients = run.clients
        await clients.prepare(clients.producers, 1)
        async with await clients.begin(clients.producers) as work:
            clients.producers[1].process.kill()
            with pytest.raises(ProcessFailed, match="producer-1 was ended by SIGKILL"):
                await work.lasts(SECONDS_MAX)


@asynchronous
async def test_every_client_is_known_by_name_and_role(tmp_path: Path) -> None:
    async with running(tmp_path) as arm:
        run = trial_on(arm)
        found = {name: role for name, (role, _) in run.clients.processes.items()}
        assert found == {"producer-0": "producer", "producer-1": "producer", "consumer-0": "consumer"}
        assert [path.name for path in run.clients.outs("producer")] == ["producer-0", "producer-1"]
