"""Each axis of experiments.yaml reaches the brokers or the clients: shown by what these counted themselves."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from brokers.rpc import brokerlab_pb2 as pb
from tests.histograms import bucket_range_ns
from tests.integration.runs.broken_broker import COUNTS_SYNCS, put_in
from tests.integration.runs.short_runs import rows, run_here
from tests.unit.workloads.run.plans import plan
from workloads.results import LATENCY, REQUESTS
from workloads.run.runner import Summary
from workloads.spec.plan import Plan
from workloads.systems.brokerlab import Brokerlab
from workloads.trial.record import TrialRecord
from workloads.trial.trial import TrialRun

MESSAGES = 1000
BATCHES = (1, 20, 50)
DRIVERS = ("kafka", "grpc")
RATE = 1000
# A batch that waits for 200 ms, because its client was not given the processor, leaves in two parts.
CUT_MAX = 3
ANSWER_BYTES_MIN = 20
WIDE = "message_size: 32B, brokers: 5, partitions: 10"
PROFILE = f"messages: {MESSAGES}, tries: 1"
MANY = plan(
    experiments=f"""experiments:
  sizes: {{{WIDE}, batch_size: [1, 20, 50], mode: split, driver: [kafka, grpc], producers: 2, consumers: 2}}
  commits: {{{WIDE}, batch_size: 10, mode: split, driver: kafka, commit: [every_batch, {{interval_ms: 1}}, end]}}
  rates: {{{WIDE}, batch_size: 10, mode: streaming, driver: [kafka, grpc], rate: 1000}}
""",
    profile=f"{{experiments: [sizes, commits, rates], {PROFILE}}}",
)
ALONE = plan(
    experiments="""experiments:
  one: {message_size: 64B, brokers: 1, partitions: 1, batch_size: 1, mode: split, driver: kafka, commit: end,
        acks: [0, 1], fsync: [never, {interval_ms: 20}]}
