"""`brokerlab run`: which run is meant, and what `--dry-run` says; nothing is started here."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import pytest

from tests.made_records import MadeTrial, trial_row
from tests.unit.workloads.run.plans import manifest_of
from tests.unit.workloads.spec.files import FILE, text
from workloads.commands import run as command
from workloads.errors import UserError
from workloads.results import ResultsFolder
from workloads.spec.plan import Plan, resolve
from workloads.spec.spec import load

RESULTS = Path("results")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    small = "{experiments: batch-size, messages: 300, tries: 2, architectures: [dsbs, static]"
    more = "budget_s: 60"
    Path(FILE).write_text(text(profiles=f"profiles: {{small: {small}}}, sure: {small}, {more}}}}}"))


def asked(*words: str) -> tuple[Plan, Path]:
    return command._asked_for(parsed(*words))


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return parser.parse_args(["--profile", "small", *words])


def run_before(folder: Path, *, tries: int, ended: str | None = "then") -> None:
    plan = resolve(load(Path(FILE)), "small")
    ResultsFolder(folder).write_manifest(manifest_of(plan, ended=ended, tries=tries))


def test_tries_take_the_place_of_the_profiles() -> None:
    plan, out = asked("--tries", "5")
    assert (plan.effort.tries, len(plan.blocks)) == (5, 5)
    assert out == RESULTS / "small-1"


def test_tries_are_added_to_the_newest_run_though_it_has_ended() -> None:
    run_before(RESULTS / "small-1", tries=2)
    run_before(RESULTS / "small-2", tries=4)
    plan, out = asked("--tries", "+2")
    assert (plan.effort.tries, out) == (6, RESULTS / "small-2")


def test_the_same_command_goes_on_with_tries_that_were_interrupted_and_adds_no_more() -> None:
    run_before(RESULTS / "small-1", tries=4, ended=None)
    plan, out = asked("--tries", "+2")
    assert (plan.effort.tries, out) == (6, RESULTS / "small-1")


def test_tries_may_be_added_to_a_run_in_any_folder() -> None:
    run_before(Path("mine"), tries=3)
    plan, out = asked("--tries", "+1", "--out", "mine")
    assert (plan.effort.tries, out) == (4, Path("mine"))


@pytest.mark.parametrize("count", ["0", "-1", "+1", "٣", " 5", "1e3", "10_000_000_001"])
def test_messages_are_a_whole_number_as_in_the_file(count: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parsed("--messages", count)
    assert ended.value.code == 2
    assert (
        f"it must be a whole number from 1 to 10,000,000,000, in plain digits; not {count!r}" in capsys.readouterr().err
    )


def test_the_file_may_stand_behind_the_parts() -> None:
    Path(FILE).rename("mine.yaml")
    plan, _ = asked("--only", "mode=split", "try=2", "mine.yaml")
    assert {trial.cell.mode for trial in plan.trials} == {"split"}
    assert [block.number for block in plan.blocks] == [2]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--tries", "+2"], "there is no run results/small-N to add tries to"),
        (["--tries", "+2", "--out", "nowhere"], "nowhere holds no run to add tries to"),
        (["--tries", "-1"], "--tries cannot be '-1'"),
        (["--tries", "+"], "--tries cannot be ''"),
        (["--tries", "0"], "--tries cannot be '0'"),
        (["--tries", "many"], "--tries cannot be 'many'"),
    ],
)
def test_tries_that_cannot_be_are_refused(words: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message.replace("+", r"\+")):
        asked(*words)


def test_tries_of_the_command_line_take_the_place_of_a_budget() -> None:
    plan, _ = asked("--profile", "sure", "--tries", "3")
    assert (plan.effort.budget_s, len(plan.blocks)) == (None, 3)


def test_a_dry_run_says_the_order_and_starts_and_writes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(Path().rglob("*"))
    assert command.run(parsed("--dry-run", "--only", "mode=split")) == 0
    lines = capsys.readouterr().out.splitlines()
    plan = resolve(load(Path(FILE)), "small", ["mode=split"])
    assert [line.strip() for line in lines if line.startswith("    ")] == [
        visit.cell.id for block in plan.blocks for fleet in block.fleets for visit in fleet.visits
    ]
    assert lines[0].startswith(f"small: {len(plan.trials)} trials of 2 cells into results/small-1, about ")
    assert lines[1] == "block 1"
    assert lines[2].startswith(
        "  clusters of dsbs, static side by side (brokers=3, partitions=3, replication_factor=1, acks=1, fsync=never"
    )
    assert sorted(Path().rglob("*")) == before


def test_a_dry_run_says_what_is_done_and_what_may_not_be_needed(capsys: pytest.CaptureFixture[str]) -> None:
    """A cell is done in a block when it is on all architectures; else it is measured again as a whole."""
    plan = resolve(load(Path(FILE)), "sure")
    done, half = plan.blocks[1].fleets[0].visits[:2]
    run_before(Path("mine"), tries=2, ended=None)
    for trial in (*done.trials, half.trials[0]):
        ResultsFolder(Path("mine")).write_trial(trial_row(MadeTrial("static", name=trial.id)), [])
    assert command.run(parsed("--profile", "sure", "--dry-run", "--out", "mine")) == 0
    said = capsys.readouterr().out
    assert said.startswith("sure: at least 16 trials of 4 cells into mine, about ")
    assert said.endswith("more blocks, if the ratios are not known well enough by then and the budget lasts\n")
    first, second = said.split("block 2\n")
    assert "which is done" not in first
    assert f"    {done.cell.id}, which is done\n" in second
    assert second.count("which is done") == 1
    assert "block 3" not in said


@pytest.mark.parametrize("words", [[], ["--dry-run"]])
def test_a_folder_of_the_users_own_is_refused_and_nothing_in_it_is_touched(words: list[str]) -> None:
    theirs = Path("own", "work", "file")
    theirs.parent.mkdir(parents=True)
    theirs.write_text("precious")
    message = r"own is not empty \(work\) and has no manifest\.json, so it is no run's folder: name a new one with"
    with pytest.raises(UserError, match=message):
        command.run(parsed("--out", "own", *words))
    assert theirs.read_text() == "precious"
    assert sorted(Path("own").rglob("*")) == [theirs.parent, theirs]


def test_a_run_that_lost_its_manifest_is_not_taken_over() -> None:
    run_before(RESULTS / "small-1", tries=2, ended=None)
    ResultsFolder(RESULTS / "small-1").write_trial(trial_row(MadeTrial("static")), [])
    (RESULTS / "small-1" / "manifest.json").unlink()
    for words in ([], ["--out", str(RESULTS / "small-1")]):
        with pytest.raises(UserError, match=r"put the run's manifest\.json back"):
            command.run(parsed("--messages", "100", *words))


def test_a_folder_where_nothing_can_be_written_is_refused_as_that() -> None:
    with pytest.raises(UserError, match="/proc cannot be written to; name another folder with --out"):
        command.run(parsed("--out", "/proc/nowhere"))


def test_processors_that_are_not_there_are_refused_before_anything_is_started() -> None:
    with Path(FILE).open("a") as file:
        file.write("pin: {brokers: [0, 4000]}\n")
    usable = ", ".join(map(str, sorted(os.sched_getaffinity(0))))
    with pytest.raises(UserError, match=f"pin: brokers: 4000 cannot be used; usable here: {usable}"):
        command.run(parsed("--dry-run"))
