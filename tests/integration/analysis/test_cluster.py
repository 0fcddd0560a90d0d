"""The analysis on a real Spark cluster, and of records that lie where only Spark reads."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import made_records
from tests.integration.analysis.cluster import standalone
from tests.integration.analysis.test_command import outputs, small_run

pytestmark = [pytest.mark.java, pytest.mark.timeout(300)]
CORE_SITE = """<configuration>
<property><name>fs.viewfs.mounttable.default.name.key</name><value>runs</value></property>
<property><name>fs.viewfs.mounttable.runs.link./here</name><value>{folder}</value></property>
</configuration>
"""


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with standalone(tmp_path_factory.mktemp("cluster")) as address:
        yield address


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = made_records.write(tmp_path_factory.mktemp("local") / "run", small_run())
    analysed(folder)
    return folder


def analysed(*arguments: object, **environment: str) -> str:
    command = [sys.executable, "-W", "error", "-m", "analysis", *map(str, arguments)]
    ended = subprocess.run(command, capture_output=True, text=True, env=os.environ | environment, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout


def test_cluster_of_two_workers_writes_the_same_bytes_as_this_machine_alone(
    master: str, local: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    analysed(local, "--master", master, "--memory-mb", 600, "--out", out)
    assert outputs(out) == outputs(local)


def test_records_at_an_address_that_only_spark_reads_give_the_same_bytes(local: Path, tmp_path: Path) -> None:
    """Hadoop's viewfs stands for hdfs and s3a: a file system of another scheme, with nothing to be reached."""
    (tmp_path / "core-site.xml").write_text(CORE_SITE.format(folder=local.parent.as_uri()))
    out = tmp_path / "out" / "run"
    analysed("viewfs://runs/here/run", "--out", out, HADOOP_CONF_DIR=str(tmp_path))
    assert outputs(out) == outputs(local)
