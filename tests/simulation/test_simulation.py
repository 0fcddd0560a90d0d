"""Clusters of the real machine under faults (see `story`); a failure names its seed, which replays it."""

from __future__ import annotations

import pytest

from tests.simulation.story import run

RUNS = 200
RUNS_PER_TEST = 10
# Seeds that once failed, and what they found.
FOUND: dict[int, str] = {}


@pytest.mark.parametrize("first", range(0, RUNS, RUNS_PER_TEST))
def test_promises_hold_and_tables_agree_after_healing(first: int) -> None:
    for seed in range(first, first + RUNS_PER_TEST):
        run(seed)


@pytest.mark.parametrize("seed", [7, 8, 9])
def test_the_same_seed_gives_the_same_trace(seed: int) -> None:
    assert run(seed) == run(seed)


def test_another_seed_gives_another_trace() -> None:
    assert run(1) != run(2)
