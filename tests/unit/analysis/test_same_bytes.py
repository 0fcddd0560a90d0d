from __future__ import annotations

import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from analysis import publish
from analysis.findings import Findings
from tests import made_records
from tests.integration.analysis.cluster import ON_LOOPBACK, standalone
from workloads import results
from workloads.processes.java import with_java

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]
STEPS = 10


def outputs(folder: Path) -> dict[str, bytes]:
    raw = {results.TRIALS, results.REQUESTS, results.LATENCY}
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(p.relative_to(folder)): p.read_bytes() for p in files if p.relative_to(folder).parts[0] not in raw}


def skip_without_localhost() -> None:
    try:
        socket.getaddrinfo("localhost", 0)
    except OSError:
        pytest.skip("PySpark looks localhost up for a cluster, and this machine cannot; /etc/hosts says what it is")


def test_a_quiet_process_on_a_cluster_writes_the_same_bytes_into_any_folder_as_this_session_on_all_cores(
    analysed: Findings, run_folder: Path, tmp_path: Path
) -> None:
    skip_without_localhost()
    here, there, out = (tmp_path / name for name in ("here", "there", "elsewhere"))
    shutil.copytree(run_folder, there)
    written = made_records.manifest(profile="steady", started="2026-11-19T12:00:00+00:00")
    results.ResultsFolder(there).write_manifest(written)
    here.mkdir()
    with publish.work_folder(here) as work:
        publish.publish(here, work, analysed, publish.draw(analysed), written)
    cluster = tmp_path / "cluster"
    cluster.mkdir()
    command = [sys.executable, "-W", "error", "-m", "analysis", there.as_uri(), "--out", str(out)]
    command += ["--progress", "--memory-mb", "600"]
    with standalone(cluster) as master:
        ended = subprocess.run(
            [*command, "--master", master], env=with_java() | ON_LOOPBACK, capture_output=True, text=True, check=False
        )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert outputs(out) == outputs(here)
    lines = ended.stdout.splitlines()
    assert [line.partition(":")[0] for line in lines[:STEPS]] == [f"step {n}/{STEPS}" for n in range(1, STEPS + 1)]
    assert lines[STEPS:-1] == (out / "summary.txt").read_text().splitlines()
    assert lines[-1] == f"report: {out / 'report.html'}"
    assert {path.name for path in out.iterdir()} == {"tables", "figures", "report.html", "summary.txt"}
    assert {path.name for path in there.iterdir()} == {
        *(results.TRIALS, results.REQUESTS, results.LATENCY, results.MANIFEST)
    }
