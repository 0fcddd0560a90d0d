from __future__ import annotations

from typing import Any

from analysis import two_runs

MANIFEST: dict[str, Any] = {
    "machine": {"cores": 2, "processor": "A", "load_at_start": 0.1},
    "versions": {"Java": "17", "Python": "3.11"},
    "commit": "abc",
    "spec_hash": "1",
    "cells": [1],
    "length": {"messages": 5},
}


def warned(**changes: Any) -> str:
    return "\n".join(two_runs.warnings(("one", "two"), (MANIFEST, MANIFEST | changes)))


def test_runs_of_one_machine_and_spec_have_no_warning_whatever_the_load() -> None:
    assert warned(machine=MANIFEST["machine"] | {"load_at_start": 7.0}) == ""


def test_machines_versions_code_and_specs_that_differ_are_named() -> None:
    assert warned(machine={"cores": 8, "processor": "A"}) == "machines differ: cores 2 and 8"
    assert warned(versions={"Java": "21"}) == "versions differ: Java 17 and 21; Python 3.11 and unknown"
    assert warned(commit="abc+changes") == "the code differs: commit abc and abc+changes"
    assert warned(spec_hash="2", cells=[1, 2]) == "specs differ: cells"
    assert warned(spec_hash="2") == "specs differ"


def test_run_without_a_manifest_is_said_to_be_unknown() -> None:
    assert two_runs.warnings(("one", "two"), (MANIFEST, None)) == (
        "where two was made is not known: it has no manifest.json",
    )


def rate(verdict: str, ratio: float) -> dict[str, Any]:
    return {
        "architecture": "dsbs", "architecture_rank": 1, "others": "", "message_size": 8, "batch_size": 20,
        "mode": "split", "role": "production", "ratio": ratio, "verdict": verdict,
    }  # fmt: skip


def test_sentences_count_verdicts() -> None:
    rates = [rate("faster", 1.5), rate("faster", 2.0), rate("undecided", 1.0)]
    pair = {"against": "zookeeper", "against_rank": 0}
    ratios = [
        rate("slower", 0.5) | pair | {"verdict_first": "faster", "verdict_second": "slower"},
        rate("undecided", 1.0) | pair | {"verdict_first": "faster", "verdict_second": "faster"},
    ]
    said = two_runs.sentences(two_runs.compared(("one", "two"), (), rates, ratios))
    assert len(said) == 2
    assert said[0].startswith(
        "dsbs: of 3 rates, two is faster in 2 (1.50 to 2.00 times) and slower in 0 than one; in 1 "
    )
    assert said[1].startswith("dsbs against zookeeper: both runs say the same in 1 of 2 cells, the opposite in 1; ")
    assert said[1].endswith("the size of the ratio differs by more than chance in 1.")
