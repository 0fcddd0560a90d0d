from __future__ import annotations

import dataclasses

import pytest

from analysis.findings import Findings
from analysis.report import rate_tables


def test_coordination_tax_is_what_is_missing_to_the_rate_of_static(found: Findings) -> None:
    rows = list(rate_tables.taxes(found))
    assert {row["architecture"]: row["tax"] for row in rows} == pytest.approx({"zookeeper": 0.6, "dsbs": 0.2})
    assert all(row["low"] <= row["tax"] <= row["high"] for row in rows)


def test_comparison_names_every_pair_once(found: Findings) -> None:
    pairs = {(row["architecture"], row["against"], row["verdict"]) for row in rate_tables.comparison(found).rows}
    assert pairs == {
        ("dsbs", "zookeeper", "faster"),
        ("dsbs", "static", "slower"),
        ("zookeeper", "static", "slower"),
    }


def test_cells_in_which_a_process_used_a_whole_core_are_marked(found: Findings) -> None:
    full = {row["architecture"]: row for row in found.resources if row["process"] == "producer"}
    assert full["static"]["cores_busiest"] > 0.9
    rows = [row for row in rate_tables.cells(found).rows if row["architecture"] == "static" and row["mode"] == "split"]
    assert {row["role"]: row["saturated"] for row in rows} == {"production": "producer", "consumption": "consumer"}
    idle = dataclasses.replace(found, resources=tuple({**row, "cores_busiest": 0.89} for row in found.resources))
    assert {row["saturated"] for row in rate_tables.cells(idle).rows} == {""}


def test_a_ratio_says_which_of_its_two_architectures_was_held_up_by_a_process(found: Findings) -> None:
    only = dataclasses.replace(
        found,
        resources=tuple(
            {**row, "cores_busiest": 0.95 if (row["architecture"], row["process"]) == ("dsbs", "producer") else 0.1}
            for row in found.resources
        ),
    )
    rows = [row for row in rate_tables.comparison(only).rows if (row["role"], row["mode"]) == ("production", "split")]
    marks = {(row["architecture"], row["against"]): row["saturated"] for row in rows}
    assert marks["dsbs", "zookeeper"] == "producer of dsbs"
    assert all(mark == "producer of dsbs" for names, mark in marks.items() if "dsbs" in names)
    assert all(mark == "" for names, mark in marks.items() if "dsbs" not in names)
