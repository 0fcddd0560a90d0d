"""Several consumers share a topic's partitions: each is read by one of them for good, however many there are."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.integration.runs.short_runs import run_here
from tests.unit.workloads.run.plans import plan
from workloads.clients.client_files import read_ids
from workloads.run.runner import Summary
from workloads.spec.plan import Plan
from workloads.trial import evidence
from workloads.trial.jobs import share
from workloads.trial.record import TrialRecord

SIZE = "message_size: 32B, batch_size: 10"
PLAN = plan(
    experiments=f"""experiments:
  three: {{{SIZE}, mode: split, driver: kafka, partitions: 3, consumers: [2, 3]}}
  five: {{{SIZE}, mode: split, driver: kafka, partitions: 5, consumers: 2}}
  idle: {{{SIZE}, mode: streaming, partitions: 3, consumers: 5, idle_consumers: true, driver: [kafka, grpc],
         commit: [every_batch, end]}}
""",
    profile="{experiments: [three, five, idle], messages: 3000, tries: 1}",
)


def shares_read(folder: Path, of: Plan) -> dict[str, list[set[int]]]:
    """By trial, the partitions of which each consumer read messages; of a run of which every trial is valid."""
    found: dict[str, list[set[int]]] = {}
    real = evidence.examine

    async def looks(
        record: TrialRecord, producers: Sequence[Path], consumers: Sequence[Path], *rest: Any, **how: Any
    ) -> Any:
        every = await asyncio.to_thread(lambda: list(map(read_ids, consumers)))
        found[record.trial.id] = [{number for number, ids in each.items() if len(ids)} for each in every]
        return await real(record, producers, consumers, *rest, **how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("workloads.trial.trial.examine", looks)
        assert run_here(folder, of) == Summary(valid=len(of.trials), invalid=0, failed=0)
    return found


def test_consumers_share_the_partitions_evenly_and_those_that_get_none_are_idle(tmp_path: Path) -> None:
    found = shares_read(tmp_path, PLAN)
    for each in PLAN.trials:
        partitions, consumers = each.cell.cluster.partitions, each.cell.workload.consumers
        shares = found[each.id]
        assert sorted(number for of_one in shares for number in of_one) == list(range(partitions))
        assert sorted(map(len, shares)) == sorted(share(partitions, consumers, number) for number in range(consumers))
