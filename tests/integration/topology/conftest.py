"""Topologies for tests; where the machine cannot have them, the tests say so and are skipped."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from shutil import which

import pytest

from tests.integration.topology import ssh_server
from workloads.spec.settings import ClusterSettings
from workloads.topology.api import TopologyUnavailable
from workloads.topology.choice import refuse_unavailable

APART = ClusterSettings(
    brokers=1, partitions=1, replication_factor=1, acks=1, fsync="never", fsync_interval_ms=None, topology="namespaces"
)


@pytest.fixture(scope="session")
def namespaces() -> None:
    try:
        asyncio.run(refuse_unavailable([APART]))
    except TopologyUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture
def ssh() -> None:
    if which("ssh") is None:
        pytest.skip("ssh is not there; it comes with openssh-client")


@pytest.fixture
def ssh_config(ssh: None, tmp_path: Path) -> Iterator[Path]:
    """The configuration with which ssh reaches a real server on this machine; it has results/ on a disk of its own."""
    if ssh_server.found() is None:
        pytest.skip("sshd is not there; it comes with openssh-server")
    folder = tmp_path / "sshd"
    folder.mkdir()
    (tmp_path / "results").mkdir()
    with ssh_server.serving(folder, apart=tmp_path / "results") as config:
        yield config
