"""`python -m analysis` as a process: what it writes, what it says, and what it leaves behind when it is ended."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import made_records
from tests.integration.analysis.cluster import ON_LOOPBACK
from tests.made_records import MadeTrial
from workloads import results
from workloads.processes.java import with_java

pytestmark = [pytest.mark.java, pytest.mark.timeout(240)]
_WAIT_S = 60


def small_run() -> list[MadeTrial]:
    return [
        *(
            MadeTrial(name, 0.4 + number / 50, 0.4, size, 20, mode, try_=number, rows=20)
            for name in ("zookeeper", "dsbs", "static")
            for size in (8, 16)
            for mode in ("split", "streaming")
            for number in (1, 2)
        ),
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return made_records.write(tmp_path / "run", small_run())


def command(*arguments: object, warnings: str = "error") -> list[str]:
    return [sys.executable, "-W", warnings, "-m", "analysis", *map(str, arguments)]


def analysed(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments),
        capture_output=True,
        text=True,
        env=with_java() | environment,
        check=False,
        timeout=_WAIT_S * 2,
    )


def outputs(folder: Path) -> dict[str, bytes]:
    raw = {results.TRIALS, results.REQUESTS, results.LATENCY}
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(p.relative_to(folder)): p.read_bytes() for p in files if p.relative_to(folder).parts[0] not in raw}


def test_wrong_input_is_one_line_and_exit_code_2_before_spark_starts(folder: Path, tmp_path: Path) -> None:
    (folder / "requests" / results.file_name(small_run()[5].trial_id)).write_bytes(b"PAR1")
    for wrong, words in ((folder, "no whole Parquet file"), (tmp_path / "nowhere", "no such folder")):
        ended = analysed(wrong, JAVA_HOME="/nonexistent")
        assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (2, "", 1)
        assert words in ended.stderr


def test_a_manifest_that_is_no_runs_is_refused_before_spark_starts(folder: Path) -> None:
    (folder / "manifest.json").write_text("{}")
    ended = analysed(folder, JAVA_HOME="/nonexistent")
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (2, "", 1)
    assert ended.stderr.startswith(f"brokerlab: {folder}/manifest.json was written by another version of brokerlab")


def test_records_elsewhere_need_a_folder_for_what_is_written() -> None:
    ended = analysed("hdfs://nowhere/run", JAVA_HOME="/nonexistent")
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert "name a folder with --out" in ended.stderr


def test_missing_java_is_said_with_what_mends_it(folder: Path) -> None:
    ended = analysed(folder, JAVA_HOME="/nonexistent")
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert "JAVA_HOME" in ended.stderr


def test_java_that_does_not_start_is_exit_code_1_with_its_last_words(folder: Path, tmp_path: Path) -> None:
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'out of luck' >&2\nexit 3\n")
    java.chmod(0o755)
    # PySpark drops its pipe to a JVM that did not start, for the collector to find; that warning is not ours to mend.
    environment = os.environ | {"JAVA_HOME": str(tmp_path / "jdk")}
    log = folder / "spark.log"
    ended = subprocess.run(
        command(folder, warnings="ignore"), capture_output=True, text=True, env=environment, check=False
    )
    said = f"brokerlab: Spark did not start: out of luck; Spark's log is {log}\n"
    assert (ended.returncode, ended.stderr) == (1, said)
    assert outputs(folder).keys() == {log.name}
    assert log.read_text().startswith("out of luck\n")


def nameless() -> list[str]:
    """What starts a command on a machine that knows no name, not even its own; skips where nobody may have that."""
    rename = 'hostname nobody-knows-this && mount --bind /dev/null /etc/hosts && exec "$@"'
    prefix = ["unshare", "--uts", "--mount", "--propagation", "private", "sh", "-c", rename, "sh"]
    if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("only root may name the machine otherwise (unshare --uts --mount)")
    if subprocess.run([*prefix, "getent", "hosts", "nobody-knows-this"], capture_output=True, check=False).stdout:
        pytest.skip("name servers here know every name")
    return prefix


def test_a_local_master_needs_no_name_to_resolve(folder: Path) -> None:
    (folder / "spark.log").write_text("of an earlier failure")
    ended = subprocess.run(
        [*nameless(), *command(folder)], capture_output=True, text=True, env=with_java(), check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert outputs(folder).keys() >= {"report.html", "summary.txt"}
    assert not (folder / "spark.log").exists()


@pytest.mark.parametrize(
    ("master", "words"),
    [
        ("nonsense", "Spark did not start: org.apache.spark.SparkException: Master must either be"),
        ("spark://127.0.0.1:9", "Spark did not start on spark://127.0.0.1:9: "),
    ],
)
def test_a_master_that_does_not_serve_is_one_line_with_the_cause_and_a_log_that_stays(
    folder: Path, master: str, words: str
) -> None:
    ended = subprocess.run(
        command(folder, "--master", master, warnings="ignore"),
        capture_output=True, text=True, env=with_java() | ON_LOOPBACK, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1), ended.stderr
    assert ended.stderr.startswith(f"brokerlab: {words}")
    assert ended.stderr.endswith(f"; Spark's log is {folder / 'spark.log'}\n")
    assert outputs(folder).keys() == {"spark.log"}


def test_a_cluster_for_a_machine_that_does_not_know_itself_is_one_line_with_the_cause(folder: Path) -> None:
    ended = subprocess.run(
        [*nameless(), *command(folder, "--master", "spark://127.0.0.1:9", warnings="ignore")],
        capture_output=True, text=True, env=with_java() | ON_LOOPBACK, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1), ended.stderr
    assert "Spark did not start on spark://127.0.0.1:9: this machine cannot resolve localhost: " in ended.stderr


def test_help_does_not_load_anything_heavy() -> None:
    heavy = ("pyspark", "matplotlib", "pyarrow")
    probe = f"import sys, analysis.__main__; print([name for name in {heavy} if name in sys.modules])"
    ended = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"


@contextmanager
def at_work(folder: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """An analysis that has started Spark, and the JVM's process id."""
    process = subprocess.Popen(
        command(folder, "--progress"), env=with_java(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if "reading the records" in line:
                break
        (jvm,) = (pid for pid in children(process.pid) if "java" in name_of(pid))
        yield process, jvm
    finally:
        process.kill()
        process.communicate()


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def name_of(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()


def gone(pid: int) -> bool:
    """Wait until a process has ended, whoever started it."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], _WAIT_S)[0])
    finally:
        os.close(descriptor)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -signal.SIGKILL)]
)
def test_nothing_is_left_when_an_analysis_is_ended(folder: Path, number: signal.Signals, code: int) -> None:
    with at_work(folder) as (process, jvm):
        process.send_signal(number)
        _, errors = process.communicate(timeout=_WAIT_S)
        assert gone(jvm)
        assert process.returncode == code, errors
        assert "Traceback" not in errors
    left = outputs(folder)
    if number == signal.SIGKILL:  # only the next analysis can tidy up after that; Spark's own files go with the JVM
        left = {name: content for name, content in left.items() if not name.startswith(".analysis")}
    assert left == {}
