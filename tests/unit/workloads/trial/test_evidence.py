"""What a trial's clients left is gathered whole, every checker is asked, and the record has it all."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import numpy as np

from tests.unit.workloads.clients.jobs import consume_job, produce_job
from tests.unit.workloads.run.plans import plan
from tests.unit.workloads.trial.records import load
from workloads.clients.client_files import Ids, write_consumed, write_produced
from workloads.clients.drivers.api import OK, Consumed, Produced, RequestRow
from workloads.clients.history import READ, SEND, History, Operation, history_path
from workloads.results import history_schema, request_schema
from workloads.spec.plan import Trial
from workloads.spec.settings import Length
from workloads.trial.evidence import examine
from workloads.trial.record import Place, TrialRecord, Window

TRIAL = replace(plan().trials[0], length=Length(6, None))
STORED = {0: [0, 1, 2, 3], 1: [4, 5]}


def part(failed: dict[str, int] | None = None) -> dict[str, object]:
    return {"sent": 6, "acknowledged": 6, "failed": failed or {}, "window_s": 1.0}


def written(folder: Path) -> tuple[Path, Path]:
    """The files of a producer and a consumer, whose histories say that one more message came than was sent."""
    producer, consumer = folder / "producer-0", folder / "consumer-0"
    sent = Produced(rows=[RequestRow(0, 1, 6, 96, 1, 2, OK)], sends=[(0, 1)], sent=6)
    for partition, ids in STORED.items():
        sent.note(partition, range(ids[0], ids[-1] + 1), OK)
    write_produced(produce_job(producer, producer=0), sent)
    raw = {partition: bytearray(b"".join(i.to_bytes(8, "big") for i in ids)) for partition, ids in STORED.items()}
    seen = Consumed(ids=raw)
    seen.note_receipt(0, 4, 9, 1)
    write_consumed(consume_job(consumer), seen)
    for out, operation, messages in ((producer, SEND, 6), (consumer, READ, 7)):
        history = History(history_path(out), "x", 0)
        history.note(Operation(operation, 0, 0, messages, 0, 1, 2, OK if operation == READ else "unknown"))
        history.close()
    return producer, consumer


def examined(folder: Path, record: TrialRecord, *, history: bool = False) -> list[str]:
    producer, consumer = written(folder)
    stored: dict[int, Ids] = {partition: np.array(ids, np.uint64) for partition, ids in STORED.items()}
    return asyncio.run(examine(record, [producer], [consumer], stored, {0: 4, 1: 2}, history=history))


def record(of: Trial = TRIAL, *, failed: dict[str, int] | None = None, wrong: int = 0) -> TrialRecord:
    found = TrialRecord(of)
    for each in (part(failed), {"consumed": 6, "wrong_payloads": wrong, "window_s": 1.0}):
        found.note_part(each)
    for number, window in enumerate(("production", "consumption"), start=1):
        found.windows.append(Window(Place(number, window), None, None, load()))
    return found


def test_a_trial_that_balances_has_its_counts_its_requests_and_its_latency_in_the_record(tmp_path: Path) -> None:
    of = record()
    assert examined(tmp_path, of) == []
    assert of.audited == {"sent": 6, "acknowledged": 6, "stored": 6, "consumed": 6}
    assert of.requests is not None
    assert of.requests.schema.equals(request_schema())
    assert [(row["trial_id"], row["window_number"]) for row in of.latency] == [(TRIAL.id, 1)]
    assert of.history is None


def test_every_window_that_produces_sends_the_messages_of_one(tmp_path: Path) -> None:
    of = record()
    of.windows.append(Window(Place(3, "production", round=2), None, None, load()))
    assert examined(tmp_path, of) == ["6 messages were sent, not 12"]


def test_a_trial_by_time_has_no_number_of_messages_to_send(tmp_path: Path) -> None:
    timed = replace(TRIAL, length=Length(None, 0.5))
    assert examined(tmp_path, record(timed)) == []


def test_what_failed_what_is_missing_and_what_is_wrong_is_found(tmp_path: Path) -> None:
    more = replace(TRIAL, length=Length(8, None))
    assert examined(tmp_path, record(more, failed={"X": 2}, wrong=1)) == [
        "2 messages: X",
        "6 messages were sent, not 8",
        "1 messages were received with a payload that nobody sent",
    ]


def test_a_history_is_checked_and_kept_under_the_trials_name(tmp_path: Path) -> None:
    of = record()
    assert examined(tmp_path, of, history=True) == ["by the history, 1 messages were read that nobody sent (0.6)"]
    assert of.history is not None
    assert of.history.schema.equals(history_schema())
    assert set(of.history.column("trial_id").to_pylist()) == {TRIAL.id}
