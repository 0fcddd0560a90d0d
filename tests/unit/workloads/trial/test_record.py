"""The record of a trial: its rates, its row whatever came of it, and the same under another trial's name."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.unit.workloads.run.plans import plan
from workloads.faults.injection import Done
from workloads.faults.script import Step
from workloads.results import history_schema, request_schema, trial_schema
from workloads.trial.record import FAILED, INVALID, Size, TrialRecord

PLAN = plan()
TRIAL, OTHER = PLAN.trials[:2]


def filled() -> TrialRecord:
    record = TrialRecord(TRIAL, Size(300, 200), create_topic_s=0.1, connect_s=0.2, join_s=0.3)
    record.produced = [
        {"sent": 200, "acknowledged": 190, "window_s": 2.0},
        {"sent": 100, "acknowledged": 100, "window_s": 1.0},
    ]
    record.consumed = [{"consumed": 80, "window_s": 4.0}, {"consumed": 0, "window_s": 0.0}]
    record.verdict, record.reason = INVALID, "why"
    return record


def test_rates_are_of_all_clients_together_over_the_longest_of_their_windows() -> None:
    assert filled().rates() == (145.0, 20.0)
    assert TrialRecord(TRIAL).rates() == (0.0, 0.0)


def test_a_row_has_every_column_of_the_schema_and_no_other() -> None:
    assert sorted(filled().row(PLAN)) == sorted(trial_schema().names)


def test_a_row_says_what_was_asked_for_what_was_audited_and_the_verdict() -> None:
    record = filled()
    record.audited = {"sent": 300, "acknowledged": 290, "stored": 280, "consumed": 80}
    row = record.row(PLAN)
    assert {key: row[key] for key in ("messages", "to_consume", "sent", "acknowledged", "stored", "consumed")} == {
        "messages": 300, "to_consume": 200, "sent": 300, "acknowledged": 290, "stored": 280, "consumed": 80,
    }  # fmt: skip
    assert (row["verdict"], row["reason"]) == ("invalid", "why")
    assert (row["create_topic_s"], row["connect_s"], row["join_s"]) == (0.1, 0.2, 0.3)
    assert (row["trial_id"], row["cell"], row["architecture"]) == (TRIAL.id, TRIAL.cell.id, "static")


def test_a_trial_that_failed_keeps_what_it_had_in_its_row() -> None:
    record = filled()
    record.verdict = FAILED
    row = record.row(PLAN)
    assert (row["sent"], row["acknowledged"], row["stored"], row["consumed"]) == (300, 290, 0, 0)
    nothing = TrialRecord(TRIAL, verdict=FAILED, reason="the cluster did not start").row(PLAN)
    assert (nothing["messages"], nothing["sent"], nothing["connect_s"]) == (0, 0, None)


def test_what_is_known_stands_under_another_trials_name_and_the_first_keeps_its_own() -> None:
    record = filled()
    requests = pa.Table.from_pylist([{"trial_id": TRIAL.id, "role": "producer"}], schema=request_schema())
    record.requests, record.latency = requests, [{"trial_id": TRIAL.id, "client": 0}]
    again = record.under(OTHER)
    assert again.row(PLAN)["trial_id"] == OTHER.id
    assert again.rates() == record.rates()
    assert again.requests is not None
    assert again.requests.column("trial_id").to_pylist() == [OTHER.id]
    assert [row["trial_id"] for row in again.latency] == [OTHER.id]
    assert (record.trial, record.requests.column("trial_id").to_pylist()) == (TRIAL, [TRIAL.id])


@pytest.mark.parametrize("written", [True, False])
def test_steps_of_a_script_stand_behind_the_clients_history_or_alone(*, written: bool) -> None:
    record = filled()
    one = {"trial_id": TRIAL.id, "operation": "send", "messages": 1}
    record.history = pa.Table.from_pylist([one], schema=history_schema()) if written else None
    record.note_steps([])
    assert (record.history is not None) == written
    record.note_steps([Done(Step("both", "kill", "broker-1"), 1, 2)])
    assert record.history is not None
    assert record.history.column("operation").to_pylist() == [*(["send"] if written else []), "kill"]
