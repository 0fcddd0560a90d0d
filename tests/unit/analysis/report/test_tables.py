from __future__ import annotations

import dataclasses

from analysis.findings import Findings
from analysis.report import tables
from analysis.report.formats import Table


def by_name(found: Findings) -> dict[str, Table]:
    return {table.name: table for table in tables.every_table(found)}


def test_every_architecture_has_the_papers_table(found: Findings) -> None:
    names = set(by_name(found))
    assert {"zookeeper_performance", "dsbs_performance", "static_performance", "varying_batch_size"} <= names


def test_tables_without_rows_are_left_out(found: Findings) -> None:
    assert "paper_comparison" in by_name(found)
    assert "paper_comparison" not in by_name(dataclasses.replace(found, paper_comparison=()))


def test_column_of_other_axes_is_there_only_when_the_run_has_some(found: Findings) -> None:
    def has(table: Table) -> bool:
        return any(column.name == "others" for column in table.columns)

    assert not has(by_name(found)["cells"])
    swept = dataclasses.replace(found, cells=tuple({**row, "others": "brokers=5"} for row in found.cells))
    assert has(by_name(swept)["cells"])
