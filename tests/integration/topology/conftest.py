"""Topologies for tests; where the machine cannot have them, the tests say so and are skipped."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.workloads.plans import plan
from workloads.topology.api import TopologyUnavailable
from workloads.topology.choice import refuse_unavailable

APART = plan(
    experiments="experiments: {one: {message_size: 32B, batch_size: 10, mode: split, topology: namespaces}}",
)


@pytest.fixture(scope="session", autouse=True)
def namespaces() -> None:
    try:
        asyncio.run(refuse_unavailable([APART.cells[0].cluster]))
    except TopologyUnavailable as error:
        pytest.skip(str(error))
