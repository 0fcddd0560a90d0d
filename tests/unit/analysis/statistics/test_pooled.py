from __future__ import annotations

import math
from statistics import fmean
from typing import Any

import pytest

from analysis.statistics.multiple import holm
from analysis.statistics.pairs import Logs, Pair
from analysis.statistics.pooled import mean_of, pooled
from tests.unit.analysis.statistics.logs import PAIR, logs_of

BASE = Pair("dsbs", "static", 2, 3)
STREAMING: dict[str, Any] = {"mode": "streaming", "role": "consumption"}


def cell(name: str, *blocks: list[float], few: int = 0, pair: Pair = PAIR, **more: Any) -> Logs:
    return logs_of(blocks, few, pair, cell=name, **more)


def test_each_block_is_the_mean_of_its_cells_whatever_their_number_of_rounds() -> None:
    row = mean_of([cell("a", [0.1], [0.2, 0.4]), cell("b", [0.3, 0.3, 0.3], [0.5])])
    assert row is not None
    assert (row["n"], row["cells"], row["left_out"]) == (2, 2, 0)
    assert row["ratio"] == pytest.approx(math.exp(fmean([0.2, 0.4])))
    assert row["sd"] == pytest.approx(0.2 / math.sqrt(2))


def test_a_cell_that_a_block_lacks_or_that_has_too_few_messages_is_left_out() -> None:
    whole = [cell(name, [0.1], [0.1], [0.3]) for name in "abc"]
    lame, few = cell("d", [9.0], [], [9.0]), cell("e", [9.0], [9.0], [9.0], few=4)
    assert mean_of([*whole, lame, few]) == {**(mean_of(whole) or {}), "left_out": 2}


def test_a_block_that_the_run_left_unfinished_leaves_no_cell_out() -> None:
    row = mean_of([cell("a", [0.1], [0.2], [0.3]), *(cell(name, [0.1], [0.2]) for name in "bcd")])
    assert row is not None
    assert (row["n"], row["cells"], row["left_out"]) == (2, 4, 0)


def test_nothing_is_pooled_where_nothing_counts() -> None:
    assert mean_of([]) is None
    assert mean_of([cell("a", [0.1], few=2)]) is None
    assert pooled([cell("a", [0.1], few=2)], [], []) == []


def test_families_are_production_consumption_and_the_messages_that_went_all_the_way() -> None:
    logs = [
        cell("a", [0.1], [0.2]), cell("a", [0.1], [0.2], role="consumption"), cell("b", [0.1], [0.2], **STREAMING),
        cell("b", [9.0], [9.0], mode="streaming"),
    ]  # fmt: skip
    rows = pooled(logs, [], [])
    assert [row["family"] for row in rows] == ["production", "consumption", "streaming"]
    assert [row["ratio"] for row in rows] == pytest.approx([math.exp(0.15)] * 3)


def test_primary_questions_come_first_and_hold_together_by_holm() -> None:
    logs = [cell("a", [0.1], [0.2], pair=BASE), cell("a", [0.3], [0.31]), cell("b", [0.1], [0.13], **STREAMING)]
    rows = pooled(logs, [], [PAIR.names])
    assert [(row["against"], row["primary"]) for row in rows] == [
        ("zookeeper", True), ("zookeeper", True), ("static", False),
    ]  # fmt: skip
    assert [row["p_holm"] for row in rows] == [*holm([row["p"] for row in rows[:2]]), None]


def test_cost_is_cheaper_or_dearer_and_has_no_part_in_holm() -> None:
    for logs, verdict in (([-0.5], [-0.51]), "cheaper"), (([0.5], [0.51]), "dearer"), (([-1.0], [1.0]), "undecided"):
        (row,) = pooled([], [cell("a", *logs)], [PAIR.names])
        assert (row["metric"], row["verdict"], row["p_holm"]) == ("cpu_us", verdict, None)
