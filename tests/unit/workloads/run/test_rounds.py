"""The order of architectures in a round: balanced, the same everywhere, and drawn for each cell."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.run.rounds import first_turn, in_turn, williams

COUNTS = range(1, 9)


@pytest.mark.parametrize("count", COUNTS)
def test_each_row_has_every_architecture_once(count: int) -> None:
    rows = williams(count)
    assert len(rows) == (count if count % 2 == 0 else 2 * count)
    assert all(sorted(row) == list(range(count)) for row in rows)


@pytest.mark.parametrize("count", COUNTS)
def test_each_architecture_has_each_place_equally_often(count: int) -> None:
    places = Counter((place, one) for row in williams(count) for place, one in enumerate(row))
    assert len(places) == count**2
    assert len(set(places.values())) == 1


@pytest.mark.parametrize("count", COUNTS)
def test_each_architecture_follows_each_other_equally_often(count: int) -> None:
    followed = Counter(pair for row in williams(count) for pair in pairwise(row))
    assert followed.keys() == {(one, other) for one in range(count) for other in range(count) if one != other}
    assert len(set(followed.values())) <= 1


def test_two_architectures_take_turns_at_being_first() -> None:
    assert [in_turn(["dsbs", "static"], turn) for turn in range(3)] == [
        ["dsbs", "static"], ["static", "dsbs"], ["dsbs", "static"],
    ]  # fmt: skip


def test_the_orders_of_four_are_those_of_the_square_as_it_is_published() -> None:
    """Williams (1949): 0 1 n-1 2 n-2 ..., and each later row one further."""
    assert [tuple(in_turn("abcd", turn)) for turn in range(4)] == [
        ("a", "b", "d", "c"), ("b", "c", "a", "d"), ("c", "d", "b", "a"), ("d", "a", "c", "b"),
    ]  # fmt: skip


@given(st.integers(0, 10**12), st.lists(st.integers(), unique=True, max_size=8))
def test_any_turn_is_an_order_of_all(turn: int, of: list[int]) -> None:
    assert sorted(in_turn(of, turn)) == sorted(of)


def test_the_first_turn_is_the_same_on_every_python() -> None:
    """Written down, so that a Python that would draw otherwise is seen."""
    cell = "message_size=32,batch_size=20,mode=split"
    assert [first_turn(2017, block, cell) for block in (1, 2)] == [2668920377, 54908367]
    assert first_turn(1, 1, cell) != first_turn(2017, 1, cell)


def test_cells_and_blocks_begin_at_different_places_of_the_square() -> None:
    rows = len(williams(4))
    starts = Counter(first_turn(2017, block, f"batch_size={size}") % rows for block in range(20) for size in range(20))
    assert len(starts) == rows
    assert min(starts.values()) > 400 / rows / 2
