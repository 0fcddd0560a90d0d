"""What a run measures is true: it balances, its windows hold what they name, and tampering is found."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from brokers.rpc import brokerlab_pb2 as pb
from tests.integration.runs.short_runs import ONE_TRIAL, QUICK, ids, rows, run_here
from workloads.clients.client_files import Ids, read_ids
from workloads.clients.drivers.api import WindowOrder
from workloads.results import REQUESTS
from workloads.run.runner import Summary
from workloads.systems.brokerlab import Brokerlab
from workloads.trial.jobs import Jobs
from workloads.trial.trial import TrialRun

MESSAGES = 200
SPLIT, STREAMING = (f"message_size=32,batch_size=10,mode={mode}/static/1" for mode in ("split", "streaming"))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    assert run_here(folder, QUICK) == Summary(valid=2, invalid=0, failed=0)
    return folder


def test_every_trial_balances_and_is_written_whole(finished: Path) -> None:
    found = rows(finished)
    assert found.keys() == ids(QUICK) == {SPLIT, STREAMING}
    for row in found.values():
        assert (row["verdict"], row["reason"]) == ("valid", "")
        assert [row[name] for name in ("messages", "sent", "acknowledged", "stored", "consumed")] == [MESSAGES] * 5
        assert [name for name, value in row.items() if value is None] == ["rate"]
        assert min(row["create_topic_s"], row["connect_s"], row["join_s"]) > 0


def test_a_run_leaves_no_data_of_brokers_and_keeps_their_logs(finished: Path) -> None:
    assert not (finished / "work").exists()
    assert len(list(finished.glob("logs/*/broker-*.log"))) == 3


@pytest.mark.parametrize(
    ("trial", "windows"),
    [(SPLIT, {"produce": "production", "fetch": "consumption"}), (STREAMING, {"produce": "both", "fetch": "both"})],
)
def test_brokers_count_in_each_window_just_what_went_over_the_wire_in_it(
    finished: Path, trial: str, windows: dict[str, str]
) -> None:
    counted: Counter[tuple[str, str]] = Counter()
    for row in rows(finished)[trial]["broker_requests"]:
        counted[row["operation"], row["window"]] += row["messages"]
    assert counted == dict.fromkeys(windows.items(), MESSAGES)


def test_commits_are_counted_in_the_window_in_which_they_were_made(finished: Path) -> None:
    windows = {row["window"] for row in rows(finished)[SPLIT]["coordination"] if row["operation"] == "commit"}
    assert windows == {"consumption"}


def test_every_process_is_accounted_for_in_every_window(finished: Path) -> None:
    processes = {"broker-1", "broker-2", "broker-3", "producer-0", "consumer-0"}
    for trial, windows in ((SPLIT, {"production", "consumption"}), (STREAMING, {"both"})):
        resources = rows(finished)[trial]["resources"]
        assert {(row["node"], row["window"]) for row in resources} == {(p, w) for p in processes for w in windows}
        for row in resources:
            assert row["wall_s"] > 0
            assert row["rss_max_bytes"] > 2**20
            assert 0 <= row["cpu_user_s"] + row["cpu_system_s"] <= 2 * row["wall_s"] + 0.1


def test_an_idle_client_costs_nothing_in_the_window_of_the_other(finished: Path) -> None:
    resources = rows(finished)[SPLIT]["resources"]
    for node, window in (("consumer-0", "production"), ("producer-0", "consumption")):
        (row,) = [row for row in resources if (row["node"], row["window"]) == (node, window)]
        assert row["cpu_user_s"] + row["cpu_system_s"] <= 0.05


def requests(finished: Path, trial: str, role: str) -> list[dict[str, Any]]:
    found = pq.read_table(finished / REQUESTS).to_pylist()
    return [row for row in found if row["trial_id"] == trial and row["role"] == role]


@pytest.mark.parametrize("trial", [SPLIT, STREAMING])
def test_requests_are_as_large_as_the_cell_says_on_both_ends(finished: Path, trial: str) -> None:
    for role in ("producer", "consumer"):
        carried = [row for row in requests(finished, trial, role) if row["messages"]]
        assert {row["messages"] for row in carried} == {10}
        assert {row["bytes"] for row in carried} == {320}
        assert sum(row["messages"] for row in carried) == MESSAGES
        assert {row["status"] for row in carried} == {"ok"}
        assert all(row["sent_ns"] <= row["done_ns"] for row in carried)


def test_split_consumes_after_the_last_acknowledgement_and_streaming_fetches_before_the_first_send(
    finished: Path,
) -> None:
    produced, consumed = (requests(finished, SPLIT, role) for role in ("producer", "consumer"))
    assert max(row["done_ns"] for row in produced) < min(row["sent_ns"] for row in consumed)
    produced, consumed = (requests(finished, STREAMING, role) for role in ("producer", "consumer"))
    assert min(row["sent_ns"] for row in consumed) < min(row["sent_ns"] for row in produced)


# --- positive controls: a fault that is put in comes out ------------------------------------------------------


def outcome(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, tampered: Any) -> tuple[str, str]:
    """Verdict and reason of the trial of a run in which a stage of `TrialRun` is replaced."""
    monkeypatch.setattr(TrialRun, name, tampered)
    run_here(folder, ONE_TRIAL)
    (row,) = rows(folder).values()
    return row["verdict"], row["reason"]


def segment_of(run: TrialRun, partition: int) -> Path:
    assert isinstance(run.system, Brokerlab)
    for place in run.system.places:
        logs = place.partition_folder(run.topic, "*", partition)
        for path in sorted(Path("/").glob(f"{logs.absolute().relative_to('/')}/*.log")):
            if path.stat().st_size:
                return path
    raise AssertionError("the partition is stored somewhere")


def test_what_a_disk_loses_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = TrialRun._audit

    async def loses_the_last_batch(run: TrialRun) -> None:
        segment = segment_of(run, 0)
        whole = segment.read_bytes()
        segment.write_bytes(whole[: _begin_of_last_batch(whole)])
        await real(run)

    verdict, reason = outcome(tmp_path, monkeypatch, "_audit", loses_the_last_batch)
    assert verdict == "invalid"
    assert "partition 0: 10 messages acknowledged and not stored (0." in reason
    assert "partition 0: 10 messages consumed and not stored (0." in reason


def _begin_of_last_batch(content: bytes) -> int:
    begin = position = 0
    while position < len(content):
        begin = position
        position += 12 + int.from_bytes(content[position + 8 : position + 12], "big")
    return begin


def test_what_a_disk_changes_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = TrialRun._audit

    async def flips_a_byte(run: TrialRun) -> None:
        segment = segment_of(run, 1)
        content = bytearray(segment.read_bytes())
        content[100] ^= 1
        segment.write_bytes(content)
        await real(run)

    verdict, reason = outcome(tmp_path, monkeypatch, "_audit", flips_a_byte)
    assert verdict == "failed"
    assert reason.startswith("log-reader: ")
    assert "at byte 0: its bytes are not those that its producer signed" in reason


def test_what_somebody_else_sends_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = TrialRun._join

    async def with_a_stranger(run: TrialRun) -> None:
        assert isinstance(run.system, Brokerlab)
        stubs = await run.system.cluster.leaders(run.topic)
        records = [pb.Record(value=b"\0\x09" + b"\0" * 5 + b"\x07" + b"not what is sent here...")]
        await stubs[2].Produce(pb.ProduceRequest(topic=run.topic, partition=2, acks=1, records=records))
        await real(run)

    verdict, reason = outcome(tmp_path, monkeypatch, "_join", with_a_stranger)
    assert verdict == "invalid"
    assert "partition 2: 1 messages stored and not acknowledged (9.7)" in reason
    assert "1 messages were received with a payload that nobody sent" in reason


def test_what_a_consumer_skips_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def skips_one(out: Path) -> dict[int, Ids]:
        found = read_ids(out)
        if out.name.startswith("consumer"):
            found[1] = np.delete(found[1], 3)
        return found

    monkeypatch.setattr("workloads.trial.evidence.read_ids", skips_one)
    assert run_here(tmp_path, ONE_TRIAL) == Summary(valid=0, invalid=1, failed=0)
    (row,) = rows(tmp_path).values()
    assert "partition 1: 1 messages stored and not consumed (0." in row["reason"]


def test_fewer_messages_than_asked_for_are_no_valid_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Jobs.order

    def fewer(jobs: Jobs, role: str, number: int) -> WindowOrder:
        return replace(real(jobs, role, number), messages=MESSAGES - 10)

    monkeypatch.setattr(Jobs, "order", fewer)
    assert run_here(tmp_path, ONE_TRIAL) == Summary(valid=0, invalid=1, failed=0)
    (row,) = rows(tmp_path).values()
    assert row["reason"] == "190 messages were sent, not 200"
