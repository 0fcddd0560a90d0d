from __future__ import annotations

import dataclasses

import pytest

from analysis.findings import Findings
from analysis.report import appendix, tables
from analysis.report.formats import Table, sections, to_markdown

pytestmark = pytest.mark.java


def by_name(found: Findings) -> dict[str, Table]:
    return {table.name: table for table in tables.every_table(found)}


def test_every_architecture_has_the_papers_table(found: Findings) -> None:
    names = set(by_name(found))
    assert {"zookeeper_performance", "dsbs_performance", "static_performance", "varying_batch_size"} <= names


def test_performance_has_tries_and_average_down_and_sizes_across(found: Findings) -> None:
    table = appendix.performance(found, "zookeeper")
    assert [column.name for column in table.columns[-2:]] == ["8", "32"]
    parts = {heading: rows for heading, _, rows in sections(table)}
    assert list(parts) == [
        "batch size 20, split, production",
        "batch size 20, split, consumption",
        "batch size 20, streaming, production",
        "batch size 20, streaming, consumption",
    ]
    rows = parts["batch size 20, split, production"]
    assert [(row["metric"], row["try"]) for row in rows] == [
        (unit, number) for unit in ("messages/s", "KB/s") for number in ("1", "2", "3", "avg")
    ]
    first, average = rows[0], rows[3]
    assert first["8"] == pytest.approx(100_000 / 1.01)
    assert average["32"] == pytest.approx(sum(100_000 / (1 + n / 100) for n in (1, 2, 3)) / 3)
    assert rows[4]["32"] == pytest.approx(100_000 / 1.01 * 32 / 1000)


def test_invalid_try_is_shown_as_such_and_leaves_the_average(found: Findings) -> None:
    table = appendix.performance(found, "dsbs")
    rows = {row["try"]: row for heading, _, rows in sections(table) for row in rows[:4] if "split, prod" in heading}
    assert rows["2"]["8"] == "invalid"
    assert rows["avg"]["8"] == pytest.approx((200_000 / 1.01 + 200_000 / 1.03) / 2)
    assert "| invalid |" in to_markdown(table)


def test_varying_batch_size_has_batches_across_for_every_architecture(found: Findings) -> None:
    table = appendix.varying_batch_size(found)
    assert [column.name for column in table.columns[-2:]] == ["1", "20"]
    assert {row["message_size"] for row in table.rows} == {32}
    assert list(dict.fromkeys(row["architecture"] for row in table.rows)) == ["zookeeper", "dsbs", "static"]


def test_run_without_a_sweep_still_has_its_table(found: Findings) -> None:
    one = dataclasses.replace(
        found,
        trials=tuple(row for row in found.trials if row["batch_size"] == 1),
        cells=tuple(row for row in found.cells if row["batch_size"] == 1),
    )
    assert len(appendix.performance(one, "dsbs").rows) == 2 * 2 * 2 * 4
    assert appendix.varying_batch_size(one).rows == ()


def test_coordination_tax_is_what_is_missing_to_the_rate_of_static(found: Findings) -> None:
    rows = list(tables.taxes(found))
    assert {row["architecture"]: row["tax"] for row in rows} == pytest.approx({"zookeeper": 0.6, "dsbs": 0.2})
    assert all(row["low"] <= row["tax"] <= row["high"] for row in rows)


def test_comparison_names_every_pair_once(found: Findings) -> None:
    pairs = {(row["architecture"], row["against"], row["verdict"]) for row in tables.comparison(found).rows}
    assert pairs == {
        ("dsbs", "zookeeper", "faster"),
        ("dsbs", "static", "slower"),
        ("zookeeper", "static", "slower"),
    }


def test_audit_has_one_row_a_trial_calibrations_too_with_marks_and_reason(found: Findings) -> None:
    rows = tables.audit(found).rows
    assert len(rows) == 3 * 3 * 6 + 6
    (bad,) = (row for row in rows if row["verdict"] != "valid")
    assert (bad["reason"], bad["architecture"], bad["try"]) == ("stored 29999 of 30000", "dsbs", 2)
    assert {row["marks"] for row in rows if row["architecture"] == "dsbs"} == {"short window"}


def test_tables_without_rows_are_left_out(found: Findings) -> None:
    assert "paper_comparison" in by_name(found)
    assert "paper_comparison" not in by_name(dataclasses.replace(found, paper_comparison=()))


def test_column_of_other_axes_is_there_only_when_the_run_has_some(found: Findings) -> None:
    def has(table: Table) -> bool:
        return any(column.name == "others" for column in table.columns)

    assert not has(by_name(found)["cells"])
    swept = dataclasses.replace(found, cells=tuple({**row, "others": "brokers=5"} for row in found.cells))
    assert has(by_name(swept)["cells"])


def test_cells_in_which_a_process_used_a_whole_core_are_marked(found: Findings) -> None:
    full = {row["architecture"]: row for row in found.resources if row["process"] == "producer"}
    assert full["static"]["cores_busiest"] > 0.9
    rows = [row for row in tables.cells(found).rows if row["architecture"] == "static" and row["mode"] == "split"]
    assert {row["role"]: row["saturated"] for row in rows} == {"production": "producer", "consumption": "consumer"}
    idle = dataclasses.replace(found, resources=tuple({**row, "cores_busiest": 0.89} for row in found.resources))
    assert {row["saturated"] for row in tables.cells(idle).rows} == {""}


def test_a_ratio_says_which_of_its_two_architectures_was_held_up_by_a_process(found: Findings) -> None:
    only = dataclasses.replace(
        found,
        resources=tuple(
            {**row, "cores_busiest": 0.95 if (row["architecture"], row["process"]) == ("dsbs", "producer") else 0.1}
            for row in found.resources
        ),
    )
    rows = [row for row in tables.comparison(only).rows if (row["role"], row["mode"]) == ("production", "split")]
    marks = {(row["architecture"], row["against"]): row["saturated"] for row in rows}
    assert marks["dsbs", "zookeeper"] == "producer of dsbs"
    assert all(mark == "producer of dsbs" for names, mark in marks.items() if "dsbs" in names)
    assert all(mark == "" for names, mark in marks.items() if "dsbs" not in names)
