"""How a budget is shared out: to the cells that are known least, whoever is ahead, within its bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.workloads.run.plans import plan
from workloads.run.allocation import ROUND_SHARE, ROUNDS_MAX, rounds_for
from workloads.spec.plan import Plan

BUDGET: Final = plan(
    experiments="experiments: {one: {message_size: 32B, batch_size: [10, 20, 50], mode: split}}",
    profile="{experiments: one, messages: 300, tries: 3, budget_s: 400}",
)
A, B, C = (cell.id for cell in BUDGET.cells)
BASE_S: Final = 60.0  # of a block with one round of each of the three cells
ROUND_S: Final = BASE_S * ROUND_SHARE / 3


class Knows:
    """By how much each cell misses its precision, whatever blocks there are."""

    def __init__(self, **need: float) -> None:
        self._need = {{"a": A, "b": B, "c": C}[name]: value for name, value in need.items()}
        self.asked: list[int] = []

    def need(self, blocks: int) -> Mapping[str, float]:
        self.asked.append(blocks)
        return self._need


def rounds(
    block: int, known: Knows, *, spent_s: float = BASE_S, of: Plan = BUDGET, block_s: float = BASE_S
) -> Mapping[str, int] | None:
    """Of a block behind the first, which took `BASE_S`."""
    return rounds_for(of, block, {"windows": spent_s / 2, "between": spent_s / 2}, {"1": block_s}, known)


def with_budget(budget_s: float | None, **effort: int) -> Plan:
    return replace(BUDGET, effort=replace(BUDGET.effort, budget_s=budget_s, **effort))


def test_without_a_budget_every_block_has_the_rounds_of_the_profile_and_there_are_the_tries() -> None:
    of = with_budget(None, rounds=2)
    found = [rounds(block, Knows(a=9, b=9, c=9), of=of) for block in range(1, 5)]
    assert found == [{A: 2, B: 2, C: 2}] * 3 + [None]


def test_before_the_first_block_nothing_is_known_and_every_cell_has_its_rounds() -> None:
    known = Knows(a=9)
    assert rounds_for(BUDGET, 1, {}, {}, known) == {A: 1, B: 1, C: 1}
    assert known.asked == []


def test_a_block_is_decided_by_the_blocks_before_it() -> None:
    known = Knows()
    rounds(3, known)
    assert known.asked == [2]


def test_spare_rounds_are_shared_out_by_hand() -> None:
    """400 s less one block, on two blocks: 170 s each; less 60 s of their own: 110 s, 11 rounds. The square of what a
    cell misses, over its rounds, is what it is given a round for: 9 and 4 here."""
    assert int((340 / 2 - BASE_S) / ROUND_S) == 11
    assert rounds(2, Knows(a=3, b=2, c=0.5)) == {A: ROUNDS_MAX, B: 5, C: 1}
    assert rounds(2, Knows(a=3, b=2.9, c=0.5), of=with_budget(250)) == {A: 3, B: 2, C: 1}
    assert rounds(2, Knows(a=4, b=2.1, c=0.5), of=with_budget(250)) == {A: 4, B: 1, C: 1}


def test_in_the_last_of_the_tries_all_that_is_left_is_spent() -> None:
    assert rounds(3, Knows(a=2, b=0, c=0), spent_s=320) == {A: 3, B: 1, C: 1}


def test_behind_the_tries_there_are_blocks_while_something_is_undecided_and_the_budget_holds_one() -> None:
    undecided = Knows(a=1.01, b=1, c=0.2)
    assert rounds(4, undecided, spent_s=400 - BASE_S) == {A: 1, B: 1, C: 1}
    assert rounds(4, undecided, spent_s=400 - BASE_S + 1) is None


def test_a_run_ends_when_all_was_decided_after_two_blocks_running_and_not_before_the_fifth() -> None:
    decided = Knows(a=1, b=1, c=0.2)
    assert rounds(4, decided, spent_s=100) == rounds(5, decided, spent_s=100) == {A: 1, B: 1, C: 1}
    assert rounds(6, decided, spent_s=100) is None
    assert decided.asked[-2:] == [5, 4]


def test_a_decided_run_keeps_to_its_tries_however_much_is_left() -> None:
    assert rounds(2, Knows(a=1, b=0.5, c=0)) == {A: 1, B: 1, C: 1}
    assert rounds(3, Knows(a=1, b=0.5, c=0), of=with_budget(86_400)) == {A: 1, B: 1, C: 1}


def test_a_budget_that_is_spent_leaves_the_tries() -> None:
    assert rounds(2, Knows(a=9, b=9, c=9), spent_s=1_000) == {A: 1, B: 1, C: 1}
    assert rounds(4, Knows(a=9, b=9, c=9), spent_s=1_000) is None


@given(
    st.integers(2, 9), st.floats(0, 5_000), st.floats(1, 500), st.integers(1, 10),
    st.tuples(*[st.floats(0, 2_000)] * 3),
)  # fmt: skip
def test_rounds_are_bounded_the_decided_get_none_and_all_that_is_spare_is_given_away(
    block: int, spent_s: float, block_s: float, least: int, need: tuple[float, ...]
) -> None:
    of = with_budget(400, rounds=least)
    found = rounds(block, Knows(a=need[0], b=need[1], c=need[2]), spent_s=spent_s, of=of, block_s=block_s)
    if found is None:
        assert block > of.effort.tries
        return
    assert found.keys() == {A, B, C}
    for cell, miss in zip((A, B, C), need, strict=True):
        assert least <= found[cell] <= max(least, ROUNDS_MAX)
        assert miss > 1 or found[cell] == least
    round_s = block_s * ROUND_SHARE / (least * 3)
    share_s = (400 - spent_s) / max(1, of.effort.tries - block + 1)
    spare = max(0, int((share_s - block_s) / round_s))
    given_away = sum(found.values()) - 3 * least
    assert given_away <= spare
    full = all(found[cell] >= ROUNDS_MAX for cell, miss in zip((A, B, C), need, strict=True) if miss > 1)
    assert given_away == spare or full


@given(st.lists(st.floats(1.001, 1_000), min_size=3, max_size=3), st.permutations([0, 1, 2]))
def test_who_misses_more_gets_no_fewer_rounds(need: list[float], order: list[int]) -> None:
    found = rounds(2, Knows(**{name: need[place] for name, place in zip("abc", order, strict=True)}))
    assert found is not None
    pairs = sorted((need[place], found[cell]) for cell, place in zip((A, B, C), order, strict=True))
    assert all(fewer <= more for (one, fewer), (other, more) in pairwise(pairs) if one < other)
