"""When there are blocks enough: the statistic, what it is read from, and what a run makes of it."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.statistics import student_t
from tests.made_records import MadeTrial, request_table, trial_row, window_s
from tests.unit.workloads.run.plans import plan
from workloads.results import SCHEMA_VERSION, ResultsFolder
from workloads.run import runner
from workloads.run.precision import DEGREES_MAX, Precision, quantile, rates_of, ratio_interval, widest
from workloads.run.progress import PlainProgress
from workloads.run.runner import Run
from workloads.spec.plan import Leg, Plan

UNTIL = plan(
    architectures="architectures: {dsbs: {coordinator: dsbs}, static: {coordinator: static}}",
    experiments="experiments: {one: {message_size: 8B, batch_size: 20, mode: split}}",
    profile="{experiments: one, messages: 300, tries: 2, until: {ratio_interval: 10%, tries_max: 6}}",
)


def test_the_quantiles_are_the_reports() -> None:
    for degrees in range(1, DEGREES_MAX + 1):
        assert quantile(degrees) == pytest.approx(student_t.quantile(degrees), abs=1e-9)


def test_one_try_knows_nothing_and_equal_tries_know_all() -> None:
    assert ratio_interval([]) == ratio_interval([0.1]) == math.inf
    assert ratio_interval([0.7, 0.7, 0.7]) == 0


def test_the_interval_of_two_tries_by_hand() -> None:
    logs = [math.log(1.9), math.log(2.1)]
    half = 12.706204736 * abs(logs[0] - logs[1]) / 2  # the spread of two is their distance / sqrt 2, the error / 2
    assert ratio_interval(logs) == pytest.approx(math.exp(half) - 1)


@given(st.lists(st.floats(-3, 3), min_size=2, max_size=9), st.floats(0.1, 10))
def test_the_interval_does_not_hang_on_which_is_divided_by_which_nor_on_the_ratio(
    logs: list[float], factor: float
) -> None:
    shifted = [math.log(factor) - log for log in logs]
    assert ratio_interval(shifted) == pytest.approx(ratio_interval(logs), rel=1e-6, abs=1e-9)


def test_the_least_known_ratio_of_all_cells_roles_and_pairs_counts() -> None:
    rates = {("a", "producer", "one"): {1: 100.0, 2: 100.0}}
    assert widest(rates, ["one"]) == 0, "where there is no pair, nothing is unknown"
    rates["a", "producer", "other"] = {1: 200.0, 2: 200.0}
    assert widest(rates, ["one", "other"]) == 0
    rates["a", "producer", "third"] = {1: 200.0, 2: 210.0}
    assert widest(rates, ["one", "other", "third"]) == pytest.approx(ratio_interval([0, math.log(1.05)]))


def test_tries_of_which_one_half_is_missing_do_not_count() -> None:
    rates = {("a", "producer", "one"): {1: 1.0, 2: 1.0}, ("a", "producer", "other"): {2: 1.0, 3: 1.0}}
    assert widest(rates, ["one", "other"]) == math.inf


def test_rates_go_from_the_first_send_to_the_last_completion() -> None:
    made = MadeTrial("static", production_s=0.5, consumption_s=0.25, messages=1000)
    assert rates_of(request_table(made)) == pytest.approx({"producer": 2000, "consumer": 4000})


# --- a run ----------------------------------------------------------------------------------------------------


class Shown(PlainProgress):
    def __init__(self) -> None:
        self.grown: list[int] = []

    def grows(self, trials: int) -> None:
        self.grown.append(trials)
        super().grows(trials)


def run(folder: Path, monkeypatch: pytest.MonkeyPatch, rps: Any, of: Plan = UNTIL) -> Shown:
    """Run a plan whose trials have these rates, without any process; `rps` of architecture and try."""

    async def leg(own: Run, leg: Leg) -> None:
        for trial in leg.trials:
            if trial.id not in own._over:
                rate = rps(trial.architecture.name, trial.block)
                made = MadeTrial(
                    trial.architecture.name, window_s(rate), window_s(rate), try_=trial.block, name=trial.id,
                    columns={"cell": trial.cell.id},
                )  # fmt: skip
                own._results.write_trial(trial_row(made), request_table(made))
                own._over.add(trial.id)

    monkeypatch.setattr(Run, "_leg", leg)
    monkeypatch.setattr(runner, "new_manifest", lambda of: {
        "schema_version": SCHEMA_VERSION, "spec_hash": of.spec_hash, "profile": "x", "started": "", "ended": None,
        "planned": [], "sizes": {}, "tries": of.tries,
    })  # fmt: skip
    shown = Shown()
    asyncio.run(Run(of, ResultsFolder(folder), shown).run())
    return shown


def tries(folder: Path) -> int:
    manifest = ResultsFolder(folder).read_manifest()
    assert manifest is not None
    assert manifest["ended"]
    found: int = manifest["tries"]
    assert set(manifest["planned"]) == ResultsFolder(folder).finished_trials().keys()
    assert len(manifest["planned"]) == 2 * found
    return found


def test_a_run_whose_ratios_are_known_at_once_has_its_tries_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = run(tmp_path, monkeypatch, lambda name, _: {"dsbs": 1000.0, "static": 2000.0}[name])
    assert tries(tmp_path) == 2
    assert shown.grown == []


def scattered(name: str, block: int) -> float:
    """Ratios that differ by some percent from try to try."""
    return 1000.0 * (1 + 0.06 * (block % 2)) if name == "dsbs" else 1000.0


def test_a_run_adds_blocks_until_its_ratios_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = run(tmp_path, monkeypatch, scattered)
    found = tries(tmp_path)
    precision = Precision(UNTIL, ResultsFolder(tmp_path))
    assert [precision.reached(0.1, number) for number in range(1, 7)] == [n >= found for n in range(1, 7)]
    assert found == 3
    assert shown.grown == [2]


def test_a_run_that_goes_on_decides_as_one_that_was_not_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path, monkeypatch, scattered)
    again = run(tmp_path, monkeypatch, scattered)
    assert tries(tmp_path) == 3
    assert again.grown == [0], "the third block was needed, and is there"


def test_a_run_whose_ratios_stay_unknown_ends_at_the_most_tries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path, monkeypatch, lambda name, block: 1000.0 * block if name == "dsbs" else 1000.0)
    assert tries(tmp_path) == 6
