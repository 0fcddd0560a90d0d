"""How well a run knows its ratios: the statistic, what it is read from, and that it does not see who is ahead."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.statistics import student_t
from tests.unit.workloads.run.plans import plan
from tests.unit.workloads.trial.records import load, measured
from workloads.results import ResultsFolder, request_schema
from workloads.run import precision
from workloads.run.allocation import rounds_for
from workloads.run.precision import (
    DEGREES_MAX,
    NOTHING_KNOWN,
    Precision,
    Rates,
    block_means,
    half_width,
    quantile,
    rates_of,
)
from workloads.spec.plan import Plan, Trial
from workloads.trial.record import Place, Window

MS: Final = 1_000_000


class Row(NamedTuple):
    sent_ms: int
    done_ms: int
    messages: int = 10
    number: int = 1
    role: str = "producer"
    status: str = "ok"


def requests(*rows: Row) -> pa.Table:
    return pa.Table.from_pylist([
        {
            "trial_id": "t", "role": row.role, "client": 0, "window_number": row.number, "partition": 0, "requests": 1,
            "messages": row.messages, "bytes": row.messages, "sent_ns": row.sent_ms * MS, "done_ns": row.done_ms * MS,
            "status": row.status, "latency_index": [], "latency_count": [],
        }
        for row in rows
    ], schema=request_schema())  # fmt: skip


def window(number: int = 1, *, opened_ms: int | None = None, closed_ms: int | None = None, **at: Any) -> dict[str, Any]:
    """A row of a trial's windows; whole unless it says when it opened."""
    foreign_cores = at.pop("foreign_cores", 0.0)
    place = Place(**{"number": number, "window": "production", **at})
    times = [None if moment is None else moment * MS for moment in (opened_ms, closed_ms)]
    return Window(place, times[0], times[1], load(foreign_cores)).row()


# --- rates of windows -----------------------------------------------------------------------------------------


def test_a_whole_window_goes_from_the_first_send_to_the_last_completion() -> None:
    found = rates_of([window()], requests(Row(100, 300), Row(200, 600, messages=40)))
    assert found == {("producer", 1): pytest.approx(100)}


def test_a_window_of_time_goes_from_the_end_of_one_request_to_the_end_of_another() -> None:
    """It opened at 100 and closed at 300: from 90, the last end before, to 290. The request that ended at 90 is
    outside, that of 290 inside, and what was under way at the close is outside."""
    rows = [Row(0, 50), Row(60, 90), Row(80, 150), Row(90, 210), Row(150, 290), Row(280, 301), Row(290, 400)]
    assert rates_of([window(opened_ms=100, closed_ms=300)], requests(*rows)) == {
        ("producer", 1): pytest.approx(30 / 0.2)
    }


def test_an_end_at_the_very_moment_of_opening_or_closing_is_where_the_stretch_begins_or_ends() -> None:
    rows = [Row(0, 100), Row(10, 200), Row(20, 300, messages=70)]
    found = rates_of([window(opened_ms=100, closed_ms=300)], requests(*rows))
    assert found == {("producer", 1): pytest.approx(80 / 0.2)}


def test_where_nothing_had_ended_before_a_window_opened_it_begins_there() -> None:
    found = rates_of([window(opened_ms=100, closed_ms=300)], requests(Row(0, 150), Row(0, 200)))
    assert found == {("producer", 1): pytest.approx(20 / 0.1)}


@pytest.mark.parametrize("rows", [[], [Row(0, 90)], [Row(0, 90), Row(0, 310)], [Row(0, 310)]])
def test_a_window_in_which_nothing_ended_has_no_rate(rows: list[Row]) -> None:
    assert rates_of([window(opened_ms=100, closed_ms=300)], requests(*rows)) == {}


def test_rows_of_other_windows_of_other_roles_and_of_failures_do_not_count() -> None:
    rows = [
        Row(0, 1000), Row(0, 2000, number=0), Row(0, 3000, number=2), Row(0, 500, messages=25, role="consumer"),
        Row(0, 9000, status="unavailable"),
    ]  # fmt: skip
    assert rates_of([window(window="both")], requests(*rows)) == {
        ("producer", 1): pytest.approx(10), ("consumer", 1): pytest.approx(50),
    }  # fmt: skip


