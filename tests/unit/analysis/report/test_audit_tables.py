from __future__ import annotations

import dataclasses

import pytest

from analysis.findings import Findings
from analysis.report import audit_tables
from analysis.report.formats import to_csv
from tests import made_findings


def test_audit_has_one_row_a_trial_with_marks_and_reason(found: Findings) -> None:
    rows = audit_tables.audit(found).rows
    assert len(rows) == 3 * 3 * 6
    (bad,) = (row for row in rows if row["verdict"] != "valid")
    assert (bad["reason"], bad["architecture"], bad["try"]) == ("stored 29999 of 30000", "dsbs", 2)
    short = tuple({**row, "short_window": row["architecture"] == "dsbs", "noisy": True} for row in found.trials)
    marked = audit_tables.audit(dataclasses.replace(found, trials=short)).rows
    assert {(row["architecture"] == "dsbs", row["marks"]) for row in marked} == {
        (True, "short window, noisy block"),
        (False, "noisy block"),
    }


def test_what_was_not_read_of_the_logs_is_an_empty_cell() -> None:
    lines = to_csv(audit_tables.audit(made_findings.foreign())).splitlines()
    place = lines[0].split(",").index("stored")
    stored = {line.split(",")[place] for line in lines if ",kafka-kraft," in line}
    assert stored == {""}


def test_a_setting_that_differs_says_in_how_many_cells(found: Findings) -> None:
    assert {row["equal"] for row in audit_tables.equality(found).rows} == {"yes"}
    rows = {row["setting"]: row for row in audit_tables.equality(made_findings.foreign()).rows}
    assert rows["fsync"]["found"] == "never, not known"
    assert rows["fsync"]["equal"] == rows["system"]["equal"] == "differs in 2 cells"


def test_the_papers_ratios_stand_beside_those_of_the_run(found: Findings) -> None:
    rows = audit_tables.paper_comparison(found).rows
    assert len(rows) == 12
    assert {row["hypothesis"] for row in rows} == {"holds"}
    line = next(row for row in audit_tables.published_beside(found).rows if row["batch_size"] == 1)
    assert (line["production_ratio"], line["consumption_ratio"]) == pytest.approx((2.0, 2.0))
    assert line["production_published"] == pytest.approx(1.0, abs=0.05)
    order = audit_tables.paper_order(dataclasses.replace(found, paper_comparison=(), cells=()))
    assert order.rows == ()
