"""Faults on a real cluster in the middle of a trial: the script is carried out, the history says when, and the audit
tells what came of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.integration.runs.short_runs import ONE_TRIAL, rows, run_here
from tests.unit.workloads.run.plans import plan
from workloads.faults.script import Script, ScriptRefused, parse
from workloads.results import HISTORY, history_schema
from workloads.run.runner import Summary
from workloads.spec.plan import Plan

MESSAGES = 1000
DRIVERS = ("grpc", "kafka")


def paced(driver: str, mode: str = "split") -> Plan:
    """A trial of about a second of production."""
    cell = f"message_size: 32B, batch_size: 10, rate: 1000, mode: {mode}, driver: {driver}"
    return plan(
        experiments=f"experiments: {{one: {{{cell}}}}}",
        profile=f"{{experiments: one, messages: {MESSAGES}, tries: 1}}",
    )


def step(do: str, at: str = "production", **moment: float) -> dict[str, Any]:
    return {"at": at, "do": do, "node": "broker-2", **moment}


def outcome(folder: Path, of: Plan, script: Script) -> dict[str, Any]:
    run_here(folder, of, script=script)
    (row,) = rows(folder).values()
    return row


def history(folder: Path) -> list[dict[str, Any]]:
    table = pq.read_table(folder / HISTORY)
    assert table.schema.equals(history_schema())
    found: list[dict[str, Any]] = table.to_pylist()
    return found


def messages(operations: list[dict[str, Any]], operation: str, outcome: str = "ok") -> int:
    chosen = [row for row in operations if (row["operation"], row["outcome"]) == (operation, outcome)]
    return sum(row["messages"] for row in chosen)


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("mode", ["split", "streaming"])
def test_a_history_has_every_message_sent_and_read_and_is_written_only_where_it_is_asked_for(
    tmp_path: Path, driver: str, mode: str
) -> None:
    of = plan(
        experiments=f"experiments: {{one: {{message_size: 32B, batch_size: 10, mode: {mode}, driver: {driver}}}}}",
        profile="{experiments: one, messages: 200, tries: 1}",
    )
    assert run_here(tmp_path / "with", of, history=True) == Summary(valid=1, invalid=0, failed=0)
    found = history(tmp_path / "with")
    assert messages(found, "send") == messages(found, "read") == 200
    assert all(row["invoked_ns"] <= row["done_ns"] for row in found)
    for partition in {row["partition"] for row in found}:
        sent, read = (
            {
                row["first"] + at: row["offset"] + at
                for row in found
                if (row["operation"], row["partition"]) == (operation, partition)
                for at in range(row["messages"])
            }
            for operation in ("send", "read")
        )
        assert sent == read, "each message is read at the offset that its acknowledgement named"
    assert run_here(tmp_path / "without", of) == Summary(valid=1, invalid=0, failed=0)
    assert not (tmp_path / "without" / HISTORY).exists()


@pytest.mark.parametrize("driver", DRIVERS)
def test_without_acknowledgements_nobody_knows_what_became_of_a_message(tmp_path: Path, driver: str) -> None:
    cell = f"message_size: 32B, batch_size: 10, mode: split, acks: 0, driver: {driver}"
    of = plan(
        experiments=f"experiments: {{one: {{{cell}}}}}",
        profile="{experiments: one, messages: 200, tries: 1}",
    )
    run_here(tmp_path, of, history=True)
    found = history(tmp_path)
    assert messages(found, "send", "unknown") == 200
    assert messages(found, "send") == 0


def test_a_broker_that_is_killed_in_the_round_and_started_again_costs_what_the_audit_says(tmp_path: Path) -> None:
    """The driver grpc gives a partition up whose stream broke; what had no answer is stored or is not."""
    script = parse([step("kill", after_acknowledged=300), step("start", after_acknowledged=500)])
    row = outcome(tmp_path, paced("grpc"), script)
    found = history(tmp_path)
    killed, started = (one for one in found if one["role"] == "script")
    assert (killed["operation"], killed["detail"], started["operation"]) == ("kill", "broker-2", "start")
    assert killed["done_ns"] <= started["invoked_ns"] <= started["done_ns"]
    before = [one for one in found if one["operation"] == "send" and one["done_ns"] <= killed["invoked_ns"]]
    assert messages(before, "send") >= 300, "not before so many were acknowledged"

    assert row["verdict"] == "invalid"
    unknown = messages(found, "send", "unknown")
    assert row["sent"] == messages(found, "send") + unknown
    assert row["acknowledged"] == messages(found, "send")
    assert row["acknowledged"] <= row["stored"] <= row["sent"], "nothing acknowledged is lost, nothing is invented"
    assert row["consumed"] == row["stored"] == messages(found, "read")
    assert f"{row['sent']} messages were sent, not {MESSAGES}" in row["reason"]
    assert "by the history" not in row["reason"]


def test_a_process_that_the_script_ended_has_no_costs_in_that_window_and_has_in_the_next(tmp_path: Path) -> None:
    script = parse([step("terminate", after_s=0.1), step("start", after_s=0.2)])
    row = outcome(tmp_path, paced("kafka"), script)
    nodes = {window: {r["node"] for r in row["resources"] if r["window"] == window} for window in WINDOWS}
    assert nodes["consumption"] - nodes["production"] == {"broker-2"}
    assert {"broker-1", "broker-3", "producer-0"} <= nodes["production"]


WINDOWS = ("production", "consumption")


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_broker_that_stands_still_for_a_while_delays_messages_and_loses_none(tmp_path: Path, driver: str) -> None:
    script = parse([step("pause", "both", after_acknowledged=200), step("resume", "both", after_acknowledged=500)])
    row = outcome(tmp_path, paced(driver, "streaming"), script)
    assert (row["verdict"], row["reason"]) == ("valid", "")
    found = history(tmp_path)
    paused, resumed = (one for one in found if one["role"] == "script")
    assert (paused["operation"], resumed["operation"]) == ("pause", "resume")
    sends = [one for one in found if one["operation"] == "send"]
    assert any(one["invoked_ns"] < resumed["invoked_ns"] <= one["done_ns"] for one in sends), "some waited for it"


def test_a_broker_that_is_ended_between_two_stages_is_down_in_the_next(tmp_path: Path) -> None:
    """On `static` nobody takes over: whoever connects finds no leader."""
    row = outcome(tmp_path, ONE_TRIAL, parse([step("kill", "connect")]))
    assert row["verdict"] == "failed"
    assert "broker-2" not in row["reason"], "its end is no surprise"
    assert [(one["role"], one["operation"]) for one in history(tmp_path)] == [("script", "kill")]


def test_a_step_whose_moment_did_not_come_is_told(tmp_path: Path) -> None:
    row = outcome(tmp_path, ONE_TRIAL, parse([step("kill", after_s=3600)]))
    assert row["verdict"] == "invalid"
    assert row["reason"] == "the script's step was not carried out: kill broker-2 (3600 s into production)"


def test_a_script_that_does_not_fit_the_trial_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ScriptRefused, match="step 1: at cannot be 'both'"):
        run_here(tmp_path, ONE_TRIAL, script=parse([step("kill", "both")]))
    with pytest.raises(ScriptRefused, match="step 1: node cannot be 'zookeeper'"):
        run_here(tmp_path, ONE_TRIAL, script=parse([{**step("kill"), "node": "zookeeper"}]))
