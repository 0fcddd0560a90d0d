"""What a window costs: the difference of two readings of each process and each broker, and of nobody else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.contract.backend import asynchronous
from tests.unit.workloads.measure.working import work, workers
from workloads.clients.drivers.api import BrokerStatistics
from workloads.measure import metering
from workloads.measure.metering import Costs, Meter
from workloads.measure.resources import Usage
from workloads.processes.process import ProcessFailed
from workloads.trial.record import Place


def statistics(broker: int, *, lookups: int, commits: int, produced: int, cpu_ns: int = 0) -> BrokerStatistics:
    coordination = {"lookup": (lookups, 10 * lookups, 1000 * lookups), "commit": (commits, commits, commits)}
    return BrokerStatistics(broker, {"produce": (produced, 20 * produced, 640 * produced)}, coordination, cpu_ns)


class Answers:
    """What the brokers say, one answer after the other."""

    def __init__(self, *answers: Sequence[BrokerStatistics]) -> None:
        self._answers = list(answers)

    async def __call__(self) -> Sequence[BrokerStatistics]:
        return self._answers.pop(0)


async def cost(meter: Meter, without: Sequence[str] = (), wall_s: float = 2.0) -> Costs:
    costs = Costs()
    await meter.end(Place(3, "production"), wall_s, costs, without)
    return costs


@asynchronous
async def test_a_window_costs_what_each_process_used_in_it(tmp_path: Path) -> None:
    async with workers(tmp_path, "broker-1", "broker-2") as processes:
        meter = Meter(processes, Answers([], []))
        await meter.begin()
        await work(processes["broker-1"][1])
        busy, idle = (await cost(meter)).resources
    assert [(row["node"], row["role"], row["number"], row["window"], row["wall_s"]) for row in (busy, idle)] == [
        ("broker-1", "broker", 3, "production", 2.0),
        ("broker-2", "broker", 3, "production", 2.0),
    ]
    assert busy["cpu_user_s"] + busy["cpu_system_s"] >= 0.09
    assert idle["cpu_user_s"] + idle["cpu_system_s"] <= 0.05
    assert min(row["rss_max_bytes"] for row in (busy, idle)) > 2**20
    assert (busy["gc_pause_s"], busy["coordination_cpu_s"]) == (None, None), "no JVM, and no broker that counts"


@asynchronous
async def test_brokers_counters_are_told_as_what_was_added_and_not_where_nothing_was(tmp_path: Path) -> None:
    before = [
        statistics(1, lookups=5, commits=7, produced=3, cpu_ns=10**9),
        statistics(2, lookups=0, commits=0, produced=0),
    ]
    after = [
        statistics(1, lookups=8, commits=7, produced=4, cpu_ns=3 * 10**9),
        statistics(2, lookups=0, commits=0, produced=0),
    ]
    async with workers(tmp_path, "broker-1") as processes:
        meter = Meter(processes, Answers(before, after))
        await meter.begin()
        costs = await cost(meter)
    assert costs.coordination == [
        {
            "node": "broker-1",
            "number": 3,
            "window": "production",
            "operation": "lookup",
            "count": 3,
            "bytes": 30,
            "wait_s": 3e-6,
        }
    ]
    assert costs.broker_requests == [
        {
            "node": "broker-1",
            "number": 3,
            "window": "production",
            "operation": "produce",
            "requests": 1,
            "messages": 20,
            "bytes": 640,
        }
    ]
    (row,) = costs.resources
    assert row["coordination_cpu_s"] == 2.0


@asynchronous
async def test_a_counter_that_appears_in_the_window_counts_from_nothing(tmp_path: Path) -> None:
    meter = Meter({}, Answers([BrokerStatistics(1, {}, {}, 0)], [statistics(1, lookups=2, commits=0, produced=0)]))
    await meter.begin()
    (row,) = (await cost(meter)).coordination or []
    assert (row["operation"], row["count"]) == ("lookup", 2)


@asynchronous
async def test_windows_add_up_in_one_trial(tmp_path: Path) -> None:
    costs = Costs()
    for number, (window, count) in enumerate((("production", 3), ("production", 5), ("consumption", 4)), start=1):
        meter = Meter(
            {},
            Answers(
                [statistics(1, lookups=0, commits=0, produced=0)],
                [statistics(1, lookups=count, commits=0, produced=count)],
            ),
        )
        await meter.begin()
        await meter.end(Place(number, window), 1.0, costs)
    for rows, column in ((costs.coordination, "count"), (costs.broker_requests, "requests")):
        counted = [(row["number"], row["window"], row[column]) for row in rows or ()]
        assert counted == [(1, "production", 3), (2, "production", 5), (3, "consumption", 4)]


@asynchronous
async def test_a_process_that_ended_fails_the_window_with_its_own_words(tmp_path: Path) -> None:
    async with workers(tmp_path, "broker-1") as processes:
        process = processes["broker-1"][1]
        meter = Meter(processes, Answers([], []))
        await meter.begin()
        process.kill()
        await process.ended()
        with pytest.raises(ProcessFailed, match="broker-1 was ended by SIGKILL"):
            await cost(meter)
        with pytest.raises(ProcessFailed, match="broker-1 was ended by SIGKILL"):
            await Meter(processes, Answers([])).begin()


@asynchronous
async def test_a_process_that_was_ended_on_purpose_has_no_row_and_the_others_have(tmp_path: Path) -> None:
    """Its counters began anew, or are gone: what it used in the window is nobody's to say."""
    before = [statistics(number, lookups=9, commits=0, produced=0) for number in (1, 2)]
    after = [statistics(1, lookups=1, commits=0, produced=0), statistics(2, lookups=10, commits=0, produced=0)]
    async with workers(tmp_path, "broker-1", "broker-2") as processes:
        meter = Meter(processes, Answers(before, after))
        await meter.begin()
        process = processes["broker-1"][1]
        process.kill()
        await process.ended()
        costs = await cost(meter, without=["broker-1"])
    assert [row["node"] for row in costs.resources] == ["broker-2"]
    assert [(row["node"], row["count"]) for row in costs.coordination or ()] == [("broker-2", 1)]


@pytest.mark.parametrize("answers", [([], [1]), ([1], [])])
@asynchronous
async def test_a_broker_that_could_not_be_asked_at_both_ends_has_no_counters(
    answers: tuple[list[int], list[int]],
) -> None:
    said = [[statistics(number, lookups=3, commits=3, produced=3) for number in numbers] for numbers in answers]
    meter = Meter({}, Answers(*said))
    await meter.begin()
    assert await cost(meter) == Costs()


@asynchronous
async def test_what_brokers_are_asked_lies_outside_of_the_readings_of_their_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the window would hold the cost of the question."""
    seen: list[str] = []

    async def asked() -> list[BrokerStatistics]:
        seen.append("asked")
        return []

    def read(pid: int) -> Any:
        seen.append("read")
        return Usage(0.0, 0.0, 0, 0)

    monkeypatch.setattr(metering, "usage_of", read)
    async with workers(tmp_path, "broker-1") as processes:
        meter = Meter(processes, asked)
        await meter.begin()
        await cost(meter)
    assert seen == ["asked", "read", "read", "asked"]
