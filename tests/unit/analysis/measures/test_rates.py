"""One folder holds every odd trial, each in a cell of its own; each test looks at its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from analysis import load
from analysis.measures import rates
from tests import made_records
from tests.made_records import START_NS, MadeTrial
from workloads import results

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

pytestmark = pytest.mark.java

ODD: dict[str, MadeTrial] = {
    "plain": MadeTrial("dsbs", production_s=0.75, consumption_s=1.5, message_size=64),
    "failed": MadeTrial("dsbs", columns={"verdict": "failed", "reason": "broker-2 died"}),
    "without-reason": MadeTrial("dsbs", columns={"verdict": "invalid"}),
    "lost": MadeTrial("dsbs", columns={"acknowledged": 29_999}),
    "twice": MadeTrial("dsbs", columns={"consumed": 1}),
    "empty": MadeTrial("dsbs", messages=0, rows=1),
    "no-length": MadeTrial("dsbs", production_s=0, rows=1),
    "backwards": MadeTrial("dsbs", production_s=-1.0, rows=1),
    "no-rows": MadeTrial("dsbs"),
    "unfinished": MadeTrial("dsbs"),
    "producers-alone": MadeTrial("dsbs", columns={"consumers": 0, "consumed": 0}),
    "just-short": MadeTrial("dsbs", production_s=0.249),
    "just-long": MadeTrial("dsbs", production_s=0.25),
    "warm": MadeTrial("dsbs", kind="warmup"),
    "axes": MadeTrial("dsbs", others="brokers=5,acks=-1"),
    "in-block-2": MadeTrial("dsbs", try_=2),
    "in-block-3": MadeTrial("dsbs", try_=3),
    "in-block-4": MadeTrial("dsbs", try_=4),
    "in-block-5": MadeTrial("dsbs", try_=5),
}
# Of each block, the windows of its calibration trials.
CALIBRATIONS = {1: (1.0, 1.14), 2: (1.0, 1.16), 3: (1.16, 1.0), 4: (1.0,)}


def calibrations() -> list[MadeTrial]:
    return [
        MadeTrial(
            "static",
            production_s=window_s,
            try_=block,
            kind="calibration",
            name=f"calibration/{block}/{place}",
            columns={"cell": "calibration"},
        )
        for block, windows in CALIBRATIONS.items()
        for place, window_s in enumerate(windows)
    ]


@pytest.fixture(scope="module")
def rows(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Row]:
    folder = tmp_path_factory.mktemp("odd")
    named = [_named(made, name) for name, made in ODD.items()]
    made_records.write(folder, [*named, *calibrations()])
    (folder / "requests" / results.file_name("no-rows")).unlink()
    (folder / "trials" / results.file_name("unfinished")).unlink()
    records = load.load(spark, folder)
    rated = rates.rates(records.trials, records.requests).cache()
    found = {(row.trial_id, row.role): row for row in rated.collect()}
    found |= {
        (row.cell, f"value of {row.role} in {row.metric}"): row
        for row in rates.measured(rated, "rps", "kbps").collect()
    }
    return found


def _named(made: MadeTrial, name: str) -> MadeTrial:
    values: dict[str, Any] = {field: getattr(made, field) for field in MadeTrial.__dataclass_fields__}
    return MadeTrial(**values | {"name": name, "columns": {"cell": f"{made.cell},name={name}"} | dict(made.columns)})


def test_rate_is_messages_over_the_time_from_first_send_to_last_answer(rows: dict[tuple[str, str], Row]) -> None:
    production, consumption = rows["plain", "production"], rows["plain", "consumption"]
    assert (production.rps, consumption.rps) == (40_000, 20_000)
    assert (production.kbps, consumption.kbps) == (2_560, 1_280)
    assert production.window_s == 0.75


@pytest.mark.parametrize(
    ("name", "verdict", "reason"),
    [
        ("failed", "failed", "broker-2 died"),
        ("without-reason", "invalid", "invalid"),
        ("lost", "invalid", "the request rows hold 30000 messages, the trial says 29999"),
        ("twice", "invalid", "the request rows hold 30000 messages, the trial says 1"),
        ("empty", "invalid", "no message in production"),
        ("no-length", "invalid", "the window of production has no length"),
        ("backwards", "invalid", "1 request rows end before they begin"),
        ("no-rows", "invalid", "no request rows of production"),
    ],
)
def test_trial_that_cannot_be_believed_leaves_the_rates_with_its_reason(
    rows: dict[tuple[str, str], Row], name: str, verdict: str, reason: str
) -> None:
    for role in ("production", "consumption"):
        row = rows[name, role]
        assert (row.verdict, row.reason, row.rps, row.kbps) == (verdict, reason, None, None)


def test_requests_of_a_trial_that_never_finished_are_left_out(rows: dict[tuple[str, str], Row]) -> None:
    assert not [key for key in rows if key[0] == "unfinished"]


def test_producers_alone_have_no_consumption(rows: dict[tuple[str, str], Row]) -> None:
    assert rows["producers-alone", "production"].verdict == "valid"
    assert ("producers-alone", "consumption") not in rows


@pytest.mark.parametrize(("name", "short"), [("just-short", True), ("just-long", False)])
def test_windows_under_a_quarter_second_are_marked_short(
    rows: dict[tuple[str, str], Row], name: str, short: bool
) -> None:
    assert rows[name, "production"].short_window is short


@pytest.mark.parametrize(
    ("name", "noisy"),
    [("plain", False), ("in-block-2", True), ("in-block-3", True), ("in-block-4", None), ("in-block-5", None)],
)
def test_block_is_noisy_when_its_two_calibration_trials_differ_by_more_than_15_percent(
    rows: dict[tuple[str, str], Row], name: str, noisy: bool | None
) -> None:
    assert {rows[name, role].noisy for role in ("production", "consumption")} == {noisy}


def test_only_valid_measured_trials_count(rows: dict[tuple[str, str], Row]) -> None:
    counted = {key[0].rpartition("name=")[2] for key in rows if key[1].startswith("value of production")}
    odd = {"failed", "without-reason", "lost", "twice", "empty", "no-length", "backwards", "no-rows"}
    assert counted == set(ODD) - odd - {"unfinished", "warm"}


def test_other_axes_of_a_cell_are_told_apart_from_the_three_of_every_cell(rows: dict[tuple[str, str], Row]) -> None:
    assert rows["axes", "production"].others == "brokers=5,acks=-1,name=axes"
    assert rows["plain", "production"].others == "name=plain"


def test_calibration_cell_has_no_axes_at_all(rows: dict[tuple[str, str], Row]) -> None:
    assert rows["calibration/1/0", "production"].others == ""


def test_failed_request_opens_a_window_but_neither_closes_it_nor_counts(spark: SparkSession) -> None:
    columns = (
        "trial_id string, role string, requests int, messages bigint, sent_ns bigint, done_ns bigint, status string"
    )
    requests = [
        ("t", "producer", 1, 20, START_NS, START_NS + 900, "timed_out"),
        ("t", "producer", 1, 20, START_NS + 100, START_NS + 400, "ok"),
        ("t", "producer", 1, 5, START_NS + 500, START_NS + 600, "ok"),
        ("t", "producer", 1, 0, START_NS + 600, START_NS + 850, "ok"),
    ]
    (window,) = rates.windows(spark.createDataFrame(requests, columns)).collect()
    assert (window.first_ns, window.last_ns) == (START_NS, START_NS + 600)
    assert (window.messages_done, window.requests_done, window.requests_failed) == (25, 2, 1)
