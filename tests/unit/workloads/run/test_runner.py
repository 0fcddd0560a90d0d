"""A run's decisions: which blocks and rounds there are, what is measured again, and what the manifest says of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from tests.unit.workloads.run.plans import manifest_of, plan
from tests.unit.workloads.trial.records import measured
from workloads.errors import UserError
from workloads.results import ResultsFolder
from workloads.run import runner
from workloads.run.allocation import BLOCKS_MIN, ROUNDS_MAX
from workloads.run.progress import PlainProgress
from workloads.run.runner import DiskFull, Run, SpecChanged
from workloads.spec.plan import Fleet, Plan, Trial

TWO: Final = "architectures: {dsbs: {coordinator: dsbs}, static: {coordinator: static}}"
ONE_CELL: Final = "experiments: {one: {message_size: 8B, batch_size: 20, mode: split}}"
BLOCK_S: Final = 10.0  # with one round


def of_budget(budget_s: int, tries: int = 2) -> Plan:
    profile = f"{{experiments: one, messages: 300, tries: {tries}, budget_s: {budget_s}}}"
    return plan(architectures=TWO, experiments=ONE_CELL, profile=profile)


class Killed(BaseException):
    """The run's process is gone."""


class Shown(PlainProgress):
    def __init__(self) -> None:
        self.grown: list[int] = []

    def grows(self, trials: int) -> None:
        self.grown.append(trials)
        super().grows(trials)


class Made:
    """Runs of plans without any process: trials have the rates that are told, and a round takes half of `BLOCK_S`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path, of: Plan, rps: Callable[[Trial], float]) -> None:
        self.results = ResultsFolder(folder)
        self.of = of
        self.rps = rps
        self.fleets: list[tuple[int, Fleet, int]] = []  # block, what was left of it, rounds of its first cell
        self.killed_in: int | None = None  # block
        monkeypatch.setattr(runner, "new_manifest", manifest_of)
        made = self

        async def fleet(run: Run, block: int, fleet: Fleet, rounds: Mapping[str, int]) -> None:
            await made._fleet(run, block, fleet, rounds)

        monkeypatch.setattr(Run, "_fleet", fleet)

    def run(self) -> Shown:
        shown = Shown()
        asyncio.run(Run(self.of, self.results, shown).run())
        return shown

    async def _fleet(self, run: Run, block: int, fleet: Fleet, rounds: Mapping[str, int]) -> None:
        if block == self.killed_in:
            raise Killed
        self.fleets.append((block, fleet, rounds[fleet.visits[0].cell.id]))
        for visit in fleet.visits:
            turns = rounds[visit.cell.id]
            run._spent.add("windows", BLOCK_S / 2 * (1 + turns) / len(self.of.cells))
            for trial in visit.trials:
                rate = self.rps(trial)
                run._end(measured(trial, turns, producer=rate, consumer=rate))

    @property
    def manifest(self) -> dict[str, Any]:
        found = self.results.read_manifest()
        assert found is not None
        return found


def settled(trial: Trial) -> float:
    return {"dsbs": 1000.0, "static": 2000.0}[trial.architecture.name]


def scattered(trial: Trial) -> float:
    """Ratios that differ by some percent from block to block."""
    return 1000.0 * (1 + 0.06 * (trial.block % 2)) if trial.architecture.name == "dsbs" else 1000.0


def wild(trial: Trial) -> float:
    return 1000.0 * trial.block if trial.architecture.name == "dsbs" else 1000.0


def test_a_run_whose_ratios_are_known_at_once_has_its_tries_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Made(monkeypatch, tmp_path, of_budget(1000, tries=BLOCKS_MIN), settled)
    shown = made.run()
    assert [(block, rounds) for block, _, rounds in made.fleets] == [(1, 1), (2, ROUNDS_MAX), (3, 1), (4, 1), (5, 1)]
    assert shown.grown == []
    assert made.manifest["ended"]
    assert made.manifest["tries"] == BLOCKS_MIN
    assert made.manifest["planned"] == sorted(trial.id for trial in made.of.sure_trials)


def test_a_run_adds_blocks_until_its_ratios_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Made(monkeypatch, tmp_path, of_budget(1000), scattered)
    shown = made.run()
    rounds = [(block, rounds) for block, _, rounds in made.fleets]
    assert rounds == [(1, 1), (2, ROUNDS_MAX), (3, ROUNDS_MAX), (4, 1), (5, 1)]
    assert shown.grown == [2, 2, 2]
    assert made.manifest["tries"] == BLOCKS_MIN
    assert len(made.manifest["planned"]) == 2 * BLOCKS_MIN == len(made.results.finished_trials())


def test_a_run_whose_ratios_stay_unknown_ends_with_its_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Made(monkeypatch, tmp_path, of_budget(100), wild)
    made.run()
    found = [(block, rounds) for block, _, rounds in made.fleets]
    assert found == [(1, 1), (2, 8), (3, 8)], "10 s, 45 s and 45 s"
    assert sum(made.manifest["spent"].values()) == pytest.approx(100)


def test_a_run_without_a_budget_measures_every_cell_in_the_rounds_of_its_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = plan(architectures=TWO, experiments=ONE_CELL, profile="{experiments: one, messages: 99, tries: 2, rounds: 3}")
    made = Made(monkeypatch, tmp_path, of, wild)
    made.run()
    assert [(block, rounds) for block, _, rounds in made.fleets] == [(1, 3), (2, 3)]
    assert made.manifest["rounds"] == {str(block): {of.cells[0].id: 3} for block in (1, 2)}
    assert made.manifest["blocks"] == {"1": 20.0, "2": 20.0}


@pytest.mark.parametrize("killed_in", [2, 3, 4])
def test_a_run_that_goes_on_decides_as_one_that_was_not_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed_in: int
) -> None:
    whole = Made(monkeypatch, tmp_path / "whole", of_budget(120), wild)
    whole.run()
    parts = Made(monkeypatch, tmp_path / "parts", whole.of, wild)
    parts.killed_in = killed_in
    with pytest.raises(Killed):
        parts.run()
    assert parts.manifest["ended"] is None
    parts.killed_in = None
    parts.run()
    assert parts.fleets == whole.fleets
    for part in ("rounds", "blocks", "spent", "planned", "tries"):
        assert parts.manifest[part] == whole.manifest[part]


def test_what_was_decided_before_an_interruption_is_not_decided_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Made(monkeypatch, tmp_path, of_budget(100), wild)
    made.killed_in = 2
    with pytest.raises(Killed):
        made.run()
    decided = made.manifest["rounds"]["2"]
    made.killed_in = None
    monkeypatch.setattr(runner, "rounds_for", lambda *_: None)
    made.run()
    assert [(block, rounds) for block, _, rounds in made.fleets] == [(1, 1), (2, *decided.values())]


def test_a_run_that_is_over_starts_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Made(monkeypatch, tmp_path, of_budget(100), wild)
    made.run()
    before, made.fleets = made.manifest, []
    made.run()
    assert made.fleets == []
    assert {**made.manifest, "ended": None} == {**before, "ended": None}


def test_a_cell_that_lacks_one_trial_is_measured_again_on_all_architectures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else its windows would not lie in the same rounds. Cells that are whole stay as they are."""
    of = plan(
        architectures=TWO,
        experiments="experiments: {one: {message_size: 8B, batch_size: [10, 20, 50], mode: split, brokers: [3, 4]}}",
        profile="{experiments: one, messages: 300, tries: 2}",
    )
    made = Made(monkeypatch, tmp_path, of, settled)
    made.run()
    missing = of.trials[3]
    (tmp_path / "trials" / f"{missing.id.replace('/', '__')}.parquet").unlink()
    made.fleets = []
    made.run()
    ((block, fleet, _),) = made.fleets
    assert (block, fleet.cluster) == (missing.block, missing.cell.cluster)
    assert [visit.cell for visit in fleet.visits] == [missing.cell]
    assert [trial.architecture.name for trial in fleet.visits[0].trials] == ["dsbs", "static"]


