"""Which folder a run takes, and that it is its alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.workloads.run.plans import manifest_of, plan
from workloads.errors import UserError
from workloads.results import ResultsFolder
from workloads.run.folders import FolderInUse, RunFolder, choose
from workloads.run.manifest import new_manifest
from workloads.spec.plan import Plan

PLAN = plan()


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return tmp_path / "results"


def run_before(folder: Path, of: Plan, *, ended: str | None) -> None:
    ResultsFolder(folder).write_manifest(manifest_of(of, ended=ended))


def test_the_first_run_gets_the_first_number(results: Path) -> None:
    assert choose(results, PLAN) == results / "steady-1"


def test_an_interrupted_run_is_gone_on_with(results: Path) -> None:
    run_before(results / "steady-9", PLAN, ended="then")
    run_before(results / "steady-10", PLAN, ended=None)
    assert choose(results, PLAN) == results / "steady-10"


def test_after_a_run_that_ended_comes_the_next_number(results: Path) -> None:
    run_before(results / "steady-10", PLAN, ended="then")
    assert choose(results, PLAN) == results / "steady-11"


def test_an_interrupted_run_of_another_spec_is_left_alone(results: Path) -> None:
    run_before(results / "steady-3", plan(profile="{experiments: one, messages: 400, tries: 1}"), ended=None)
    assert choose(results, PLAN) == results / "steady-4"


def test_folders_of_other_names_do_not_count(results: Path) -> None:
    for name in ("steady-x", "mysteady-7", "steady-2.old", "latest"):
        (results / name).mkdir(parents=True)
    assert choose(results, PLAN) == results / "steady-1"


def test_a_damaged_manifest_of_the_newest_is_told(results: Path) -> None:
    (results / "steady-1").mkdir(parents=True)
    (results / "steady-1" / "manifest.json").write_text("{")
    with pytest.raises(UserError, match="is damaged"):
        choose(results, PLAN)


def test_a_second_run_in_a_folder_is_refused_while_the_first_is_there(results: Path) -> None:
    with RunFolder(results), pytest.raises(FolderInUse, match="name another folder with --out"), RunFolder(results):
        pass
    with RunFolder(results):
        pass


def test_a_folder_that_cannot_be_one_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(UserError, match="cannot be a results folder"), RunFolder(path):
            pass


def test_what_lies_in_a_folder_without_a_manifest_is_left_as_it_is(results: Path) -> None:
    (results / "work").mkdir(parents=True)
    with pytest.raises(UserError, match=r"is not empty \(work\) and has no manifest\.json"), RunFolder(results):
        pass
    assert [path.name for path in results.iterdir()] == ["work"]


def test_a_run_that_was_killed_before_its_manifest_was_there_is_gone_on_with(results: Path) -> None:
    with RunFolder(results / "steady-1") as folder:
        (folder.path / ".manifest.json.4711.tmp").write_text("{")
    assert choose(results, PLAN) == results / "steady-1"
    with RunFolder(results / "steady-1"):
        pass


def test_latest_points_to_the_newest_and_is_moved_in_one_step(results: Path) -> None:
    for name in ("steady-1", "steady-2"):
        with RunFolder(results / name) as folder:
            folder.be_latest()
    assert (results / "latest").resolve() == (results / "steady-2").resolve()
    assert sorted(path.name for path in results.iterdir()) == ["latest", "steady-1", "steady-2"]


def test_a_folder_that_somebody_named_latest_is_not_replaced(results: Path) -> None:
    (results / "latest" / "mine").mkdir(parents=True)
    with RunFolder(results / "steady-1") as folder:
        folder.be_latest()
    assert (results / "latest" / "mine").is_dir()


@pytest.mark.java
def test_a_manifest_says_where_the_run_comes_from() -> None:
    asked = plan(architectures="architectures: {slow: {coordinator: zookeeper, metadata: watch}}")
    manifest = new_manifest(asked)
    assert json.loads(json.dumps(manifest)).keys() == manifest.keys()
    assert manifest["spec_hash"] == asked.spec_hash
    assert manifest["versions"]["ZooKeeper"].startswith("3.")
    (architecture,) = manifest["architectures"]
    assert architecture == {
        "name": "slow", "system": "brokerlab", "row": "zookeeper", "metadata": "watch", "offsets": "zookeeper_each",
        "delay_us": 0,
    }  # fmt: skip
    assert "ZooKeeper" not in new_manifest(PLAN)["versions"], "what is not used has no version"
    assert manifest["versions"]["grpcio"] != "not installed"
    machine = manifest["machine"]
    assert machine["memory_bytes"] > 2**20
    assert {"load_at_start", "kernel", "governor", "processor"} <= machine.keys()
    assert machine["scheduling"] == "SCHED_BATCH"
    assert int(machine["limits"]["open_files"].replace("unlimited", "1")) > 0
    assert manifest["ended"] is None