def test_each_round_has_its_own_rate() -> None:
    rows = [Row(0, 1000), Row(2000, 2500, number=2), Row(3000, 3100, number=3, role="consumer")]
    windows = [window(1), window(2, round=2), window(3, window="consumption")]
    assert rates_of(windows, requests(*rows)) == {
        ("producer", 1): pytest.approx(10), ("producer", 2): pytest.approx(20), ("consumer", 1): pytest.approx(100),
    }  # fmt: skip


@pytest.mark.parametrize(("foreign", "rate"), [((0.5, 0.2), 20), ((0.2, 0.5), 10), ((0.3, 0.3), 10)])
def test_of_two_attempts_the_less_disturbed_counts_and_of_equals_the_first(
    foreign: tuple[float, float], rate: float
) -> None:
    windows = [window(n, attempt=n, foreign_cores=cores) for n, cores in enumerate(foreign, start=1)]
    found = rates_of(windows, requests(Row(0, 1000), Row(5000, 5500, number=2)))
    assert found == {("producer", 1): pytest.approx(rate)}


# --- the statistic --------------------------------------------------------------------------------------------


def test_the_quantiles_are_the_reports() -> None:
    for degrees in range(1, DEGREES_MAX + 1):
        assert quantile(degrees) == pytest.approx(student_t.quantile(degrees), abs=1e-9)


def test_one_block_knows_nothing_and_equal_blocks_know_all() -> None:
    assert half_width([]) == half_width([0.1]) == NOTHING_KNOWN
    assert half_width([0.7, 0.7, 0.7]) == 0


def test_the_interval_of_two_blocks_by_hand() -> None:
    logs = [math.log(1.9), math.log(2.1)]
    # The spread of two is their distance / sqrt 2, the error of their mean the distance / 2.
    assert half_width(logs) == pytest.approx(12.706204736 * abs(logs[0] - logs[1]) / 2)


def test_architectures_are_paired_by_round_and_a_block_is_the_mean_of_its_rounds() -> None:
    one = {("producer", 1): 100.0, ("producer", 2): 400.0, ("consumer", 1): 5.0, ("producer", 3): 7.0}
    other = {("producer", 1): 50.0, ("producer", 2): 50.0, ("consumer", 2): 5.0}
    assert block_means(one, other) == {"producer": pytest.approx((math.log(2) + math.log(8)) / 2)}


@given(st.lists(st.floats(-3, 3), min_size=2, max_size=9), st.floats(0.1, 10))
def test_the_width_does_not_hang_on_which_is_divided_by_which_nor_on_the_ratio(
    logs: list[float], factor: float
) -> None:
    shifted = [math.log(factor) - log for log in logs]
    assert half_width(shifted) == pytest.approx(half_width(logs), rel=1e-6, abs=1e-9)


# --- what a run knows -----------------------------------------------------------------------------------------

THREE = plan(
    architectures="architectures: {dsbs: {coordinator: dsbs}, static: {coordinator: static}, "
    "zookeeper: {coordinator: zookeeper}}",
    experiments="experiments: {one: {message_size: 8B, batch_size: [10, 20], mode: split}}",
    profile="{experiments: one, messages: 300, tries: 3, budget_s: 60}",
)
ASKED = plan(
    architectures="architectures: {dsbs: {coordinator: dsbs}, static: {coordinator: static}, "
    "zookeeper: {coordinator: zookeeper}}",
    experiments="experiments: {one: {message_size: 8B, batch_size: [10, 20], mode: split}}",
    profile="{experiments: one, messages: 300, tries: 3, budget_s: 60, primary: [[dsbs, static]]}",
)
TARGET = math.log1p(0.1)


class Told(Precision):
    """A precision that is told each trial's rates; all trials are valid but those that have none."""

    def __init__(self, of: Plan, results: ResultsFolder, rates: dict[str, Rates]) -> None:
        super().__init__(of, results)
        self._rates = rates


class AllValid(ResultsFolder):
    def __init__(self, path: Path, trials: Sequence[str]) -> None:
        super().__init__(path)
        self._trials = trials

    def finished_trials(self) -> dict[str, tuple[str, str]]:
        return dict.fromkeys(self._trials, ("valid", ""))


