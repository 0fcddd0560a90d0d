from __future__ import annotations

import dataclasses

import pytest

from analysis.findings import Findings
from analysis.report import appendix
from analysis.report.formats import sections, to_markdown


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
