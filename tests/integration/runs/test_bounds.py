"""The largest requests that a plan allows: real brokers take them, both drivers send them whole, and they balance."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.runs.short_runs import rows, run_here
from tests.integration.runs.test_axes import CUT_MAX, at_brokers
from tests.unit.workloads.run.plans import plan
from workloads.run.runner import Summary
from workloads.spec import keys
from workloads.spec.plan import Plan

REQUESTS = 6


def corner(batch: int) -> Plan:
    """Requests of so many messages, as large as is allowed; through either driver, in either mode."""
    axes = f"message_size: {keys.REQUEST_BYTES_MAX // batch}B, batch_size: {batch}, mode: [split, streaming]"
    return plan(
        experiments=f"experiments: {{corner: {{{axes}, driver: [kafka, grpc], producers: 2}}}}",
        profile=f"{{experiments: corner, messages: {REQUESTS * batch}, tries: 1}}",
    )


@pytest.mark.parametrize("batch", [1, 20, keys.BATCH_MESSAGES_MAX])
def test_the_largest_requests_of_a_plan_are_taken_and_balance(tmp_path: Path, batch: int) -> None:
    of = corner(batch)
    assert run_here(tmp_path, of) == Summary(valid=len(of.trials), invalid=0, failed=0)
    for row in rows(tmp_path).values():
        assert row["stored"] == REQUESTS * batch
        requests, messages = at_brokers(row, "produce")
        assert messages == REQUESTS * batch
        assert 0 <= requests - REQUESTS <= CUT_MAX, "a request holds a batch"
