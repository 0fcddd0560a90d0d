"""`python -m analysis.compare` as a process: what it writes, says and refuses."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import pytest

from tests import made_records
from tests.made_records import MadeTrial
from workloads.processes.java import with_java
from workloads.results import ResultsFolder

pytestmark = [pytest.mark.java, pytest.mark.timeout(240)]


def run(folder: Path, dsbs_s: float, others: str = "") -> Path:
    """Three tries of two architectures in one published cell, `dsbs_s` being the windows of one."""
    made = [
        MadeTrial(name, window_s * (1 + number / 100), 0.4, 8, 20, "split", others, number)
        for name, window_s in (("zookeeper", 1.0), ("dsbs", dsbs_s))
        for number in (1, 2, 3)
    ]
    return made_records.write(folder, made)


def compared(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-m", "analysis.compare", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=with_java() | environment, check=False)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_two_runs_are_compared_rate_by_rate_and_verdict_by_verdict(tmp_path: Path) -> None:
    first, second = run(tmp_path / "first", 0.5), run(tmp_path / "second", 2.0)
    for folder, cores in ((first, 2), (second, 8)):
        ResultsFolder(folder).write_manifest(made_records.manifest(machine={"cores": cores}))
    ended = compared(first, second)
    assert ended.returncode == 0
    assert ended.stderr == "warning: machines differ: cores 2 and 8\n"
    out = tmp_path / "compare-first-second"
    assert {path.name for path in out.iterdir()} == {"rates.csv", "rates.md", "ratios.csv", "ratios.md"}
    found = {(row["architecture"], row["role"]): row for row in rows(out / "rates.csv")}
    assert float(found["dsbs", "production"]["ratio"]) == pytest.approx(0.25)
    assert found["dsbs", "production"]["verdict"] == "slower"
    assert found["zookeeper", "production"]["verdict"] == "undecided"
    pairs = {row["role"]: row for row in rows(out / "ratios.csv")}
    assert (pairs["production"]["verdict_first"], pairs["production"]["verdict_second"]) == ("faster", "slower")
    assert "Warning: machines differ" in (out / "rates.md").read_text()
    assert "dsbs against zookeeper: both runs say the same in 1 of 2 cells, the opposite in 1" in ended.stdout


def test_what_cannot_be_compared_is_one_line_before_spark_starts(tmp_path: Path) -> None:
    folder = run(tmp_path / "a", 0.5)
    for arguments in ((folder,), (folder, folder, folder), ("--paper", folder, folder)):
        ended = compared(*arguments, JAVA_HOME="/nonexistent")
        assert (ended.returncode, ended.stderr) == (2, "brokerlab: name two results folders, or one and --paper\n")
    ended = compared(folder, tmp_path / "nowhere", JAVA_HOME="/nonexistent")
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert "no such folder" in ended.stderr
    (folder / "manifest.json").write_text("{}")
    ended = compared("--paper", folder, JAVA_HOME="/nonexistent")
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert ended.stderr.startswith(f"brokerlab: {folder}/manifest.json was written by another version")
