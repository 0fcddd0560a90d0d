from __future__ import annotations

import pytest

from analysis.findings import Findings
from analysis.report import cost_tables
from analysis.report.formats import to_csv
from tests import made_findings


def test_a_requests_time_is_data_path_and_coordination(found: Findings) -> None:
    table = cost_tables.request_times(found)
    (row,) = (
        row
        for row in table.rows
        if (row["architecture"], row["batch_size"], row["window"]) == ("zookeeper", 1, "production")
    )
    parts = (row["request_us"], row["data_us"], row["coordination_us"])
    assert parts == pytest.approx((10 * 1.02, 4 * 1.02, 6 * 1.02), rel=1e-3)
    assert "The ratios are to zookeeper" in table.note


def test_a_coordination_request_has_a_row_where_a_coordinator_is_asked_about_every_request(found: Findings) -> None:
    rows = cost_tables.coordination_request(found).rows
    assert {row["architecture"] for row in rows} == {"zookeeper"}
    assert all(row["rest_us"] == pytest.approx(500 - 60 - 120) for row in rows)


def test_what_a_system_cannot_give_is_an_empty_cell_and_not_a_zero() -> None:
    foreign = made_findings.foreign()
    assert "kafka-kraft" not in to_csv(cost_tables.coordination_cost(foreign))
    assert "kafka-kraft" not in to_csv(cost_tables.request_times(foreign))
    lines = [line for line in to_csv(cost_tables.batches(foreign)).splitlines() if line.startswith("kafka-kraft")]
    assert lines
    assert all(line.endswith(",20.0,") for line in lines)
    brokers = [line for line in to_csv(cost_tables.resources(foreign)).splitlines() if "kafka-kraft" in line]
    assert {line.partition("broker")[2] for line in brokers if "broker" in line} == {"," * 8}


def test_tables_come_by_architecture_in_the_order_of_the_experiments(found: Findings) -> None:
    names = list(dict.fromkeys(row["architecture"] for row in cost_tables.resources(found).rows))
    assert names == ["zookeeper", "dsbs", "static"]
