"""The record of a trial: what is counted while it runs, and its row, whatever came of it."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from tests.unit.workloads.run.plans import plan
from tests.unit.workloads.trial.records import load
from workloads.faults.injection import Done
from workloads.faults.script import Step
from workloads.results import history_schema, trial_schema, windows_type
from workloads.trial.record import FAILED, INVALID, Place, TrialRecord, Window

PLAN = plan()
TRIAL = PLAN.trials[0]
CUT = Window(Place(1, "production", round=1, attempt=1, place=2), 1_000, 2_000, load(0.5))
WHOLE = Window(Place(3, "consumption", round=2, attempt=2), None, None, load())


def filled() -> TrialRecord:
    record = TrialRecord(TRIAL, create_topic_s=0.1, connect_s=0.2, join_s=0.3)
    record.note_part({"sent": 200, "acknowledged": 190, "failed": {"X": 10}, "window_s": 2.0})
    record.note_part({"sent": 100, "acknowledged": 95, "failed": {"X": 3, "Y": 2}, "window_s": 1.0})
    record.note_part({"consumed": 80, "wrong_payloads": 1, "commits": 4, "window_s": 4.0})
    record.note_part({"consumed": 0, "wrong_payloads": 2, "commits": 0, "window_s": 0.0})
    record.windows += [CUT, WHOLE]
    record.verdict, record.reason = INVALID, "why"
    return record


def test_what_clients_did_in_each_window_adds_up() -> None:
    record = filled()
    assert (record.sent, record.acknowledged, record.consumed, record.wrong_payloads) == (300, 285, 80, 3)
    assert record.failed == {"X": 13, "Y": 2}


def test_a_row_has_every_column_of_the_schema_and_no_other() -> None:
    assert sorted(filled().row(PLAN)) == sorted(trial_schema().names)


def test_a_row_is_written_as_it_is() -> None:
    row = filled().row(PLAN)
    (read,) = pa.Table.from_pylist([row], schema=trial_schema()).to_pylist()
    assert read == {name: row[name] for name in trial_schema().names}


def test_a_window_is_a_row_with_its_place_its_stretch_and_what_the_machine_did() -> None:
    assert {field.name for field in windows_type()} == set(CUT.row())
    cut, whole = filled().row(PLAN)["windows"]
    assert cut == {
        "number": 1, "window": "production", "round": 1, "attempt": 1, "place": 2, "opened_ns": 1_000,
        "closed_ns": 2_000, "wall_s": 1.0, "cores": 2, "busy_cores": 1.5, "stolen_cores": 0.0, "foreign_cores": 0.5,
    }  # fmt: skip
    assert (whole["opened_ns"], whole["closed_ns"]) == (None, None)
    assert (whole["number"], whole["window"], whole["round"], whole["attempt"]) == (3, "consumption", 2, 2)


def test_a_row_says_what_was_audited_the_verdict_and_what_was_held_equal() -> None:
    record = filled()
    record.audited = {"sent": 300, "acknowledged": 290, "stored": 280, "consumed": 80}
    row = record.row(PLAN)
    assert {key: row[key] for key in ("sent", "acknowledged", "stored", "consumed")} == record.audited
    assert (row["verdict"], row["reason"], row["kind"]) == ("invalid", "why", "measured")
    assert (row["create_topic_s"], row["connect_s"], row["join_s"]) == (0.1, 0.2, 0.3)
    assert (row["trial_id"], row["cell"], row["architecture"]) == (TRIAL.id, TRIAL.cell.id, "static")
    assert (row["in_flight"], row["fetch_ahead"], row["rate"], row["load"]) == (5, 20, None, None)


def test_architectures_that_differ_in_name_alone_have_equal_settings_in_their_rows() -> None:
    names = "one: {coordinator: static}, other: {coordinator: static}, third: {coordinator: zookeeper}"
    of = plan(architectures=f"architectures: {{{names}}}")
    rows = {row["architecture"]: row for row in (TrialRecord(trial).row(of) for trial in of.trials)}
    assert rows["one"]["settings"] == rows["other"]["settings"]
    assert rows["one"]["settings"].startswith("static metadata=")
    assert rows["third"]["settings"].startswith("zookeeper metadata=")
    assert [rows[name]["architecture_rank"] for name in ("one", "other", "third")] == [0, 1, 2]


def test_the_rate_of_a_load_is_in_the_row_with_the_share_that_it_is() -> None:
    loaded = plan(
        experiments="experiments: {one: {message_size: 32B, batch_size: 10, mode: load, load: 60%}}",
        profile="{experiments: one, duration_s: 1, tries: 1}",
    )
    row = TrialRecord(loaded.trials[0], 1234.5).row(loaded)
    assert (row["mode"], row["load"], row["rate"]) == ("load", 0.6, 1234.5)


def test_a_trial_that_failed_keeps_what_it_had_in_its_row() -> None:
    record = filled()
    record.fail("broker-1 was ended")
    row = record.row(PLAN)
    assert (row["sent"], row["acknowledged"], row["stored"], row["consumed"]) == (300, 285, 0, 0)
    assert (row["verdict"], row["reason"], len(row["windows"])) == ("failed", "broker-1 was ended", 2)
    nothing = TrialRecord(TRIAL, verdict=FAILED, reason="the cluster did not start").row(PLAN)
    assert (nothing["windows"], nothing["sent"], nothing["connect_s"]) == ([], 0, None)


def test_a_trial_of_an_architecture_that_was_not_asked_for_ranks_behind_the_others() -> None:
    stranger = replace(TRIAL, architecture=replace(TRIAL.architecture, name="stranger"))
    assert TrialRecord(stranger).row(PLAN)["architecture_rank"] == 1


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
