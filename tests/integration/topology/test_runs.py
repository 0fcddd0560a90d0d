"""Runs with a topology: processes are as far apart as the file says, and nothing is left, whatever becomes of a run."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from shutil import which

import pytest

from tests.integration.processes.running import command_of, descendants
from tests.integration.runs.short_runs import Hooks, rows, run_command, run_here, spec_file
from tests.integration.runs.test_interruption import interrupted
from tests.unit.workloads.run.plans import plan
from workloads.spec.plan import Visit

pytestmark = [pytest.mark.machine, pytest.mark.usefixtures("namespaces")]

ZOOKEEPER = "architectures: {zookeeper: {coordinator: zookeeper}}"
STATIC = "architectures: {static: {coordinator: static}}"
FAR = "{message_size: 32B, batch_size: 10, mode: split, topology: namespaces, rtt_ms: {broker_zookeeper: 2}}"
SLOW = "{message_size: 32B, batch_size: 10, mode: split, topology: namespaces, rate: [200, 201], producers: 2}"


def links_of(pid: int) -> list[int]:
    return [child for child in descendants(pid) if "workloads.topology.links" in command_of(child)]


@pytest.mark.java
def test_what_a_broker_asks_zookeeper_takes_the_round_trip_that_the_file_says(tmp_path: Path) -> None:
    far = plan(
        architectures=ZOOKEEPER,
        experiments=f"experiments: {{one: {FAR}}}",
        profile="{experiments: one, messages: 200, tries: 1}",
    )
    assert run_here(tmp_path, far).valid == 1
    (row,) = rows(tmp_path).values()
    assert (row["topology"], row["rtt_ms"]) == ("namespaces", "broker_zookeeper_2")
    lookups = [each for each in row["coordination"] if each["operation"] == "lookup"]
    assert sum(each["count"] for each in lookups) >= 20
    assert all(each["wait_s"] >= 0.002 * each["count"] for each in lookups)
    assert {each["role"] for each in row["resources"]} == {"broker", "coordinator", "producer", "consumer", "network"}


def test_a_trial_whose_links_are_killed_fails_with_the_reason(tmp_path: Path) -> None:
    slow = plan(architectures=STATIC, experiments=f"experiments: {{one: {SLOW}}}")

    def kill(visit: Visit) -> None:
        if "rate=200" in visit.cell.id:
            (links,) = links_of(os.getpid())
            os.kill(links, signal.SIGKILL)

    summary = run_here(tmp_path, slow, Hooks(kill))
    assert (summary.valid, summary.failed) == (1, 1)
    failed, _ = sorted(rows(tmp_path).values(), key=lambda row: str(row["cell"]))
    assert (failed["verdict"], failed["rate"]) == ("failed", 200)
    assert "links was ended by SIGKILL" in failed["reason"]
    assert not links_of(os.getpid())


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_a_run_that_is_ended_leaves_no_namespace_and_no_process(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    spec = spec_file(tmp_path, architectures=STATIC, experiments=f"experiments: {{one: {SLOW}}}")
    ended, _, errors = interrupted(run_command(spec, tmp_path / "results"), number)  # it looks for what is left
    assert ended == code, errors


def test_a_machine_that_cannot_have_it_refuses_the_run_before_anything_is_started(tmp_path: Path) -> None:
    spec = spec_file(tmp_path, architectures=STATIC, experiments=f"experiments: {{one: {SLOW}}}")
    programs = tmp_path / "programs"
    programs.mkdir()
    nsenter = which("nsenter")
    assert nsenter is not None
    (programs / "nsenter").symlink_to(nsenter)
    run = subprocess.run(
        run_command(spec, tmp_path / "results"),
        env={**os.environ, "PATH": str(programs)}, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (run.returncode, run.stderr) == (
        2,
        "brokerlab: topology namespaces: ip is not there (`ip` comes with iproute2)\n",
    )
    assert not (tmp_path / "results").exists()
