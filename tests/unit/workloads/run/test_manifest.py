"""Where a run comes from is written down before anything runs, as far as a later run and the report read it."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path

import pytest

from tests.unit.workloads.run.plans import plan
from workloads.results import SCHEMA_VERSION, ResultsFolder, manifest_fault
from workloads.run import manifest
from workloads.run.manifest import commit, machine, new_manifest
from workloads.spec.plan import Plan

OF = plan(
    architectures="architectures: {dsbs: {coordinator: dsbs}, a: {coordinator: static}, b: {coordinator: static}}",
    profile="{experiments: one, messages: 300, tries: 2, rounds: 3, budget_s: 90, precision: 5%, primary: [[dsbs, a]]}",
)


@pytest.fixture(scope="module")
def made() -> dict[str, object]:
    return new_manifest(OF)


def test_a_manifest_is_one_of_ours_and_survives_its_file(made: dict[str, object], tmp_path: Path) -> None:
    assert manifest_fault(made) == ""
    folder = ResultsFolder(tmp_path)
    folder.write_manifest(made)
    assert folder.manifest_to_go_on_with() == json.loads(json.dumps(made))


def test_it_says_what_was_asked_for(made: dict[str, object]) -> None:
    assert (made["schema_version"], made["spec_hash"], made["profile"], made["seed"]) == (
        SCHEMA_VERSION, OF.spec_hash, "steady", 1,
    )  # fmt: skip
    assert made["length"] == {"messages": 300, "duration_s": None, "lead_s": 0.1}
    assert made["effort"] == {"tries": 2, "rounds": 3, "budget_s": 90.0, "precision": 0.05}
    assert (made["primary"], made["tries"], made["warmup"]) == ([["dsbs", "a"]], 2, 0)
    cells = made["cells"]
    assert isinstance(cells, list)
    assert [cell["id"] for cell in cells] == [cell.id for cell in OF.cells]
    assert cells[0]["workload"]["in_flight"] == 5


def test_architectures_stand_in_it_with_row_system_and_options(made: dict[str, object]) -> None:
    found = made["architectures"]
    assert isinstance(found, list)
    assert [(each["name"], each["row"], each["system"]) for each in found] == [
        ("dsbs", "dsbs", "brokerlab"), ("a", "static", "brokerlab"), ("b", "static", "brokerlab"),
    ]  # fmt: skip


def test_nothing_has_been_spent_decided_or_planned_yet(made: dict[str, object]) -> None:
    assert made["ended"] is None
    assert {made[key] == {} for key in ("spent", "blocks", "rounds", "sustained")} == {True}
    assert made["planned"] == []


def test_versions_name_python_java_and_every_package(made: dict[str, object]) -> None:
    found = made["versions"]
    assert isinstance(found, dict)
    assert found["Python"] == platform.python_version()
    assert {"Java", *manifest.PACKAGES} <= found.keys()
    assert found["pyarrow"] != "not installed"


def test_the_machine_is_described_as_the_run_finds_it() -> None:
    found = machine()
    assert found["cores"] == len(os.sched_getaffinity(0))
    assert found["memory_bytes"] > 2**28
    assert found["scheduling"].startswith("SCHED_")
    assert found["limits"]["open_files"].isdecimal() or found["limits"]["open_files"] == "unlimited"


def test_outside_a_checkout_there_is_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Installed, perhaps inside a checkout of something else."""
    monkeypatch.setattr(manifest, "__file__", str(tmp_path / "workloads" / "run" / "manifest.py"))
    assert commit() == ""


def test_without_git_there_is_no_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert commit() == ""


def test_a_profile_for_one_architecture_has_a_manifest_without_questions() -> None:
    alone: Plan = plan()
    assert new_manifest(alone)["primary"] == []
