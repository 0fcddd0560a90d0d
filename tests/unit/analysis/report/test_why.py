from __future__ import annotations

import dataclasses

from analysis.findings import Findings
from analysis.report import why
from analysis.report.naming import names
from tests.made_report import MANIFEST


def table(found: Findings) -> dict[str, dict[str, object]]:
    rows = why.why(found, names(found.architectures, MANIFEST)).rows
    return {str(row["architecture"]): dict(row) for row in rows}


def test_the_table_has_a_row_for_each_architecture_of_the_answer(steady: Findings) -> None:
    rows = table(steady)
    assert list(rows) == ["zookeeper", "zookeeper-watch", "dsbs", "static"]
    assert rows["zookeeper"]["label"] == "ZooKeeper asked each time"
    assert rows["zookeeper"]["requests_production"] == 50.0
    assert rows["static"]["requests_consumption"] == 0
    assert rows["static"]["share_production"] == 0
    assert rows["dsbs"]["wait_us_production"] is None


def test_what_is_not_counted_stays_empty(steady: Findings) -> None:
    unknown = tuple(
        {**row, "cpu_us_per_message": None} if row["process"] == "broker" else row for row in steady.resources
    )
    uncounted = tuple({**row, "broker": None} for row in steady.batches)
    rows = table(dataclasses.replace(steady, resources=unknown, coordination=(), batches=uncounted))
    assert {row["cpu_us_production"] for row in rows.values()} == {None}
    assert {row["requests_production"] for row in rows.values()} == {None}


def test_a_run_without_a_cell_has_no_row(steady: Findings) -> None:
    assert why.why(dataclasses.replace(steady, cells=()), {}).rows == ()
