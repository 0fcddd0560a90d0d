"""Brokers with a fault put in, run as any other: the audit or the latency finds each."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.histograms import bucket_range_ns
from tests.integration.runs.broken_broker import DELAY_S, put_in
from tests.integration.runs.short_runs import rows, run_here
from tests.unit.workloads.run.plans import plan
from workloads.results import LATENCY
from workloads.run.runner import Summary
from workloads.spec.plan import Plan


def one_cell(
    messages: int,
    *,
    size: str = "32B",
    batch: int = 1,
    rate: str = "max",
    mode: str = "split",
    driver: str = "kafka",
) -> Plan:
    cell = f"message_size: {size}, batch_size: {batch}, mode: {mode}, rate: {rate}, commit: end"
    experiment = f"{cell}, driver: {driver}, brokers: 1, partitions: 1"
    return plan(
        experiments=f"experiments: {{one: {{{experiment}}}}}",
        profile=f"{{experiments: one, messages: {messages}, tries: 1}}",
    )


def reason(folder: Path, of: Plan) -> str:
    """Why the one trial of a run is invalid."""
    assert run_here(folder, of) == Summary(valid=0, invalid=1, failed=0)
    (row,) = rows(folder).values()
    found: str = row["reason"]
    return found


def test_a_broker_that_drops_one_message_in_ten_thousand_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_in(monkeypatch, "drops")
    assert "partition 0: 1 messages acknowledged and not stored (0.9999)" in reason(tmp_path, one_cell(12_000))


def test_a_broker_that_stores_one_message_in_a_hundred_twice_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_in(monkeypatch, "duplicates")
    found = reason(tmp_path, one_cell(1_000))
    assert "partition 0: 10 messages stored more than once (0." in found
    assert "messages consumed more than once (0." in found


def test_a_broker_that_stores_a_batch_behind_the_next_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_in(monkeypatch, "reorders")
    found = reason(tmp_path, one_cell(900, batch=10))
    assert "partition 0: 1 messages stored out of their producer's order (0.10)" in found


@pytest.mark.parametrize("size", ["32B", "4KB"])
@pytest.mark.parametrize("driver", ["kafka", "grpc"])
def test_a_broker_that_changes_a_byte_of_a_message_is_found_by_every_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, driver: str, size: str
) -> None:
    """The brokers' own CRCs hold, every id is there once and in order, and all counts agree: payloads alone tell."""
    put_in(monkeypatch, "corrupts")
    found = reason(tmp_path, one_cell(1_000, size=size, driver=driver))
    assert found == "10 messages were received with a payload that nobody sent"


@pytest.mark.parametrize("driver", ["kafka", "grpc"])
def test_a_broker_that_cannot_store_is_told_in_the_same_words_by_every_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, driver: str
) -> None:
    put_in(monkeypatch, "refuses")
    short = replace(one_cell(20, batch=10, driver=driver), timeout_s=30.0)
    assert run_here(tmp_path, short) == Summary(valid=0, invalid=0, failed=1)
    (row,) = rows(tmp_path).values()
    assert row["reason"].startswith("20 messages could not be stored; ")


def latencies_ns(folder: Path) -> list[int]:
    """The lowest value of each message's bucket, end to end."""
    counts: Counter[int] = Counter()
    for row in pq.read_table(folder / LATENCY).to_pylist():
        assert row["kind"] == "end_to_end"
        counts.update(dict(zip(row["latency_index"], row["latency_count"], strict=True)))
    return [bucket_range_ns(index)[0] for index in sorted(counts.elements())]


def test_a_broker_that_takes_fifty_milliseconds_more_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of = one_cell(200, batch=10, rate="400", mode="streaming")
    run_here(tmp_path / "sound", of)
    put_in(monkeypatch, "delays")
    run_here(tmp_path / "slow", of)
    sound, slow = latencies_ns(tmp_path / "sound"), latencies_ns(tmp_path / "slow")
    assert len(sound) == len(slow) == 200
    assert slow[0] >= DELAY_S * 1e9 * (1 - 2**-10)
    assert sound[0] < DELAY_S * 1e9
