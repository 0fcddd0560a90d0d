"""A trial led step by step on a real cluster: what is in a window, what is in none, and what is left of it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.contract.backend import asynchronous
from tests.integration.runs.one_arm import running, trial_on
from workloads.clients.drivers.api import DriverError
from workloads.results import trial_schema
from workloads.trial.record import UNTIMED, VALID, Place


@asynchronous
async def test_what_is_filled_and_caught_up_is_audited_and_is_in_no_window(tmp_path: Path) -> None:
    async with running(tmp_path) as arm:
        run = trial_on(arm)
        await run.open()
        await run.fill(70)
        assert (run.record.acknowledged, run.record.windows) == (70, [])
        produced = await run.window(Place(1, "production"))
        assert produced is not None
        await run.join()
        await run.catch_up()
        assert run.record.consumed == run.record.acknowledged > 70
        await run.audit()
    assert (run.record.verdict, run.record.reason) == (VALID, "")
    assert run.record.windows == [produced]
    assert run.record.requests is not None
    done: Counter[tuple[str, int]] = Counter()
    for row in run.record.requests.to_pylist():
        done[row["role"], row["window_number"]] += row["messages"]
    assert done.keys() == {("producer", UNTIMED), ("producer", 1), ("consumer", UNTIMED)}
    assert done["producer", UNTIMED] == 70
    assert {row["number"] for row in run.record.costs.resources} == {1}


@asynchronous
async def test_a_window_whose_consumers_come_to_the_end_is_none_and_leaves_no_cost(tmp_path: Path) -> None:
    async with running(tmp_path) as arm:
        run = trial_on(arm)
        await run.open()
        await run.fill(20)
        await run.join()
        assert await run.window(Place(1, "consumption")) is None
        assert (run.record.windows, run.record.costs.resources) == ([], [])
        await run.fill(20_000)
        found = await run.window(Place(2, "consumption"))
        assert found is not None
        assert found.at.number == 2
        await run.audit()
    assert run.record.verdict == VALID
    assert 20 < run.record.consumed <= 20_020


@asynchronous
async def test_a_window_opens_after_its_lead_and_stays_open_as_long_as_asked_or_longer(tmp_path: Path) -> None:
    async with running(tmp_path) as arm:
        run = trial_on(arm, "streaming")
        await run.open()
        found = [await run.window(Place(1, "both")), await run.window(Place(2, "both"), longer=3.0)]
        await run.audit()
    assert run.record.requests is not None
    rows = run.record.requests.to_pylist()
    for number, (window, open_s) in enumerate(zip(found, (0.1, 0.3), strict=True), start=1):
        assert window is not None
        assert window.opened_ns is not None
        assert window.closed_ns is not None
        assert window.closed_ns - window.opened_ns >= open_s * 1e9
        begun = min(row["sent_ns"] for row in rows if row["window_number"] == number and row["role"] == "producer")
        assert window.opened_ns - begun >= 0.05e9
        assert window.load.wall_s >= open_s + 0.05
    row = run.record.row(arm._plan)
    assert sorted(row) == sorted(trial_schema().names)
    assert [len(run.record.rates[role]) for role in ("producer", "consumer")] == [2, 2]


@asynchronous
async def test_a_warm_up_works_at_both_ends_and_is_forgotten_and_the_clients_take_the_next_trial(
    tmp_path: Path,
) -> None:
    async with running(tmp_path) as arm:
        warm = trial_on(arm, "streaming")
        await warm.open()
        rates = await warm.warm(0.2)
        assert min(rates) > 0
        assert warm.record.windows == []
        await warm.forget()
        with pytest.raises(DriverError):
            await warm.system.end_offsets(warm.topic)
        run = trial_on(arm)
        await run.open()
        await run.fill(30)
        await run.join()
        await run.catch_up()
        await run.audit()
    assert (run.record.verdict, run.record.consumed) == (VALID, 30)
