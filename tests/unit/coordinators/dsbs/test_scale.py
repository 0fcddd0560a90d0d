from __future__ import annotations

import csv
from argparse import ArgumentParser
from pathlib import Path

import pytest

from coordinators.dsbs.simulation.scale import costs
from workloads.commands import scale, tables
from workloads.scale import Row, Size, along, by_rule


@pytest.mark.parametrize("brokers", [3, 10])
def test_a_topic_costs_one_push_and_one_acknowledgement_for_each_peer(brokers: int) -> None:
    created = costs(brokers, 2, 0, seed=1)[0]
    assert created.by_kind["push"][0] == created.by_kind["known"][0] == brokers - 1


def test_the_same_seed_counts_the_same() -> None:
    assert costs(4, 3, 2, seed=5) == costs(4, 3, 2, seed=5)


def test_in_a_crowd_a_broker_says_as_much_as_before_when_the_crowd_grows() -> None:
    small, large = costs(60, 2, 0, seed=1), costs(120, 2, 0, seed=1)
    assert large[0].heartbeats_per_s / 120 == pytest.approx(small[0].heartbeats_per_s / 60, rel=0.1)
    assert large[0].messages / 120 == pytest.approx(small[0].messages / 60, rel=0.2)


def test_zookeepers_rules_count_requests_answers_and_watches() -> None:
    created, dies, joins = by_rule(Size(3, 10, 10))
    assert created.messages == 2 * (2 + 3 * 5) + 3
    assert dies.messages == 2 * (2 * 3 + 10 * 3) + 2 + 20
    assert joins.messages == 2 * (5 + 3 + 40 + 2 * 4) + 2
    assert {row.source for row in (created, dies, joins)} == {"measured"}
    assert {row.source for row in by_rule(Size(4, 10, 10))} == {"extrapolated"}


def test_along_an_axis_nothing_else_differs() -> None:
    rows = [row for size in ("3x10x10", "5x10x10", "5x1x10") for row in by_rule(Size(*map(int, size.split("x"))))]
    assert [row.brokers for row in along(rows, "brokers", Size(5, 10, 10), "broker dies")] == [3, 5]


def test_the_command_prints_and_writes_what_it_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scale, "TOPICS", (10,))
    monkeypatch.setattr(scale, "GROUPS", (10,))
    parser = ArgumentParser()
    scale.add_arguments(parser)
    assert scale.run(parser.parse_args(["--brokers", "3", "--out", str(tmp_path)])) == 0
    with (tmp_path / "scale.csv").open() as source:
        rows = list(csv.DictReader(source))
    assert {(row["architecture"], row["source"]) for row in rows} == {("dsbs", "simulated"), ("zookeeper", "measured")}
    assert set(rows[0]) == set(Row.__dataclass_fields__)
    assert (tmp_path / "scale-brokers.png").stat().st_size > 0
    assert "topic created" in capsys.readouterr().out


def test_tables_are_drawn_as_the_paper_draws_them() -> None:
    drawn = tables.shown(
        {
            "hash": "00ff",
            "partitions": [{"topic": "orders", "partition": 0, "broker": 2, "epoch": 1}],
            "offsets": [{"consumer": "readers", "topic": "orders", "partition": 0, "offset": "7"}],
            "brokers": [{"broker": 1, "address": "h:1", "status": "alive", "incarnation": "1"}],
            "refused": {},
        }
    )
    assert drawn == (
        "tables 00ff\n\n"
        "topic  | partition | broker | epoch\n"
        "-------+-----------+--------+------\n"
        "orders | 0         | 2      | 1\n\n"
        "consumer | topic  | partition | offset\n"
        "---------+--------+-----------+-------\n"
        "readers  | orders | 0         | 7\n\n"
        "broker | address | status | incarnation\n"
        "-------+---------+--------+------------\n"
        "1      | h:1     | alive  | 1"
    )
