"""A run that is ended in the middle: nothing is left running, what is finished is kept, and the next one goes on."""

from __future__ import annotations

import json
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from tests import made_records
from tests.integration.processes.running import alive, command_of, descendants, eventually
from tests.integration.runs.short_runs import PLAN, command, ids, rows, run_command, spec_file, started
from workloads.results import SCHEMA_VERSION, ResultsFolder


def interrupted(words: list[str], number: signal.Signals) -> tuple[int, str, str]:
    """Start a run, send it a signal when it has finished one trial; its exit code and what it said."""
    run = started(words)
    assert run.stdout is not None
    try:
        said = []
        for line in run.stdout:
            said.append(line)
            if line.startswith("[") and "s produced" in line:
                break
        children = descendants(run.pid)
        assert len(children) >= 5, "three brokers, a producer and a consumer"
        run.send_signal(number)
        rest, errors = run.communicate(timeout=30)
        eventually(lambda: not [pid for pid in children if alive(pid)], "its processes are gone")
    finally:
        run.kill()
    return run.returncode, "".join(said) + rest, errors


def hail(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Ctrl-C again and again until a process has ended; its exit code and what it said."""
    while process.poll() is None:
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.005)
    said, errors = process.communicate(timeout=30)
    return process.returncode, said, errors


def test_ctrl_c_again_and_again_ends_a_run_as_one_does(tmp_path: Path) -> None:
    run = started(run_command(spec_file(tmp_path), tmp_path / "results"))
    try:
        eventually(lambda: len(descendants(run.pid)) >= 5, "three brokers, a producer and a consumer are there")
        children = descendants(run.pid)
        code, _, errors = hail(run)
        assert (code, errors) == (130, "brokerlab: interrupted\n")
        eventually(lambda: not [pid for pid in children if alive(pid)], "its processes are gone")
        assert not (tmp_path / "results" / "work").exists()
    finally:
        run.kill()


@pytest.mark.java
@pytest.mark.parametrize("again", [False, True])
def test_ctrl_c_ends_an_analysis_in_one_line_and_leaves_nothing(tmp_path: Path, again: bool) -> None:
    folder = made_records.write(tmp_path / "run", [made_records.MadeTrial("static", rows=1)])
    analysis = started(command("analyze", folder))
    try:
        eventually(lambda: java_below(analysis.pid), "Spark's Java is there")
        children = descendants(analysis.pid)
        if again:
            code, _, errors = hail(analysis)
        else:
            analysis.send_signal(signal.SIGINT)
            _, errors = analysis.communicate(timeout=30)
            code = analysis.returncode
        assert (code, errors) == (130, "brokerlab: interrupted\n")
        eventually(lambda: not [pid for pid in children if alive(pid)], "its processes are gone")
        assert sorted(path.name for path in folder.iterdir()) == ["latency", "requests", "trials"]
    finally:
        analysis.kill()


def test_a_run_that_is_ended_in_any_way_leaves_nothing_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    out = tmp_path / "results"
    words = run_command(spec_file(tmp_path), out)
    finished: set[str] = set()
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGKILL, -signal.SIGKILL)):
        before = len(finished)
        ended, said, errors = interrupted(words, number)
        assert ended == code, errors
        assert errors == ("" if code < 0 else "brokerlab: interrupted\n")
        assert (f"going on: {before} of 4 trials are done" in said) == bool(before)
        assert finished < rows(out).keys() < ids()
        finished = set(rows(out))
        assert {row["verdict"] for row in rows(out).values()} == {"valid"}
        manifest = ResultsFolder(out).read_manifest()
        assert manifest is not None
        assert manifest["ended"] is None
        assert (out / "work").exists() == (code < 0), "who is killed cannot clean up"
    written = {path.name: path.stat().st_mtime_ns for path in (out / "trials").glob("*.parquet")}
    last = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert (last.returncode, last.stderr) == (0, "")
    assert rows(out).keys() == ids() == {trial.id for trial in PLAN.trials}
    assert written.items() <= {path.name: path.stat().st_mtime_ns for path in (out / "trials").iterdir()}.items()
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["ended"] is not None
    assert manifest["planned"] == sorted(ids())
    assert not (out / "work").exists()

    logs = {path: path.stat().st_mtime_ns for path in out.glob("logs/**/*")}
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert "4 valid, 0 invalid, 0 failed" in done.stdout
    assert {path: path.stat().st_mtime_ns for path in out.glob("logs/**/*")} == logs, "nothing was started"


@pytest.mark.java
def test_an_analysis_and_its_spark_die_with_a_runner_that_is_killed(tmp_path: Path) -> None:
    made_records.write(tmp_path, [made_records.MadeTrial("static", rows=1)])
    ResultsFolder(tmp_path).write_manifest({
        "schema_version": SCHEMA_VERSION, "spec_hash": made_records.SPEC_HASH, "profile": "x", "started": "",
        "ended": None, "planned": [],
    })  # fmt: skip
    run = started(command("analyze", tmp_path))
    try:
        eventually(lambda: java_below(run.pid), "Spark's Java is there")
        children = descendants(run.pid)
        run.kill()
        run.communicate(timeout=30)
        eventually(lambda: not [pid for pid in children if alive(pid)], "its processes are gone")
    finally:
        run.kill()


def java_below(pid: int) -> bool:
    return any("SparkSubmit" in words for words in map(command_of, descendants(pid)))
