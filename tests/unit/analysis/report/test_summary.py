from __future__ import annotations

import dataclasses

from analysis.findings import Findings
from analysis.report import summary
from tests import made_findings, made_records
from tests.made_findings import alone
from tests.made_records import MadeTrial


def test_summary_tells_what_is_not_valid_and_why(found: Findings) -> None:
    trust = " ".join(summary.summarise(found).trust)
    assert "59 of 60 trials balance" in trust
    assert "stored 29999 of 30000" in trust
    assert "of them shorter than 250 ms" in trust


def test_summary_gives_the_hypothesis_a_verdict(found: Findings) -> None:
    said = " ".join(summary.summarise(found).hypothesis)
    assert "holds in 16 of 16 published cells measured here" in said


def test_one_architecture_alone_is_told_by_its_own_rates(found: Findings) -> None:
    said = summary.as_text(summary.summarise(alone(found, "static")))
    assert "static: production" in said
    assert "coefficient of variation" in said
    assert "One architecture alone says nothing about what coordination costs" in said
    assert "the producer of static in 3 of 3 cells" in said


def test_run_without_a_valid_trial_says_so(found: Findings) -> None:
    trials = tuple({**row, "verdict": "failed", "reason": "port in use", "rps": None} for row in found.trials)
    none = dataclasses.replace(
        alone(found, "static"), trials=trials, cells=(), latency=(), over_time=(), resources=(), batches=()
    )
    assert "static has no valid trial, so no rate." in summary.as_text(summary.summarise(none))


def test_noisy_blocks_are_named(found: Findings) -> None:
    noisy = dataclasses.replace(found, trials=tuple({**row, "noisy": row["try"] == 2} for row in found.trials))
    assert any("block 2 differ by more than 15 %" in line for line in summary.summarise(noisy).trust)


def test_settings_that_differ_are_named(found: Findings) -> None:
    rows = tuple({**row, "cells_that_differ": 2 if row["setting"] == "fsync" else 0} for row in found.equality)
    said = summary.summarise(dataclasses.replace(found, equality=rows)).trust
    assert any(line.startswith("Not held equal between architectures: fsync") for line in said)


def test_what_a_system_does_not_count_is_said_to_be_not_known() -> None:
    told = summary.summarise(made_findings.foreign())
    why, trust = " ".join(told.why), " ".join(told.trust)
    assert "The brokers of kafka-kraft have no counters of coordination" in why
    assert "static made no coordination operation in the timed windows." in why
    assert "16 of 16 trials balance" in trust
    assert "(how much kafka-kraft stored is not known)" in trust
    assert "Not held equal between architectures: system, fsync." in trust


def test_the_distance_of_another_system_from_static_is_not_called_coordination() -> None:
    told = summary.summarise(made_findings.foreign())
    assert any("kafka-kraft is faster than dsbs in 4 of 4" in line for line in told.answer)
    (taxes,) = (line for line in told.answer if line.startswith("Against static"))
    assert taxes.endswith(": dsbs 17 % (17 to 17 %).")


def test_operations_are_told_without_waits_where_waits_are_not_counted(found: Findings) -> None:
    rows = tuple({**row, "wait_ms": None} for row in found.coordination)
    why = summary.summarise(dataclasses.replace(found, coordination=rows)).why
    assert any(line.endswith("(commit, lookup) for 1,000 messages.") for line in why)


def test_one_try_has_no_interval_and_the_sentence_says_so() -> None:
    once = made_findings.of(made for made in made_records.small_run() if made.try_ == 1)
    assert summary.summarise(once).answer[0] == (
        "dsbs and zookeeper cannot be told apart in any of 12 comparisons: with one try of each there is no interval."
    )


def test_a_block_without_two_valid_calibration_trials_is_named() -> None:
    lonely = made_findings.of([MadeTrial("static"), MadeTrial("dsbs", production_s=0.5)])
    said = summary.summarise(lonely).trust
    assert "Block 1 lacks two valid calibration trials, so its noise is not known." in said