def test_the_time_of_a_block_that_was_run_in_parts_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = plan(
        architectures=TWO,
        experiments="experiments: {one: {message_size: 8B, batch_size: 20, mode: split, brokers: [3, 4]}}",
        profile="{experiments: one, messages: 300, tries: 1}",
    )
    made = Made(monkeypatch, tmp_path, of, settled)
    second = of.blocks[0].fleets[1].cluster
    real = Made._fleet

    async def breaks(own: Made, run: Run, block: int, fleet: Fleet, rounds: Mapping[str, int]) -> None:
        if fleet.cluster == second:
            raise Killed
        await real(own, run, block, fleet, rounds)

    with monkeypatch.context() as patch:
        patch.setattr(Made, "_fleet", breaks)
        with pytest.raises(Killed):
            made.run()
    made.run()
    assert made.manifest["ended"]
    assert made.manifest["blocks"] == {}


def test_nothing_is_begun_where_something_lies_and_no_manifest(tmp_path: Path) -> None:
    (tmp_path / "trials").mkdir()
    with pytest.raises(UserError, match=r"is not empty \(trials\)"):
        Run(plan(), ResultsFolder(tmp_path), PlainProgress())


def test_a_folder_of_another_spec_is_refused(tmp_path: Path) -> None:
    results = ResultsFolder(tmp_path)
    results.write_manifest(manifest_of(of_budget(100)))
    with pytest.raises(SpecChanged, match="name a new folder with --out"):
        Run(plan(), results, PlainProgress())


def test_a_disk_that_refuses_ends_the_run_and_says_that_it_can_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Made(monkeypatch, tmp_path, of_budget(100), settled)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ResultsFolder, "write_trial", full)
    with pytest.raises(DiskFull, match=r"No space left on device: trial .* the same command goes on with it"):
        made.run()
    assert made.manifest["ended"] is None
