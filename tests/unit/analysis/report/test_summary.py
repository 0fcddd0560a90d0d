from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from analysis.findings import Findings
from analysis.report import summary, tables
from tests import made_report
from tests.made_report import MANIFEST
from tests.unit.analysis.report.sentences import crowded


def told(found: Findings) -> summary.Summary:
    return summary.summarise(found, MANIFEST)


def alone(found: Findings, name: str) -> Findings:
    def only(rows: Any) -> Any:
        return tuple(row for row in rows if row["architecture"] == name)

    return dataclasses.replace(
        found, trials=only(found.trials), cells=only(found.cells), resources=only(found.resources), ratios=(),
        pooled=(), zero=(), load=only(found.load), coordination=(), batches=only(found.batches), paper_comparison=(),
    )  # fmt: skip


@pytest.mark.parametrize("older", [False, True])
def test_a_sentence_holds_at_most_two_numbers(steady: Findings, older: bool) -> None:
    found = made_report.older() if older else steady
    invalid = tuple({**row, "verdict": "failed"} if row["try"] == 1 else row for row in found.trials)
    rows = tuple({**row, "cells_that_differ": 2} for row in found.equality)
    bad = dataclasses.replace(found, trials=invalid, equality=rows)
    said = told(bad)
    assert len(said.warnings) >= 4
    assert [one for text in (*said.sentences, *said.older) for one in crowded(text)] == []


def test_the_sentences_under_tables_hold_at_most_two_numbers(steady: Findings) -> None:
    every = tables.every_table(steady)
    assert {table.name: found for table in every if (found := crowded(table.note))} == {}


def test_the_first_screen_says_machine_client_load_and_design_in_small(steady: Findings) -> None:
    facts = dict(told(steady).facts)
    assert facts["Machine"].startswith("2 cores, A processor, 8 GiB")
    assert facts["Client"] == "kafka (confluent-kafka 2.14.2)"
    assert facts["Load"] == ("5 requests in flight for each connection, 20 batches fetched ahead, windows of 0.250 s")
    assert facts["Design"].startswith("14 cells, 5 architectures, 3 blocks, 2 rounds in each")


def test_a_folder_that_says_little_has_few_facts(steady: Findings) -> None:
    little = dataclasses.replace(steady, equality=(), protocol={})
    assert [title for title, _ in summary.summarise(little).facts] == ["Design"]


def test_the_instruments_zero_is_told_with_its_floor(steady: Findings) -> None:
    zero = told(steady).zero
    assert zero is not None
    assert (zero.pair, zero.ratio, zero.alarms, zero.floor) == ("static-again / static", "1.00", "1 of 21", "3.0 %")
    assert zero.alarms_interval == "0.1 % to 23.8 %"


def test_a_run_without_an_aa_says_so(steady: Findings) -> None:
    blind = told(dataclasses.replace(steady, zero=()))
    assert blind.zero is None
    assert any("no A/A" in line for line in blind.warnings)
    assert not any("no A/A" in line for line in told(steady).warnings)


def test_what_left_the_rates_is_counted(steady: Findings) -> None:
    rows = tuple({**row, "verdict": "invalid"} if row["try"] == 1 else row for row in steady.trials)
    assert told(dataclasses.replace(steady, trials=rows)).warnings[0].startswith("70 of 210 trials do not balance")


def test_settings_that_differ_are_named(steady: Findings) -> None:
    rows = tuple({**row, "cells_that_differ": int(row["setting"] == "acks")} for row in steady.equality)
    warnings = told(dataclasses.replace(steady, equality=rows)).warnings
    assert any(line.startswith("Not held equal between architectures: acks.") for line in warnings)


def test_cells_that_are_undecided_are_counted_for_each_pair(steady: Findings) -> None:
    decided = tuple({**row, "verdict": "faster", "ratio": 2.0, "equal": False} for row in steady.ratios)
    assert told(dataclasses.replace(steady, ratios=decided)).warnings == ()
    open_ = tuple({**row, "verdict": "undecided", "equal": False} for row in steady.ratios)
    first = told(dataclasses.replace(steady, ratios=open_)).warnings[0]
    assert first == "dsbs / zookeeper: 28 of 28 comparisons of single cells are undecided."


def test_the_papers_hypothesis_and_order_are_told(steady: Findings) -> None:
    lines = told(steady).published
    assert lines[0].endswith("holds in 32 of 32 published cells measured here.")
    assert any("is not the paper's in production: rank correlation -0." in line for line in lines)
    assert told(dataclasses.replace(steady, paper_comparison=())).published == ()


def test_an_older_folder_says_what_its_protocol_could_not_know() -> None:
    said = told(made_report.older())
    assert [line.split(" ")[0:4] for line in said.older][2] == ["There", "was", "no", "A/A."]
    assert len(said.older) == 5


def test_one_architecture_alone_is_told_by_its_own_rates(steady: Findings) -> None:
    said = told(alone(steady, "static"))
    assert said.lines == ()
    assert said.rates[0].startswith("static: production ")
    assert "run a second one to compare" in said.rates[1]
    assert said.question == "One architecture measured: static"


def test_a_run_without_a_valid_trial_says_so(steady: Findings) -> None:
    none = dataclasses.replace(alone(steady, "static"), cells=(), load=())
    assert told(none).rates[0] == "static has no valid trial, so no rate."
    assert told(dataclasses.replace(none, trials=())).question == "Nothing measured"


def test_the_terminal_prints_the_same_answer_in_a_few_lines(steady: Findings) -> None:
    lines = summary.as_text(told(steady)).splitlines()
    assert lines[0].split() == ["ratio", "of", "rates", "produce", "consume", "streaming"]
    assert lines[1].startswith("dsbs / zookeeper ")
    assert "1.63 (1.60 to 1.66) faster" in lines[1]
    assert "A/A static-again / static: 1.00 (0.991 to 1.02); false alarms 1 of 21; no claim below 3.0 %" in lines
    assert len(lines) < 15
    older = summary.as_text(summary.summarise(made_report.older()))
    assert "of an older protocol" in older


def test_the_terminal_tells_one_architecture_by_its_rates(steady: Findings) -> None:
    assert summary.as_text(told(alone(steady, "dsbs"))).startswith("dsbs: production ")
