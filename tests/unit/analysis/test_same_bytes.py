from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from analysis import publish
from analysis.charts import Drawn
from analysis.findings import Findings
from tests.integration.analysis.cluster import standalone
from workloads import results

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]
STEPS = 10


def outputs(folder: Path) -> dict[str, bytes]:
    raw = {results.TRIALS, results.REQUESTS, results.LATENCY}
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(p.relative_to(folder)): p.read_bytes() for p in files if p.relative_to(folder).parts[0] not in raw}


def test_a_quiet_process_on_a_cluster_of_two_workers_writes_the_same_bytes_as_this_session_on_all_cores(
    found: Findings, drawn: list[Drawn], run_folder: Path, tmp_path: Path
) -> None:
    here, there = tmp_path / "here" / "run", tmp_path / "there" / "run"
    here.mkdir(parents=True)
    with publish.work_folder(here) as work:
        publish.publish(here, work, found, drawn, None)
    shutil.copytree(run_folder, there)
    cluster = tmp_path / "cluster"
    cluster.mkdir()
    command = [sys.executable, "-W", "error", "-m", "analysis", there.as_uri(), "--progress", "--memory-mb", "600"]
    with standalone(cluster) as master:
        ended = subprocess.run([*command, "--master", master], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert outputs(there) == outputs(here)
    lines = ended.stdout.splitlines()
    assert [line.partition(":")[0] for line in lines[:STEPS]] == [f"step {n}/{STEPS}" for n in range(1, STEPS + 1)]
    assert lines[STEPS:-1] == (there / "summary.txt").read_text().splitlines()
    assert lines[-1] == f"report: {there / 'report.html'}"
    assert {path.name for path in there.iterdir()} == {
        *(results.TRIALS, results.REQUESTS, results.LATENCY),
        *("tables", "figures", "report.html", "summary.txt"),
    }
