"""Other hosts: who is where, and what is said to ssh."""

from __future__ import annotations

import asyncio
import shlex
from pathlib import Path

import pytest

from tests.unit.workloads.spec.files import refusal, spec, text
from workloads.spec.plan import resolve
from workloads.spec.settings import Hosts
from workloads.topology.api import TopologyUnavailable
from workloads.topology.choice import topology_of
from workloads.topology.hosts import OtherHosts

HOSTS = Hosts(brokers=("a", "b"), zookeeper="c", ssh_config="/keys/config")
SECTION = "hosts: {brokers: [a, b], zookeeper: c, ssh_config: /keys/config}"
CLUSTER = "cluster: {topology: hosts}"


@pytest.mark.parametrize(
    ("place", "address"),
    [
        ("broker-1", "a"),
        ("broker-2", "b"),
        ("broker-3", "a"),
        ("zookeeper", "c"),
        ("producer-0", "127.0.0.1"),
        ("consumer-1", "127.0.0.1"),
        ("runner", "127.0.0.1"),
    ],
)
def test_brokers_are_dealt_to_the_hosts_in_turn_and_clients_stay_here(place: str, address: str) -> None:
    topology = OtherHosts(HOSTS)
    assert topology.address(place) == address
    assert topology.is_here(place) == (address == "127.0.0.1")


def test_a_command_on_a_host_is_one_line_for_its_shell_that_ends_as_the_command_itself() -> None:
    *ssh, host, line = OtherHosts(HOSTS).inside("broker-2", ["python", "-m", "brokers", "/a folder/it's.json"])
    assert ssh[:3] == ["ssh", "-F", "/keys/config"]
    assert "BatchMode=yes" in ssh
    assert host == "b"
    words = shlex.split(line)
    assert words[2:4] == ["&&", "exec"]
    assert Path(words[-6]).name == "tether.py"
    assert words[-5:] == ["$PPID", "python", "-m", "brokers", "/a folder/it's.json"]


def test_without_ssh_it_is_said_what_ssh_comes_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TopologyUnavailable, match="topology hosts: ssh is not there; it comes with openssh-client"):
        asyncio.run(OtherHosts(HOSTS).check())


def test_a_command_of_a_client_is_run_as_it_is() -> None:
    assert OtherHosts(HOSTS).inside("producer-0", ["python", "x"]) == ["python", "x"]


def test_the_section_of_the_file_says_which_hosts_there_are_and_is_part_of_what_is_measured() -> None:
    there = resolve(spec(text(cluster=f"{CLUSTER}\n{SECTION}")), "steady")
    assert there.hosts == HOSTS
    assert isinstance(topology_of(there.cells[0].cluster, 1, 1, there.hosts), OtherHosts)
    moved = resolve(spec(text(cluster=f"{CLUSTER}\n{SECTION.replace('c,', 'd,')}")), "steady")
    assert moved.spec_hash != there.spec_hash


def test_hosts_that_no_cell_uses_change_nothing() -> None:
    cluster = "cluster: {brokers: 3}"
    named, unnamed = (resolve(spec(text(cluster=each)), "steady") for each in (f"{cluster}\n{SECTION}", cluster))
    assert named.spec_hash == unnamed.spec_hash
    assert named.hosts is None


@pytest.mark.parametrize(
    ("section", "message"),
    [
        (CLUSTER, "topology: hosts needs a section 'hosts' that names them"),
        (f"{CLUSTER}\nhosts: {{brokers: a}}", "hosts lacks the key 'zookeeper'"),
        (f"{CLUSTER}\nhosts: {{brokers: [a, a], zookeeper: c}}", "brokers has 'a' twice"),
        (f"{CLUSTER}\nhosts: {{brokers: -oProxyCommand=x, zookeeper: c}}", "it must be a host's name or address"),
        (f"{CLUSTER}\nhosts: {{brokers: a, zookeeper: c d}}", "it must be a host's name or address"),
        (f"{CLUSTER}\nhosts: {{brokers: a, zookeeper: c, clients: d}}", "unknown key 'clients' in hosts"),
        (f"cluster: {{topology: hosts, rtt_ms: {{client_broker: 1}}}}\n{SECTION}", "rtt_ms needs topology: namespaces"),
    ],
)
def test_what_hosts_cannot_be_is_refused(section: str, message: str) -> None:
    assert message in refusal(text(cluster=section)).message