def told(of: Plan, rate: Any) -> Told:
    """`rate` of a trial, at both ends; None where it was not valid."""
    rates: dict[str, Rates] = {
        trial.id: {("producer", 1): found, ("consumer", 1): found}
        for trial in of.trials
        if (found := rate(trial)) is not None
    }
    return Told(of, AllValid(Path(), list(rates)), rates)


def scattered(trial: Trial) -> float:
    """dsbs is 2 times static, and in odd blocks a little more; zookeeper jumps."""
    base = {"dsbs": 200.0 * (1 + 0.04 * (trial.block % 2)), "static": 100.0, "zookeeper": 10.0 * trial.block}
    return base[trial.architecture.name]


def test_the_least_known_pair_says_how_much_is_missing() -> None:
    need = told(THREE, scattered).need(3)
    assert need.keys() == {cell.id for cell in THREE.cells}
    against_static = [math.log(number / 10) for number in (1, 2, 3)]
    against_dsbs = [math.log(10 / 208), math.log(20 / 200), math.log(30 / 208)]
    widest = max(half_width(against_static), half_width(against_dsbs))
    for found in need.values():
        assert found == pytest.approx(widest / TARGET)


def test_with_questions_only_their_pairs_count() -> None:
    blocks = [math.log(2.08), math.log(2.0), math.log(2.08)]
    for found in told(ASKED, scattered).need(3).values():
        assert found == pytest.approx(half_width(blocks) / TARGET)


def test_later_blocks_and_trials_that_are_not_valid_do_not_count() -> None:
    known = told(ASKED, lambda trial: None if (trial.architecture.name, trial.block) == ("static", 2) else 100.0)
    assert set(known.need(1).values()) == {NOTHING_KNOWN / TARGET}
    assert set(known.need(2).values()) == {NOTHING_KNOWN / TARGET}
    assert set(known.need(3).values()) == {0.0}


def test_one_architecture_alone_has_nothing_to_be_known() -> None:
    alone = plan(profile="{experiments: one, messages: 300, tries: 1, budget_s: 60}")
    assert set(told(alone, lambda _: 1.0).need(1).values()) == {0.0}


POWERS = st.integers(-20, 20).map(lambda power: 2.0**power)  # whose logarithms are exact up to their sign


@given(st.lists(POWERS, min_size=12, max_size=12))
def test_which_side_is_ahead_changes_nothing_that_is_decided(rates: list[float]) -> None:
    """Every rate of one side is given to the other: all is measured in the same rounds."""

    def of(*, swapped: bool) -> Told:
        sides = {"dsbs": 1, "static": 0} if swapped else {"dsbs": 0, "static": 1}
        cells = [cell.id for cell in ASKED.cells]

        def rate(trial: Trial) -> float:
            if trial.block > 3 or trial.architecture.name not in sides:
                return 1.0
            place = 4 * (trial.block - 1) + 2 * cells.index(trial.cell.id) + sides[trial.architecture.name]
            return rates[place]

        return told(ASKED, rate)

    spent = {"windows": 21.0}
    for block in (2, 3, 4):
        found = [rounds_for(ASKED, block, spent, {"1": 10.0}, of(swapped=swapped)) for swapped in (False, True)]
        assert found[0] == found[1]


def test_rates_are_read_from_the_records_of_each_trial_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = ResultsFolder(tmp_path)
    read = []

    def counted(windows: Sequence[Mapping[str, Any]], rows: pa.Table) -> Rates:
        read.append(windows)
        return rates_of(windows, rows)

    monkeypatch.setattr(precision, "rates_of", counted)
    for trial in ASKED.trials:
        if trial.block < 3 and trial.architecture.name != "zookeeper":
            record = measured(trial, producer=scattered(trial), consumer=scattered(trial))
            results.write_trial(record.row(ASKED), record.requests or [])
    known = Precision(ASKED, results)
    width = half_width([math.log(2.08), math.log(2.0)])
    for _ in range(2):
        assert list(known.need(2).values()) == [pytest.approx(width / TARGET, rel=1e-6)] * 2
    assert len(read) == 2 * 2 * 2
