from __future__ import annotations

import dataclasses

import pytest

from analysis.findings import Findings
from analysis.report import rate_tables
from analysis.report.formats import to_csv
from tests import made_report


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


def test_a_comparison_says_its_verdict_in_words_and_what_to_know(steady: Findings) -> None:
    rows = rate_tables.comparison(steady).rows
    assert len(rows) == len(steady.ratios)
    words = {str(row["said"]).partition(":")[0] for row in rows}
    assert words == {"faster", "slower", "equal within 5 %", "undecided"}
    busy = [row for row in rows if (row["batch_size"], row["role"]) == (50, "production")]
    assert all("client-bound (producer of " in str(row["marks"]) for row in busy)


def test_a_comparison_with_too_little_has_no_ratio_and_no_tax(steady: Findings) -> None:
    empty = dict.fromkeys(("ratio", "low", "high", "sd", "degrees", "p", "rounds_more"))
    few = dataclasses.replace(
        steady, ratios=tuple({**row, **empty, "verdict": "too few", "equal": False} for row in steady.ratios)
    )
    table = rate_tables.comparison(few)
    assert {row["said"] for row in table.rows} == {"too few messages for a ratio"}
    assert ",,," in to_csv(table)
    assert rate_tables.coordination_tax(few).rows == ()


def test_pooled_ratios_are_of_rates_and_of_costs(steady: Findings) -> None:
    rows = rate_tables.pooled(steady).rows
    own = {
        row["what"]: row["said"]
        for row in rows
        if (row["architecture"], row["against"], row["family"]) == ("dsbs", "zookeeper", "streaming")
    }
    assert own == {"rates": "faster", "processor time a message": "cheaper"}


def test_the_zero_has_its_families_and_all(steady: Findings) -> None:
    rows = {row["family"]: row for row in rate_tables.zero(steady).rows}
    assert list(rows) == ["production", "consumption", "streaming", "all"]
    assert (rows["all"]["false_alarms"], rows["all"]["comparisons"], rows["all"]["floor"]) == (1, 21, 1.03)


def test_latency_under_load_is_in_milliseconds_and_by_load(steady: Findings) -> None:
    table = rate_tables.load(steady)
    first = table.rows[0]
    assert (first["load"], first["architecture"]) == (0.3, "zookeeper")
    assert first["ack_p50_ms"] == pytest.approx(0.684, abs=1e-3)
    sent = dataclasses.replace(steady, load=tuple({**row, "e2e_p50_us": None} for row in steady.load))
    assert {row["e2e_p50_ms"] for row in rate_tables.load(sent).rows} == {None}


def test_every_window_stands_with_its_marks(steady: Findings) -> None:
    rows = rate_tables.windows(steady).rows
    assert len(rows) == len(steady.windows)
    assert {row["marks"] for row in rows} >= {"", "disturbed", "unsettled"}
    again = tuple({**row, "used": False, "disturbed": False, "unsettled": False} for row in steady.windows)
    assert {row["marks"] for row in rate_tables.windows(dataclasses.replace(steady, windows=again)).rows} == {
        "not used"
    }
    assert [row["architecture"] for row in rows] == sorted(
        (str(row["architecture"]) for row in rows), key=made_report.NAMES.index
    )
