from __future__ import annotations

import math

import pytest

from analysis.statistics.pairs import family_of, logs, pairs, primary_of
from tests.unit.analysis.statistics.logs import CELL, PAIR, logs_of, run, window

FIVE = run({name: {1: 1.0} for name in ("static-again", "static", "dsbs", "zookeeper-watch", "zookeeper")})


def names(*primary: tuple[str, str]) -> set[tuple[str, str]]:
    return {pair.names for pair in pairs(FIVE, primary)}


def test_every_two_are_compared_once_against_the_control_or_the_one_named_before() -> None:
    assert names() == {
        *(("zookeeper-watch", "zookeeper"), ("dsbs", "zookeeper"), ("dsbs", "zookeeper-watch")),
        *((name, "static") for name in ("zookeeper", "zookeeper-watch", "dsbs", "static-again")),
        *(("static-again", name) for name in ("zookeeper", "zookeeper-watch", "dsbs")),
    }


def test_a_run_may_ask_in_another_direction_and_the_papers_is_kept_without() -> None:
    assert ("zookeeper", "zookeeper-watch") in names(("zookeeper", "zookeeper-watch"))
    swapped = [{**row, "architecture_rank": 4 - int(str(row["architecture_rank"]))} for row in FIVE]
    assert ("dsbs", "zookeeper") in {pair.names for pair in pairs(swapped)}


def test_primary_questions_are_those_of_the_run_or_the_papers_and_each_against_the_control() -> None:
    twins = [("static-again", "static")]
    assert primary_of(FIVE, [["dsbs", "static"], ["dsbs", "nobody"]]) == [("dsbs", "static")]
    assert primary_of(FIVE, [], twins) == [
        ("dsbs", "zookeeper"), ("dsbs", "zookeeper-watch"), ("dsbs", "static"), ("zookeeper", "static"),
        ("zookeeper-watch", "static"),
    ]  # fmt: skip
    assert primary_of(FIVE[:1], []) == []


def test_windows_pair_by_block_and_round_and_blocks_have_one_mean() -> None:
    rows = [
        *(window("dsbs", rps, block, turn) for rps, block, turn in ((2, 1, 1), (8, 1, 2), (3, 2, 1), (5, 3, 1))),
        *(window("zookeeper", rps, block, turn) for rps, block, turn in ((1, 1, 1), (2, 1, 2), (1, 2, 1), (1, 3, 2))),
    ]
    (found,) = logs(rows, "rps", [PAIR])
    assert found.blocks == {1: pytest.approx([math.log(2), math.log(4)]), 2: pytest.approx([math.log(3)])}
    assert found.means == pytest.approx((math.log(math.sqrt(8)), math.log(3)))
    assert (found.rounds, found.few, found.cell) == (3, 0, CELL)


def test_round_of_which_one_rate_does_not_count_is_left_out_and_counted() -> None:
    rows = [window("dsbs", 2.0, turn=turn) for turn in (1, 2, 3, 4)]
    rows += [window("zookeeper", None if turn > 2 else 1.0, turn=turn) for turn in (1, 2, 3)]
    (found,) = logs(rows, "rps", [PAIR])
    assert (found.rounds, found.few, found.too_few) == (2, 1, False)
    assert logs_of([[0.1]], few=2).too_few
    assert not logs_of([[0.1]], few=1).too_few


def test_without_a_common_round_or_at_a_fixed_load_there_is_no_comparison() -> None:
    assert logs(run({"dsbs": {1: 1.0}, "zookeeper": {2: 1.0}}), "rps", [PAIR]) == []
    assert logs(run({"dsbs": {1: 1.0}, "zookeeper": {1: 1.0}}, mode="load"), "rps", [PAIR]) == []


def test_order_of_the_windows_changes_nothing() -> None:
    rows = [row for cell in "abc" for row in run({"dsbs": {1: 0.3, 2: 0.7}, "zookeeper": {1: 0.1, 2: 0.9}}, cell=cell)]
    assert logs(rows, "rps", [PAIR]) == logs(rows[::-1], "rps", [PAIR])


@pytest.mark.parametrize(
    ("mode", "role", "family"),
    [
        ("split", "production", "production"), ("split", "consumption", "consumption"),
        ("streaming", "consumption", "streaming"), ("streaming", "production", None), ("load", "production", None),
    ],
)  # fmt: skip
def test_streaming_is_answered_by_the_messages_that_went_all_the_way(mode: str, role: str, family: str | None) -> None:
    assert family_of({"mode": mode, "role": role}) == family
