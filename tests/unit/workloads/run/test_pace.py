"""How long a window must be for its rate to mean something: the same on all architectures, and bounded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.workloads.run.plans import plan
from workloads.run.pace import LONGER_MAX, MARGIN, Pace

SPLIT, STREAMING = plan(
    experiments="experiments: {one: {message_size: 32B, batch_size: 10, mode: [split, streaming]}}"
).cells
(LARGE,) = plan(experiments="experiments: {one: {message_size: 32B, batch_size: 50, mode: split}}").cells
NAMES = ["dsbs", "static"]


def pace(dsbs: float, static: float, role: str = "producer") -> Pace:
    found = Pace()
    for name, rate in (("dsbs", dsbs), ("static", static)):
        for cell in (SPLIT, STREAMING, LARGE):
            found.note(cell, name, {role: [1.0, rate]})
    return found


def test_the_last_rate_of_each_role_is_remembered() -> None:
    found = pace(100, 200)
    assert found.rate(SPLIT, "dsbs", "producer") == 100
    assert found.rate(SPLIT, "dsbs", "consumer") == 0
    assert found.rate(SPLIT, "zookeeper", "producer") == 0


def test_windows_that_hold_enough_stay_as_they_are() -> None:
    """A second at 1,000 messages/s on the slower of the two: just enough."""
    found = pace(1_000, 50_000)
    assert not found.lengthens(SPLIT, "production", 1.0, NAMES)
    assert found.factor(SPLIT, "production") == 1


def test_windows_become_as_long_as_the_slowest_needs_and_somewhat_longer() -> None:
    found = pace(500, 50_000)
    assert found.lengthens(SPLIT, "production", 1.0, NAMES)
    assert found.factor(SPLIT, "production") == pytest.approx(2 * MARGIN)
    assert not found.lengthens(SPLIT, "production", 1.0, NAMES), "they are long enough now"


def test_large_batches_need_fifty_of_them() -> None:
    assert not pace(1_500, 1_500).lengthens(SPLIT, "production", 1.0, NAMES)
    found = pace(1_500, 1_500)
    assert found.lengthens(LARGE, "production", 1.0, NAMES)
    assert found.factor(LARGE, "production") == pytest.approx(2_500 / 1_500 * MARGIN)


def test_where_both_ends_work_both_must_have_enough() -> None:
    found = pace(50_000, 50_000)
    for name in NAMES:
        found.note(STREAMING, name, {"consumer": [400.0]})
    assert found.lengthens(STREAMING, "both", 1.0, NAMES)
    assert found.factor(STREAMING, "both") == pytest.approx(2.5 * MARGIN)


def test_other_cells_and_windows_of_other_kinds_keep_their_length() -> None:
    found = pace(100, 100)
    found.lengthens(SPLIT, "production", 1.0, NAMES)
    assert found.factor(SPLIT, "consumption") == found.factor(LARGE, "production") == 1


def test_an_architecture_that_does_next_to_nothing_is_not_waited_for_without_end() -> None:
    for rate in (0.0, 0.001):
        found = pace(rate, 50_000)
        assert found.lengthens(SPLIT, "production", 1.0, NAMES)
        assert found.factor(SPLIT, "production") == LONGER_MAX
        assert not found.lengthens(SPLIT, "production", 1.0, NAMES)


@given(st.lists(st.just(0.0) | st.floats(1e-3, 1e6), min_size=1, max_size=8), st.floats(0.01, 60))
def test_windows_never_become_shorter_and_come_to_an_end(rates: list[float], duration_s: float) -> None:
    found = Pace()
    factors = [1.0]
    for rate in rates:
        found.note(SPLIT, "dsbs", {"producer": [rate]})
        grows = found.lengthens(SPLIT, "production", duration_s, ["dsbs"])
        factors.append(found.factor(SPLIT, "production"))
        assert grows == (factors[-1] > factors[-2])
    assert factors == sorted(factors)
    assert factors[-1] <= LONGER_MAX
