"""What a message costs, from entries that are written down here; Spark's sums of them from made records."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from analysis import load
from analysis.findings import Findings
from analysis.measures import costs
from analysis.measures.costs import Worked
from analysis.measures.rates import Sums
from tests import made_findings, made_records
from tests.made_records import MadeTrial, trial_row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CELL = {"cell": "c", "others": "", "message_size": 32, "batch_size": 10, "mode": "streaming"}
NOTHING = dict.fromkeys(
    ("cores_busiest", "rss_max_bytes", "written_bytes", "received_bytes", "sent_bytes", "gc_pause_us",
     "coordination_cpu_us"),
)  # fmt: skip


def window(number: int, role: str, messages: int, window: str = "both") -> tuple[dict[str, Any], Sums]:
    own = {
        **CELL, "architecture": "zookeeper", "architecture_rank": 0, "trial_id": "t", "number": number, "try": 1,
        "round": number, "window": window, "role": role, "rps": 1.0,
    }  # fmt: skip
    return own, Sums(messages, messages // 10, 0, 0, 0, 1, {})


def worked(*windows: tuple[dict[str, Any], Sums]) -> Worked:
    sums = {(row["trial_id"], row["role"], row["number"]): own for row, own in windows}
    return Worked([row for row, _ in windows], sums)


def entry(number: int, **more: Any) -> dict[str, Any]:
    return {"trial_id": "t", "number": number, "window": "both"} | more


def operation(number: int, count: int, wait_us: int | None, name: str = "lookup") -> dict[str, Any]:
    return entry(number, operation=name, count=count, bytes=count * 100, wait_us=wait_us)


def process(number: int, name: str, cpu_us: int | None) -> dict[str, Any]:
    return entry(number, **NOTHING, process=name) | {"cpu_us": cpu_us}


# One hundred messages produced for each that is consumed.
BOTH = (window(1, "production", 100_000), window(1, "consumption", 1_000))


def test_streaming_gives_the_cost_of_a_produced_message_and_of_a_consumed_one_apart() -> None:
    rows = costs.coordination([operation(1, 10_000, 5_000_000)], worked(*BOTH))
    found = {row["role"]: (row["operations"], row["bytes"], row["wait_ms"]) for row in rows}
    assert found == {"production": (100, 10_000, 50), "consumption": (10_000, 1_000_000, 5_000)}
    assert {row["window"] for row in rows} == {"both"}


def test_end_that_did_nothing_has_no_cost_of_a_message() -> None:
    starved = worked(BOTH[0], window(1, "consumption", 0))
    assert [row["role"] for row in costs.coordination([operation(1, 10, 5)], starved)] == ["production"]


def test_windows_that_are_not_used_and_their_costs_are_in_nothing() -> None:
    entries = [operation(1, 10_000, 0), operation(2, 999, 0)]
    (row,) = costs.coordination(entries, worked(BOTH[0]))
    assert row["operations"] == 100


def test_window_without_the_operation_counts_with_its_messages() -> None:
    (row,) = costs.coordination([operation(1, 10_000, 0)], worked(BOTH[0], window(2, "production", 300_000)))
    assert row["operations"] == 25


def test_wait_without_a_message_is_coordination_too_and_nothing_at_all_is_not() -> None:
    entries = [operation(1, 0, 30_000, "commit"), operation(1, 0, 0, "watch"), operation(1, 0, None, "push")]
    (row,) = costs.coordination(entries, worked(BOTH[0]))
    assert (row["operation"], row["operations"], row["wait_ms"]) == ("commit", 0, pytest.approx(0.3))


def test_processor_time_of_a_message_is_that_of_the_servers_in_each_window() -> None:
    entries = [process(1, "broker", 300_000), process(1, "coordinator", 100_000), process(1, "producer", 9_000_000)]
    found = {row["role"]: row["cpu_us"] for row in costs.processor_time(entries, worked(*BOTH))}
    assert found == {"production": 4.0, "consumption": 400.0}


def test_processor_time_is_not_known_where_one_server_does_not_tell_it_or_too_few_messages_went() -> None:
    unknown = [process(1, "broker", None), process(1, "coordinator", 5)]
    few = {**BOTH[0][0], "rps": None}, BOTH[0][1]
    for entries, windows in ((unknown, BOTH), ([process(1, "broker", 5)], (few,)), ([], BOTH)):
        assert {row["cpu_us"] for row in costs.processor_time(entries, worked(*windows))} == {None}


def test_messages_a_request_are_counted_at_both_ends() -> None:
    served = [
        entry(1, operation=name, messages=messages, requests=100)
        for name, messages in (("produce", 100_000), ("fetch", 1_000))
    ]
    rows = costs.batches(served, worked(*BOTH))
    assert {row["role"]: (row["client"], row["broker"]) for row in rows} == {
        "production": (10, 1_000), "consumption": (10, 10),
    }  # fmt: skip
    assert {row["broker"] for row in costs.batches([], worked(*BOTH))} == {None}


def test_coordination_is_counted_for_a_thousand_messages(found: Findings) -> None:
    rows = [row for row in found.coordination if row["architecture"] == "zookeeper"]
    assert {row["operation"] for row in rows} == {"lookup", "commit"}
    for row in rows:
        requests = 1000 / row["batch_size"]
        expected = (requests, requests * 100, requests * 0.5)
        assert (row["operations"], row["bytes"], row["wait_ms"]) == pytest.approx(expected)
    assert "static" not in {row["architecture"] for row in found.coordination}


def test_what_was_done_outside_of_a_timed_window_is_in_its_costs_and_in_their_messages() -> None:
    rows = [row for row in made_findings.rounds().resources if row["process"] == "producer" and row["mode"] == "split"]
    assert rows
    assert [row["cpu_us_per_message"] for row in rows] == pytest.approx([4.0] * len(rows))


def test_processor_time_is_microseconds_a_message_by_window_and_end(found: Findings) -> None:
    rows = {
        (row["window"], row["role"], row["process"]): row["cpu_us_per_message"]
        for row in found.resources
        if (row["batch_size"], row["architecture"]) == (1, "static")
    }
    each = {"producer": 4.0, "consumer": 4.0, "broker": 1.0}
    ends = {"production": ("producer", "broker"), "consumption": ("consumer", "broker"), "both": tuple(each)}
    assert rows == pytest.approx({
        (window, role, name): each[name]
        for window, names in ends.items()
        for role in (("production", "consumption") if window == "both" else (window,))
        for name in names
    })  # fmt: skip
    assert {row["rss_max_mb"] for row in found.resources} == {64}


def test_what_a_process_does_not_count_stays_empty(found: Findings) -> None:
    rows = {row["process"]: row for row in found.resources if row["architecture"] == "zookeeper"}
    assert (rows["producer"]["coordination_cpu_us_per_message"], rows["producer"]["gc_pause_us_per_message"]) == (
        None,
        None,
    )
    assert rows["coordinator"]["sent_bytes_per_message"] is None
    assert rows["coordinator"]["gc_pause_us_per_message"] == pytest.approx(10_000 / 30_000)
    assert rows["broker"]["sent_bytes_per_message"] == rows["broker"]["message_size"]
    operations = 2 / rows["broker"]["batch_size"]
    assert rows["broker"]["coordination_cpu_us_per_message"] == pytest.approx(120 * operations)


def test_busiest_process_is_in_cores(found: Findings) -> None:
    (row,) = (
        row
        for row in found.resources
        if (row["architecture"], row["window"], row["process"]) == ("static", "production", "producer")
        and (row["message_size"], row["batch_size"], row["mode"]) == (32, 1, "split")
    )
    assert row["cores_busiest"] == pytest.approx(0.12 / (0.12 * 1.01), rel=1e-4)


def test_settings_that_all_architectures_share_are_equal(found: Findings) -> None:
    assert tuple(row["setting"] for row in found.equality) == costs.HELD_EQUAL
    assert {row["cells_that_differ"] for row in found.equality} == {0}
    assert {row["setting"]: row["found"] for row in found.equality}["rate"] == "max"


def equality(*made: MadeTrial) -> dict[str, tuple[str, int]]:
    rows = costs.equality([trial_row(one) for one in made])
    return {row["setting"]: (row["found"], row["cells_that_differ"]) for row in rows}


def test_setting_that_differs_between_architectures_is_told() -> None:
    other = MadeTrial("dsbs", columns={"fsync": "always", "in_flight": None})
    found = equality(MadeTrial("static"), other)
    assert (found["fsync"], found["in_flight"]) == (("always, never", 1), ("5, not known", 1))


def test_swept_setting_is_equal_when_every_cell_is() -> None:
    made = [
        MadeTrial(name, others=f"brokers={count}", columns={"brokers": count})
        for name in ("static", "dsbs")
        for count in (3, 5)
    ]
    assert equality(*made)["brokers"] == ("3, 5", 0)


@pytest.mark.java
def test_sums_of_spark_are_over_all_processes_of_a_kind_and_empty_where_none_counts(
    spark: SparkSession, tmp_path: Path
) -> None:
    made = MadeTrial("dsbs")
    own = [row for row in trial_row(made)["resources"] if (row["role"], row["window"]) == ("broker", "production")]
    second = {**own[0], "node": "broker-2", "cpu_user_s": own[0]["wall_s"], "gc_pause_s": None}
    made = MadeTrial("dsbs", columns={"resources": [*own, second], "coordination": None})
    trials = load.load(spark, made_records.write(tmp_path, [made])).trials
    (row,) = costs.resource_sums(trials).collect()
    first_us = round((own[0]["cpu_user_s"] + own[0]["cpu_system_s"]) * 1e6)
    second_us = round((own[0]["wall_s"] + own[0]["cpu_system_s"]) * 1e6)
    assert (row.number, row.window, row.process, row.cpu_us) == (1, "production", "broker", first_us + second_us)
    assert (row.cores_busiest, row.gc_pause_us) == (pytest.approx(second_us / 1e6), None)
    assert costs.coordination_sums(trials).collect() == []
