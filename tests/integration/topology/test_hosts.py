"""Brokers and ZooKeeper through real ssh, on addresses of this machine: they serve, are audited, and end with it."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.integration.processes.running import PROC, alive, eventually, processes_of
from tests.integration.runs.short_runs import rows, run_command, spec_file, started
from tests.integration.topology.ssh_server import HOSTS

pytestmark = [pytest.mark.java, pytest.mark.machine]

SLOW = "{message_size: 32B, batch_size: 10, mode: split, rate: [200, 201]}"


def spec_with(folder: Path, config: Path) -> Path:
    first, second = HOSTS
    return spec_file(
        folder,
        architectures="architectures: {zookeeper: {coordinator: zookeeper}}",
        cluster="cluster: {topology: hosts, brokers: 2, partitions: 2}\n"
        f"hosts: {{brokers: [{first}, {second}], zookeeper: {second}, ssh_config: {config}}}",
        experiments=f"experiments: {{one: {SLOW}}}",
        trials="trials: {warmup: 0, seed: 1, timeout_s: 90}",
    )


def parent(pid: int) -> int:
    return int((PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])


def served_from(folder: Path) -> set[int]:
    """The brokers and the ZooKeeper server of a run: what ssh became on the other side."""
    found = processes_of(folder / "work")
    return {pid for pid, words in found.items() if "tether.py" not in words and not words.startswith("ssh ")}


@pytest.mark.timeout(300)  # of a busy machine; each of some 20 sessions takes a key exchange
def test_a_run_on_hosts_is_audited_and_ends_with_its_sessions_when_it_is_killed_and_goes_on(
    tmp_path: Path, ssh_config: Path
) -> None:
    out = tmp_path / "results"
    words = run_command(spec_with(tmp_path, ssh_config), out)
    run = started(words)
    assert run.stdout is not None
    try:
        assert any(line.startswith("[1/2") for line in run.stdout), run.communicate()
        there = served_from(out)
        assert len(there) == 3, "two brokers and ZooKeeper"
        assert all("sshd" in (PROC / str(parent(pid)) / "comm").read_text() for pid in there)
    finally:
        run.send_signal(signal.SIGKILL)
        run.communicate()
    eventually(lambda: not any(alive(pid) for pid in there), "what ran on the hosts is gone")

    again = subprocess.run(words, capture_output=True, text=True, check=False, timeout=200)
    assert (again.returncode, again.stderr) == (0, ""), again.stdout
    for row in rows(out).values():
        assert (row["verdict"], row["topology"], row["stored"]) == ("valid", "hosts", 200)
        assert {each["role"] for each in row["resources"]} == {"producer", "consumer"}, "the others' are not read"
        assert any(each["operation"] == "lookup" for each in row["coordination"])
    assert all(path.stat().st_size for path in out.glob("logs/**/zookeeper.log")), "what it says comes back"
    assert not (out / "work").exists()
    if os.geteuid() == 0:  # then the host has a disk of its own there
        left = subprocess.run(["ssh", "-F", ssh_config, HOSTS[0], f"ls {out}"], capture_output=True, check=True)
        assert left.stdout == b""
    assert not processes_of(out)


@pytest.mark.usefixtures("ssh")
def test_a_host_that_cannot_be_reached_refuses_the_run_before_anything_is_started(tmp_path: Path) -> None:
    nobody = tmp_path / "ssh_config"
    nobody.write_text("Host 127.0.0.*\n  Port 9\n")
    run = subprocess.run(
        run_command(spec_with(tmp_path, nobody), tmp_path / "results"),
        env={**os.environ, "LC_ALL": "C"}, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert run.returncode == 2
    assert run.stderr.startswith("brokerlab: topology hosts: 127.0.0.")
    assert "Connection refused" in run.stderr
    assert not (tmp_path / "results").exists()
