from __future__ import annotations

import dataclasses

from analysis.findings import Findings
from analysis.report import answer
from analysis.report.naming import names
from tests import made_report
from tests.made_report import MANIFEST


def lines(found: Findings) -> dict[tuple[str, str], answer.Line]:
    return {line.pair: line for line in answer.lines(found, names(found.architectures, MANIFEST))}


def test_the_primary_pairs_come_first_then_each_one_beside_no_coordination_and_the_aa_not_at_all(
    steady: Findings,
) -> None:
    assert answer.pairs(steady) == (
        ("dsbs", "zookeeper"),
        ("dsbs", "zookeeper-watch"),
        ("zookeeper", "static"),
        ("zookeeper-watch", "static"),
        ("dsbs", "static"),
    )


def test_a_run_that_names_no_primary_pair_opens_with_the_papers() -> None:
    assert answer.pairs(made_report.older())[0] == ("dsbs", "zookeeper")


def test_a_run_without_the_papers_pair_shows_what_it_has(steady: Findings) -> None:
    rows = tuple(row for row in steady.pooled if (row["architecture"], row["against"]) == ("dsbs", "zookeeper-watch"))
    other = dataclasses.replace(steady, pooled=rows, zero=(), protocol={})
    assert answer.pairs(other) == (("dsbs", "zookeeper-watch"),)


def test_an_architecture_that_nobody_asked_about_stands_beside_all_others(steady: Findings) -> None:
    foreign = tuple(
        {**row, "architecture": "kafka-kraft", "primary": False}
        for row in steady.pooled
        if (row["architecture"], row["against"]) in (("dsbs", "zookeeper"), ("dsbs", "zookeeper-watch"))
    )
    primary = tuple(row for row in steady.pooled if row["primary"])
    other = dataclasses.replace(steady, pooled=(*primary, *foreign), zero=())
    assert answer.pairs(other)[2:] == (("kafka-kraft", "zookeeper"), ("kafka-kraft", "zookeeper-watch"))


def test_a_line_has_a_ratio_for_each_family_with_interval_verdict_and_count(steady: Findings) -> None:
    line = lines(steady)["dsbs", "zookeeper"]
    assert line.label == "DSBS / ZooKeeper asked each time"
    assert [one.family for one in line.rates if one] == ["produce", "consume", "streaming"]
    first = line.rates[0]
    assert first is not None
    assert (first.ratio, first.verdict.words, first.count) == ("1.63", "faster", "7 cells, 3 blocks")
    assert first.interval == "1.60 to 1.66"
    assert [one.verdict.words for one in line.processor if one] == ["cheaper"] * 3


def test_a_family_that_was_not_measured_has_an_empty_place(steady: Findings) -> None:
    split = dataclasses.replace(steady, pooled=tuple(row for row in steady.pooled if row["family"] != "streaming"))
    assert lines(split)["dsbs", "zookeeper"].rates[2] is None


def test_cells_that_a_block_lacks_are_told(steady: Findings) -> None:
    lacking = dataclasses.replace(steady, pooled=tuple({**row, "left_out": 2} for row in steady.pooled))
    first = lines(lacking)["dsbs", "zookeeper"].rates[0]
    assert first is not None
    assert first.cautions[0] == "without 2 cells that a block lacks"


def test_coordination_requests_and_latency_are_of_one_cell(steady: Findings) -> None:
    assert answer.reference_cell(steady) == ("", 20, 32, "split")
    assert answer.load_cell(steady) == (32, 20)
    line = lines(steady)["dsbs", "zookeeper"]
    assert line.requests == (("dsbs", "8.00"), ("zookeeper", "100"))
    assert dict(line.latency)["dsbs"] == "1.56, 8.25 ms"
    assert dict(lines(steady)["dsbs", "static"].requests)["static"] == "0"


def test_without_a_load_there_is_no_latency(steady: Findings) -> None:
    unloaded = dataclasses.replace(steady, load=())
    assert answer.load_cell(unloaded) is None
    assert {line.latency for line in lines(unloaded).values()} == {()}


def test_two_that_promise_different_things_are_said_to(steady: Findings) -> None:
    assert lines(steady)["dsbs", "zookeeper"].note == "their commits promise different things"
    same = {"architectures": [{"name": name, "row": "dsbs", "offsets": "memory"} for name in made_report.NAMES]}
    assert {line.note for line in answer.lines(steady, names(steady.architectures, same))} == {""}
