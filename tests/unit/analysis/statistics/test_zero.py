from __future__ import annotations

import math
from typing import Any

import pytest

from analysis.statistics.beta import share_interval
from analysis.statistics.pairs import Logs, Pair
from analysis.statistics.ratios import ratios
from analysis.statistics.zero import twins, zero
from tests.made_records import MadeTrial, trial_row
from tests.unit.analysis.statistics.logs import PAIR, logs_of

AGAIN = Pair("static-again", "static", 4, 3)


def settings(**told: str | None) -> list[dict[str, Any]]:
    return [trial_row(MadeTrial(name.replace("_", "-"))) | {"settings": text} for name, text in told.items()]


def test_twins_differ_in_name_alone() -> None:
    assert twins(settings(static_again="static", static="static", dsbs="dsbs")) == [("static-again", "static")]


def test_architectures_whose_settings_are_not_known_are_no_twins() -> None:
    assert twins(settings(static=None, dsbs=None)) == []


def cell(size: int, *logs: float, pair: Pair = AGAIN, **more: Any) -> Logs:
    return logs_of([[value] for value in logs], pair=pair, message_size=size, cell=f"c{size}", **more)


LOGS = [
    cell(1, 0.01, -0.01), cell(2, 0.05, 0.0501), cell(3, 0.02, -0.02), cell(1, 0.0, 0.02, role="consumption"),
    cell(1, 0.03, 0.01, mode="streaming", role="consumption"), cell(1, -0.02, 0.01, mode="streaming"),
    cell(1, 9.0, 9.0, pair=PAIR),
]  # fmt: skip


def test_zero_counts_false_alarms_by_family_and_of_all() -> None:
    rows = {row["family"]: row for row in zero(ratios(LOGS), LOGS, [("static-again", "static")])}
    assert {name: (row["comparisons"], row["false_alarms"]) for name, row in rows.items()} == {
        "production": (3, 1), "consumption": (1, 0), "streaming": (2, 0), "all": (6, 1),
    }  # fmt: skip
    assert (rows["all"]["alarm_low"], rows["all"]["alarm_high"]) == share_interval(1, 6)
    assert rows["production"]["ratio"] == pytest.approx(math.exp((0.05 + 0.0501) / 6))
    assert rows["streaming"]["ratio"] == pytest.approx(math.exp(0.02))


def test_floor_is_how_far_the_two_names_come_apart_in_nearly_all_cells() -> None:
    rows = {row["family"]: row for row in zero(ratios(LOGS), LOGS, [("static-again", "static")])}
    assert rows["all"]["floor"] == pytest.approx(math.exp(0.05005))
    assert rows["consumption"]["floor"] == pytest.approx(math.exp(0.01))


def test_one_block_has_a_ratio_and_no_comparison() -> None:
    logs = [cell(1, 0.04)]
    (row, _) = zero(ratios(logs), logs, [("static-again", "static")])
    assert (row["comparisons"], row["false_alarms"], row["alarm_low"], row["floor"]) == (0, 0, None, None)
    assert (row["n"], row["low"]) == (1, None)


def test_run_without_two_names_has_no_zero() -> None:
    assert zero(ratios(LOGS), LOGS, []) == []