""",
    profile=f"{{experiments: one, {PROFILE}}}",
)
# By time, so that more is stored than is consumed.
AHEAD = plan(
    experiments="experiments: {one: {message_size: 32B, batch_size: 1, mode: split, driver: kafka, "
    "fetch_ahead: [2, 20]}}",
    profile="{experiments: one, duration_s: 0.1, tries: 1}",
)
UNDER_WAY = plan(
    experiments="experiments: {one: {message_size: 32B, batch_size: 1, mode: split, driver: [kafka, grpc], "
    "in_flight: [1, 8], brokers: 1, partitions: 1}}",
    profile=f"{{experiments: one, {PROFILE}}}",
)


@dataclass(frozen=True)
class Seen:
    """A finished run, and by trial how many OffsetCommit requests its brokers and its consumers counted."""

    folder: Path
    commits_at_brokers: dict[str, int]
    commits_of_consumers: dict[str, int]

    def trial(self, **axes: object) -> dict[str, Any]:
        """The one trial whose row has all of these."""
        every = rows(self.folder).values()
        (found,) = [row for row in every if all(row[key] == value for key, value in axes.items())]
        return found

    def requests(self, row: dict[str, Any], role: str) -> list[dict[str, Any]]:
        """Those that carried messages."""
        found = pq.read_table(self.folder / REQUESTS).to_pylist()
        return [one for one in found if (one["trial_id"], one["role"]) == (row["trial_id"], role) and one["messages"]]


def finished(folder: Path, of: Plan) -> Seen:
    """A run of which every trial is valid."""
    seen = Seen(folder, {}, {})
    real, note_part = TrialRun.audit, TrialRecord.note_part
    counted: Counter[str] = Counter()

    def notes(record: TrialRecord, part: dict[str, Any]) -> None:
        counted[record.trial.id] += part.get("commits", 0)
        note_part(record, part)

    async def asks(run: TrialRun) -> None:
        trial = run.record.trial.id
        seen.commits_at_brokers[trial] = await commits_so_far(run) - sum(seen.commits_at_brokers.values())
        seen.commits_of_consumers[trial] = counted[trial]
        await real(run)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TrialRun, "audit", asks)
        patch.setattr(TrialRecord, "note_part", notes)
        put_in(patch, COUNTS_SYNCS)
        assert run_here(folder, of) == Summary(valid=len(of.trials), invalid=0, failed=0)
    return seen


async def commits_so_far(run: TrialRun) -> int:
    assert isinstance(run.system, Brokerlab)
    connections = run.system.cluster.connections
    stubs = [connections.admin(address) for address in run.system.bootstrap("grpc")]
    found = [await stub.Statistics(pb.StatisticsRequest()) for stub in stubs]
    return sum(answer.kafka_requests["OFFSET_COMMIT"] for answer in found)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    return finished(tmp_path_factory.mktemp("many"), MANY)


def at_brokers(row: dict[str, Any], operation: str) -> tuple[int, int]:
    """Requests and messages of a kind that all brokers counted."""
    counted = [one for one in row["broker_requests"] if one["operation"] == operation]
    return sum(one["requests"] for one in counted), sum(one["messages"] for one in counted)


def spent(row: dict[str, Any], role: str, window: str, column: str) -> list[int]:
    return [one[column] for one in row["resources"] if (one["role"], one["window"]) == (role, window)]


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("batch", BATCHES)
def test_requests_at_the_brokers_hold_as_many_messages_as_the_batch_size_says(
    many: Seen, driver: str, batch: int
) -> None:
    row = many.trial(driver=driver, batch_size=batch)
    requests, messages = at_brokers(row, "produce")
    assert messages == MESSAGES
    assert 0 <= requests - MESSAGES // batch <= CUT_MAX
    requests, messages = at_brokers(row, "fetch")
    assert messages == MESSAGES
    assert requests >= MESSAGES // batch, "no answer holds more"


def test_as_many_brokers_as_asked_for_serve(many: Seen) -> None:
    row = many.trial(driver="grpc", batch_size=1)
    assert {one["node"] for one in row["broker_requests"]} == {f"broker-{number}" for number in range(1, 6)}


def test_as_many_partitions_as_asked_for_are_written_and_read(many: Seen) -> None:
    row = many.trial(driver="grpc", batch_size=1)
    for role in ("producer", "consumer"):
        assert {one["partition"] for one in many.requests(row, role)} == set(range(10))


@pytest.mark.parametrize("driver", DRIVERS)
def test_as_many_producers_and_consumers_as_asked_for_share_the_messages(many: Seen, driver: str) -> None:
    row = many.trial(driver=driver, batch_size=1)
    produced, consumed = Counter[int](), Counter[int]()
    for role, counted in (("producer", produced), ("consumer", consumed)):
        for one in many.requests(row, role):
            counted[one["client"]] += one["messages"]
        assert all(
            size > 0 for size in spent(row, role, {"producer": "production"}.get(role, "consumption"), "sent_bytes")
        )
    assert produced == {0: MESSAGES // 2, 1: MESSAGES // 2}
    assert consumed.total() == MESSAGES
    assert consumed.keys() <= {0, 1}


def test_commits_reach_the_brokers_as_often_as_the_policy_says(many: Seen) -> None:
    counted = {}
    for policy in ("every_batch", "interval_1ms", "end"):
        trial = many.trial(driver="kafka", batch_size=10, mode="split", commit=policy)["trial_id"]
        assert many.commits_at_brokers[trial] == many.commits_of_consumers[trial]
        counted[policy] = many.commits_at_brokers[trial]
    assert counted["end"] == 1
    assert counted["every_batch"] >= MESSAGES // 10
    assert counted["interval_1ms"] > 1


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_rate_is_kept_and_latency_counts_from_the_intended_moment(many: Seen, driver: str) -> None:
    row = many.trial(driver=driver, mode="streaming")
    assert row["rate"] == RATE
    produced = many.requests(row, "producer")
    window_s = (max(one["done_ns"] for one in produced) - min(one["sent_ns"] for one in produced)) / 1e9
    assert window_s >= (MESSAGES - 10) / RATE, "no batch leaves before its time"
    assert window_s < 20 * MESSAGES / RATE


def test_with_a_rate_every_message_has_a_latency_from_end_to_end(many: Seen) -> None:
    every = pq.read_table(many.folder / LATENCY).to_pylist()
    counted = {row["trial_id"]: sum(row["latency_count"]) for row in every}
    assert counted == {many.trial(driver=driver, mode="streaming")["trial_id"]: MESSAGES for driver in DRIVERS}


def test_no_broker_brings_data_to_the_disk_where_fsync_is_never(many: Seen) -> None:
    assert set(syncs(many.folder).values()) == {0}


def syncs(folder: Path) -> dict[Path, int]:
    """Of each broker, as it said at its end."""
    logs = folder.glob("logs/*/broker-*.log")
    return {log: int(re.findall(r"^syncs: (\d+)$", log.read_text(), flags=re.MULTILINE)[-1]) for log in logs}


def test_acks_and_fsync_reach_the_broker(tmp_path: Path) -> None:
    seen = finished(tmp_path, ALONE)
    for fsync in ("never", "interval_20ms"):
        (silent,) = spent(seen.trial(acks=0, fsync=fsync), "broker", "production", "sent_bytes")
        (answering,) = spent(seen.trial(acks=1, fsync=fsync), "broker", "production", "sent_bytes")
        assert answering > MESSAGES * ANSWER_BYTES_MIN > silent, "without acks, a request has no answer"
    of_trial = {log.parent.name: count for log, count in syncs(tmp_path).items()}
    found = [of_trial[f"block-1-static-{trial.position}"] for trial in ALONE.trials]
    for trial, count in zip(ALONE.trials, found, strict=True):
        settings = trial.cell.cluster
        assert bool(count) == (settings.fsync == "interval"), settings


def test_what_is_fetched_in_a_window_is_what_it_consumes_and_what_may_lie_ready(tmp_path: Path) -> None:
    """`fetch_ahead` batches of each partition, what is under way of each, and what was taken out of the queue."""
    seen = finished(tmp_path, AHEAD)
    for ahead in (2, 20):
        row = seen.trial(fetch_ahead=ahead)
        ahead_max = row["partitions"] * (ahead + 1) + ahead
        consumed: Counter[int] = Counter()
        for one in seen.requests(row, "consumer"):
            consumed[one["window_number"]] += one["messages"]
        fetched: Counter[int] = Counter()
        for one in row["broker_requests"]:
            if one["operation"] == "fetch":
                fetched[one["number"]] += one["messages"]
        assert row["stored"] > row["consumed"] + ahead_max, "else nothing is shown here"
        assert fetched.keys() == {window["number"] for window in row["windows"] if window["window"] == "consumption"}
        for number, messages in fetched.items():
            assert consumed[number] <= messages <= consumed[number] + ahead_max


@pytest.mark.parametrize(("driver", "handed_over"), [("grpc", 1), ("kafka", 3)])
def test_no_more_requests_are_under_way_than_asked_for(under_ways: Seen, driver: str, handed_over: int) -> None:
    """The time of all requests together, over the window, is how many were under way at once on average. The library
    of the driver `kafka` has three times as many at hand, of which it sends as many as are asked for."""
    one, eight = (under_way(under_ways, under_ways.trial(driver=driver, in_flight=many)) for many in (1, 8))
    assert 0 < one <= handed_over
    assert one < eight <= 8 * handed_over


@pytest.fixture(scope="module")
def under_ways(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    return finished(tmp_path_factory.mktemp("under-way"), UNDER_WAY)


def under_way(seen: Seen, row: dict[str, Any]) -> float:
    produced = seen.requests(row, "producer")
    together_ns: int = sum(
        sum(bucket_range_ns(i)[0] * n for i, n in zip(one["latency_index"], one["latency_count"], strict=True))
        if one["latency_index"]
        else one["done_ns"] - one["sent_ns"]
        for one in produced
    )
    window_ns: int = max(one["done_ns"] for one in produced) - min(one["sent_ns"] for one in produced)
    return together_ns / window_ns
