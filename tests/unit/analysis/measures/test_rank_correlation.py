from __future__ import annotations

import dataclasses
import random

import pytest
from scipy import stats

from analysis.findings import Findings
from analysis.measures import rank_correlation


@pytest.mark.parametrize("seed", range(5))
def test_rank_correlation_is_scipys_ties_and_all(seed: int) -> None:
    generator = random.Random(seed)
    first, second = ([generator.randrange(8) for _ in range(20)] for _ in range(2))
    assert rank_correlation.spearman(first, second) == pytest.approx(stats.spearmanr(first, second).statistic)


def test_the_same_order_is_1_the_opposite_minus_1_and_a_constant_has_none() -> None:
    assert rank_correlation.spearman([1, 5, 9], [2, 3, 70]) == pytest.approx(1)
    assert rank_correlation.spearman([1, 5, 9], [70, 3, 2]) == pytest.approx(-1)
    assert rank_correlation.spearman([1, 5, 9], [2, 2, 2]) is None


def test_order_is_told_for_both_rates_and_for_the_ratio(found: Findings) -> None:
    compared = tuple({**row, "ratio": row["published"] ** 2} for row in found.paper_comparison)
    cells = tuple({**row, "mean": row["mean"] - row["message_size"]} for row in found.cells)
    whole = dataclasses.replace(found, paper_comparison=compared, cells=cells)
    rows = {(row["what"], row["role"]): row for row in rank_correlation.orders(whole)}
    assert {what for what, _ in rows} == {"zookeeper", "dsbs", "dsbs / zookeeper"}
    # Cells of 8 and of 32 bytes, the second in both tables and counted once, and batch size 1, in two modes.
    assert {row["n"] for row in rows.values()} == {6}
    assert rows["dsbs / zookeeper", "production"]["rho"] == pytest.approx(1)
