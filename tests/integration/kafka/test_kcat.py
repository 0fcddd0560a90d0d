"""kcat against a real broker."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.integration.kafka.cluster import Cluster

KCAT = shutil.which("kcat")
PATIENCE_S = 60
pytestmark = [
    pytest.mark.machine,
    pytest.mark.skipif(KCAT is None, reason="kcat is not there; it comes with the Debian package kcat"),
]


def kcat(cluster: Cluster, *arguments: str, stdin: str = "") -> str:
    assert KCAT is not None
    command = [KCAT, "-b", cluster.bootstrap, *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_was_produced_is_consumed(codec: str, cluster: Cluster, topic: str) -> None:
    lines = [f"k{number}:value {number}" for number in range(100)]
    kcat(cluster, "-P", "-t", topic, "-K:", "-z", codec, "-H", "name=value", stdin="\n".join(lines))
    found = kcat(cluster, "-C", "-t", topic, "-o", "beginning", "-e", "-q", "-f", "%k:%s %h\n")
    assert found.splitlines() == [f"{line} name=value" for line in lines]


def test_a_group_consumes_everything(three: Cluster, spread: str) -> None:
    kcat(three, "-P", "-t", spread, stdin="\n".join(f"v{number}" for number in range(30)))
    found = kcat(three, "-G", f"{spread}-group", "-X", "auto.offset.reset=earliest", "-c", "30", "-q", spread)
    assert sorted(found.split()) == sorted(f"v{number}" for number in range(30))


def test_metadata_and_offsets_are_listed(cluster: Cluster, topic: str) -> None:
    kcat(cluster, "-P", "-t", topic, stdin="one\ntwo")
    assert f'topic "{topic}" with 1 partitions' in kcat(cluster, "-L", "-t", topic)
    assert "offset 2" in kcat(cluster, "-Q", "-t", f"{topic}:0:-1")
