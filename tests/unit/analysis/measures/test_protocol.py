from __future__ import annotations

from analysis.findings import Findings
from analysis.measures.protocol import precision, protocol
from tests import made_findings, made_records

MANIFEST = {
    "effort": {"tries": 3, "rounds": 2, "budget_s": 600, "precision": 0.2}, "length": {"duration_s": 0.25},
    "spent": {"windows": 10.5, "audits": 2.0}, "primary": [["zookeeper", "static"]],
}  # fmt: skip


def test_facts_come_from_the_records_and_from_the_manifest_where_only_that_tells() -> None:
    facts = made_findings.of(made_records.rounds_run(), MANIFEST).protocol
    assert (facts["schema_version"], facts["rounds"], facts["blocks"], facts["cores"]) == (3, [2, 2], 3, 2)
    assert (facts["in_flight"], facts["fetch_ahead"]) == ([5], [20])
    assert [facts[name] for name in ("budget_s", "spent_s", "precision", "duration_s")] == [600, 12.5, 0.2, 0.25]
    assert facts["primary"] == [["zookeeper", "static"]]
    assert 0.2 < facts["window_s"] < 0.3


def test_marks_count_windows_and_not_their_two_ends() -> None:
    found = made_findings.rounds()
    facts = found.protocol
    rows = [row for row in found.windows if row["used"]]
    assert facts["windows"] == len({(row["trial_id"], row["number"]) for row in rows}) < len(rows)
    assert (facts["disturbed"], facts["few"], facts["unsettled"], facts["unknown"]) == (4, 6, 0, 0)


def test_what_is_not_known_is_empty(found: Findings) -> None:
    assert [found.protocol[name] for name in ("window_s", "budget_s", "spent_s", "precision", "duration_s")] == [
        None
    ] * 5
    empty = protocol([], [], [], {})
    assert (empty["schema_version"], empty["rounds"], empty["cores"]) == (None, [], None)


def test_precision_is_a_tenth_unless_the_run_asked_otherwise() -> None:
    assert (precision({}), precision({"effort": None}), precision(MANIFEST)) == (0.1, 0.1, 0.2)
