"""Ratios of two architectures, cell by cell, against SciPy and on noise whose truth is known."""

from __future__ import annotations

import math
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from scipy import stats

from analysis.statistics.pairs import Logs, Pair, logs
from analysis.statistics.ratios import ratios
from tests.unit.analysis.statistics.logs import PAIR, logs_of, run

DRIFT = (100.0, 80.0, 125.0, 90.0)  # blocks may differ far more than architectures do


def noisy(mean: float, spread: float, blocks: int, seed: int) -> list[list[float]]:
    return [[float(value)] for value in np.random.default_rng(seed).normal(mean, spread, blocks)]


def test_ratio_and_interval_are_those_of_a_paired_t_test_on_logarithms() -> None:
    rates = {
        name: {number: float(rate) for number, rate in enumerate(np.random.default_rng(seed).normal(mean, 2, 5))}
        for name, mean, seed in (("zookeeper", 100, 1), ("dsbs", 180, 2))
    }
    (row,) = ratios(logs(run(rates), "rps", [PAIR]))
    own = [math.log(rates["dsbs"][number] / rates["zookeeper"][number]) for number in range(5)]
    interval = stats.ttest_1samp(own, 0).confidence_interval(0.95)
    assert (row["architecture"], row["against"], row["n"], row["rounds"]) == ("dsbs", "zookeeper", 5, 5)
    assert (row["ratio"], row["low"], row["high"]) == pytest.approx(
        (math.exp(fmean(own)), math.exp(interval.low), math.exp(interval.high)), rel=1e-9
    )
    assert (row["moderated"], row["degrees"]) == (False, 4)


@pytest.mark.parametrize(("factor", "verdict"), [(1.05, "faster"), (0.95, "slower")])
def test_five_percent_that_hold_in_every_block_are_found_though_blocks_differ_more(factor: float, verdict: str) -> None:
    rates = {
        "zookeeper": dict(enumerate(DRIFT)),
        "dsbs": {number: rate * factor * (1 + number / 1000) for number, rate in enumerate(DRIFT)},
    }
    (row,) = ratios(logs(run(rates), "rps", [PAIR]))
    assert (row["verdict"], row["ratio"]) == (verdict, pytest.approx(factor, rel=0.002))


def test_one_wild_block_leaves_the_matter_open_and_says_how_much_is_missing() -> None:
    wild = [[0.05, 0.05], [0.06, 0.06], [0.04, 0.04], [2.0, 2.0]]
    (row,) = ratios([logs_of(wild)], precision=0.2)
    assert row["verdict"] == "undecided"
    t = stats.t.ppf(0.975, 3)
    sd = np.std([fmean(own) for own in wild], ddof=1)
    assert row["rounds_more"] == math.ceil(((t * sd / math.log(1.2)) ** 2 - 4) * 2)


def test_nothing_is_missing_where_it_is_decided_or_equal_or_one_block_tells_nothing() -> None:
    decided, equal, once = [[0.5], [0.51], [0.49]], [[0.001], [-0.002], [0.001]], [[0.5]]
    rows = [ratios([logs_of(own)])[0] for own in (decided, equal, once)]
    assert [(row["verdict"], row["equal"]) for row in rows] == [
        ("faster", False), ("undecided", True), ("one try", False),
    ]  # fmt: skip
    assert {row["rounds_more"] for row in rows} == {None}


def test_undecided_within_the_precision_needs_a_round_more_at_least() -> None:
    (row,) = ratios([logs_of([[0.07], [-0.02], [0.06], [0.0], [0.05], [-0.01]])])
    assert (row["verdict"], row["equal"], row["rounds_more"]) == ("undecided", False, 1)


def test_too_few_messages_are_no_ratio() -> None:
    (row,) = ratios([logs_of([[0.5], [0.5]], few=3)])
    assert (row["verdict"], row["n"], row["survives"], row["equal"]) == ("too few", 0, False, False)
    assert {row[name] for name in ("ratio", "low", "high", "sd", "degrees", "p", "rounds_more")} == {None}


def family(cells: int, blocks: int, seed: int, pair: Pair = PAIR) -> list[Logs]:
    """Equal architectures in so many cells, with blocks' noise of about 6 %."""
    return [
        logs_of(noisy(0, 0.06, blocks, 1_000 * seed + size), pair=pair, cell=f"c{size}", message_size=size)
        for size in range(cells)
    ]


def test_cells_of_a_pair_lend_each_other_their_variance_and_other_pairs_do_not() -> None:
    other = Pair("dsbs", "static", 2, 3)
    rows = ratios([*family(8, 3, 1), *family(7, 3, 2, other)])
    assert [row["moderated"] for row in rows if row["against"] == "static"] == [False] * 7
    lent = [row for row in rows if row["against"] == "zookeeper"]
    assert sum(row["moderated"] for row in lent) >= 7
    assert {row["degrees"] for row in lent if row["moderated"]} != {2}
    assert all(row["degrees"] > 2 for row in lent if row["moderated"])


def test_survivors_are_told_apart_within_their_pair() -> None:
    sure = [logs_of([[0.5], [0.501], [0.499]], cell=f"c{n}", message_size=n) for n in range(2)]
    weak = logs_of([[0.04], [0.09], [0.07], [0.01]], cell="weak")
    rows = ratios([*sure, weak, *family(30, 3, 5)])
    alone = ratios([weak])
    assert [row["survives"] for row in rows[:2]] == [True, True]
    assert (rows[2]["verdict"], rows[2]["survives"]) == ("faster", False) or rows[2]["verdict"] == "undecided"
    assert alone[0]["survives"] == (alone[0]["verdict"] == "faster")


@pytest.mark.parametrize("blocks", [3, 5])
def test_false_alarms_of_two_names_of_one_architecture_are_5_percent_and_chance(blocks: int) -> None:
    """Runs of 28 cells in four levels, of which streaming scatters twice as much; a start's effect is in every cell.

    The effect makes the alarms of a run come together, so the runs are what counts: 150 of them.
    """
    random = np.random.default_rng(2017)
    alarms = []
    for _ in range(150):
        starts = random.normal(0, 0.025 * math.sqrt(2), blocks)
        own = []
        for mode, scatter in (("split", 1.0), ("streaming", 2.0)):
            for role in ("production", "consumption"):
                for size in range(7):
                    windows = random.normal(0, 0.11 * math.sqrt(2 / 5) * scatter, blocks)
                    cell: dict[str, Any] = {"cell": f"{size}{mode}", "mode": mode, "role": role, "message_size": size}
                    own.append(logs_of([[float(value)] for value in starts + windows], **cell))
        alarms.append(fmean(row["verdict"] in ("faster", "slower") for row in ratios(own)))
    error = float(np.std(alarms, ddof=1)) / math.sqrt(len(alarms))
    assert fmean(alarms) < 0.05 + 3 * error
    assert fmean(alarms) > 0.02
