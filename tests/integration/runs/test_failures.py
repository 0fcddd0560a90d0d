"""What goes wrong in a run costs the trial that it hits: the reason is told, the others go on, the next run repairs."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from tests.integration.processes.running import (
    alive,
    command_of,
    descendants,
    eventually,
    fill,
    processes_of,
    small_disk,
)
from tests.integration.runs.short_runs import (
    ONE_TRIAL,
    PLAN,
    QUICK,
    Hooks,
    at_work,
    ids,
    rows,
    run_command,
    run_here,
    spec_file,
    started,
)
from tests.unit.workloads.run.plans import plan
from workloads.errors import UserError
from workloads.processes.ports import free_ports
from workloads.results import ResultsFolder
from workloads.run.runner import SpecChanged, Summary
from workloads.spec.plan import Cell, Plan
from workloads.systems import broker_folders, brokerlab
from workloads.trial.record import TrialRecord

before: set[int] = set()


@pytest.fixture(autouse=True)
def _others() -> None:
    """Other tests of this process may keep a cluster or Spark for the whole session."""
    before.clear()
    before.update(descendants(os.getpid()))


def started_here() -> set[int]:
    return descendants(os.getpid()) - before


def own(marker: str) -> int:
    """The child of this process whose command holds `marker`."""
    (found,) = [pid for pid in started_here() if marker in command_of(pid)]
    return found


def while_working(cell: Cell, act: Callable[[], object]) -> AbstractContextManager[None]:
    """Do something, once, while the clients of a cell's first window are at work."""
    left = [act]

    def once(record: TrialRecord) -> None:
        if record.trial.cell == cell and record.doing.startswith("in its window") and left:
            left.pop()()

    return at_work(once)


def slow(*, mode: str, batches: str = "[10, 20]") -> Plan:
    """A trial for each size of batch, each of about half a second of production."""
    return plan(
        experiments=f"experiments: {{one: {{message_size: 32B, batch_size: {batches}, mode: {mode}, rate: 400}}}}",
        profile="{experiments: one, messages: 200, tries: 1}",
    )


def kill_broker_2(results: Path) -> None:
    (log,) = results.glob("logs/*/broker-2.log")
    with log.open("a") as file:
        file.write("the last thing it said\n")
    os.kill(own("broker-2.json"), signal.SIGKILL)


def test_a_broker_that_dies_costs_its_trial_and_the_next_run_repeats_that_alone(tmp_path: Path) -> None:
    three = slow(mode="streaming", batches="[10, 20, 25]")
    with while_working(three.trials[1].cell, lambda: kill_broker_2(tmp_path)):
        assert run_here(tmp_path, three) == Summary(valid=2, invalid=0, failed=1)
    found = rows(tmp_path)
    assert [found[trial.id]["verdict"] for trial in three.trials] == ["valid", "failed", "valid"]
    reason = found[three.trials[1].id]["reason"]
    assert reason == "broker-2 was ended by SIGKILL; the end of broker-2.log:\n  | the last thing it said"
    assert len(list(tmp_path.glob("logs/*"))) == 2, "the third had a cluster of its own"
    manifest = ResultsFolder(tmp_path).read_manifest()
    assert manifest is not None
    assert manifest["ended"] is None, "the next run goes on here"

    again = Hooks()
    assert run_here(tmp_path, three, again) == Summary(valid=3, invalid=0, failed=0)
    assert [trial for trial, _ in again.ended] == [three.trials[1].id]
    assert not started_here()


@pytest.mark.parametrize("role", ["producer", "consumer"])
def test_a_client_that_dies_costs_its_trial(tmp_path: Path, role: str) -> None:
    two = slow(mode="streaming")

    def kill() -> None:
        clients = sorted(pid for pid in started_here() if "workloads.clients.client" in command_of(pid))
        os.kill(clients[0 if role == "producer" else 1], signal.SIGKILL)

    with while_working(two.trials[1].cell, kill):
        assert run_here(tmp_path, two) == Summary(valid=1, invalid=0, failed=1)
    assert rows(tmp_path)[two.trials[1].id]["reason"] == f"{role}-0 was ended by SIGKILL; its log is empty"


def test_a_trial_that_takes_too_long_fails_with_the_stage_it_was_in(tmp_path: Path) -> None:
    short = replace(slow(mode="split", batches="10"), timeout_s=0.4)
    assert run_here(tmp_path, short) == Summary(valid=0, invalid=0, failed=1)
    (row,) = rows(tmp_path).values()
    stages = "making the topic|connecting the producers|in its window of production"
    assert re.fullmatch(rf"not finished within 0\.4 s; it was ({stages})", row["reason"])
    assert not started_here()


def test_where_a_port_is_taken_in_between_others_are_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tries = 0

    def one_is_taken(count: int) -> list[int]:
        nonlocal tries
        tries += 1
        ports = free_ports(count)
        if tries == 1:
            listening.enter_context(socket.create_server(("127.0.0.1", ports[-1])))
        return ports

    monkeypatch.setattr(broker_folders, "free_ports", one_is_taken)
    with ExitStack() as listening:
        assert run_here(tmp_path, ONE_TRIAL) == Summary(valid=1, invalid=0, failed=0)
    assert tries == 2


def test_where_ports_are_taken_every_time_the_trials_fail_and_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = server.getsockname()[1]
        monkeypatch.setattr(broker_folders, "free_ports", lambda count: [*free_ports(count - 1), taken])
        monkeypatch.setattr(brokerlab, "START_TRIES_MAX", 1)
        assert run_here(tmp_path, ONE_TRIAL) == Summary(valid=0, invalid=0, failed=1)
    (row,) = rows(tmp_path).values()
    assert row["reason"].startswith("the cluster did not start: broker-3 ended with 98; the end of broker-3.log:")
    assert f"cannot listen on 127.0.0.1:{taken}" in row["reason"]
    assert not started_here()


def test_a_cluster_that_does_not_start_fails_its_trials_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(brokerlab, "READY_WITHIN_S", 0.001)
    assert run_here(tmp_path, QUICK) == Summary(valid=0, invalid=0, failed=2)
    assert {row["reason"].rpartition(": ")[2] for row in rows(tmp_path).values()} <= {
        f"broker-{number} was not ready within 0 s" for number in (1, 2, 3)
    }
    assert rows(tmp_path).keys() == ids(QUICK)
    assert not started_here()


WARMED = plan(
    experiments="experiments: {one: {message_size: 32B, batch_size: [10, 20, 25], mode: split}}",
    profile="{experiments: one, messages: 200, tries: 1}",
    trials="trials: {warmup: 1, timeout_s: 30}",
)


def test_a_cluster_that_was_lost_twice_fails_its_trials_and_is_not_started_again(tmp_path: Path) -> None:
    def kill(record: TrialRecord) -> None:
        assert record.trial.id.startswith("warmup/"), "nothing is measured on a cluster that was not warmed"
        os.kill(own("broker-1.json"), signal.SIGKILL)

    with at_work(kill):
        assert run_here(tmp_path, WARMED) == Summary(valid=0, invalid=0, failed=3)
    for row in rows(tmp_path).values():
        assert row["reason"].startswith("the warm-up failed: broker-1 was ended by SIGKILL")
    assert len(list(tmp_path.glob("logs/*"))) == 2
    assert not started_here()


def test_a_cluster_that_is_started_again_is_warmed_again(tmp_path: Path) -> None:
    """What comes before a measured window is the same on every cluster."""
    began: list[str] = []

    def note(record: TrialRecord) -> None:
        began.append("warm-up" if record.trial.id.startswith("warmup/") else record.trial.id)
        if began.count("warm-up") == 1 and began[-1] == WARMED.trials[0].id:
            os.kill(own("broker-3.json"), signal.SIGKILL)

    with at_work(note):
        assert run_here(tmp_path, WARMED) == Summary(valid=2, invalid=0, failed=1)
    first, second, third = (trial.id for trial in WARMED.trials)
    assert began == ["warm-up", first, "warm-up", second, second, third, third]


# --- the disk -------------------------------------------------------------------------------------------------


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    try:
        with small_disk(tmp_path / "disk", "64m") as folder:
            yield folder
    except PermissionError as refused:
        pytest.skip(f"a small file system cannot be mounted here: {refused}")


def test_a_disk_that_fills_up_is_told_and_with_space_the_run_goes_on(tmp_path: Path, disk: Path) -> None:
    out = disk / "results"
    words = run_command(spec_file(tmp_path), out)
    run = started(words)
    assert run.stdout is not None
    try:
        for line in run.stdout:
            if line.startswith("[1/4"):
                break
        children = descendants(run.pid)
        ballast = fill(disk)
        rest, errors = run.communicate(timeout=60)
    finally:
        run.kill()
    assert run.returncode == 1
    assert "No space left on device" in rest + errors or "could not be stored; 0 MiB are free in" in rest + errors
    assert str(out) in rest + errors
    assert "Traceback" not in errors
    eventually(lambda: not [pid for pid in children if alive(pid)], "its processes are gone")
    kept = {trial for trial, row in rows(out).items() if row["verdict"] == "valid"}
    assert kept
    ballast.unlink()
    again = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert again.returncode == 0, again.stdout + again.stderr
    assert f"going on: {len(kept)} of 4 trials are done" in again.stdout
    assert rows(out).keys() == ids()
    assert {row["verdict"] for row in rows(out).values()} == {"valid"}


# --- two runs -------------------------------------------------------------------------------------------------


def test_two_runs_at_once_in_two_folders_do_not_disturb_each_other(tmp_path: Path) -> None:
    spec = spec_file(tmp_path, experiments="experiments: {one: {message_size: 32B, batch_size: 10, mode: split}}")
    runs = [started(run_command(spec, tmp_path / name)) for name in ("one", "other")]
    try:
        for run in runs:
            said, errors = run.communicate(timeout=90)
            assert (run.returncode, errors) == (0, ""), said
    finally:
        for run in runs:
            run.kill()
    for name in ("one", "other"):
        (row,) = rows(tmp_path / name).values()
        assert row["verdict"] == "valid"
    assert not processes_of(tmp_path)


def test_a_folder_in_which_a_run_writes_is_refused_with_2(tmp_path: Path) -> None:
    from workloads.run.folders import RunFolder

    words = run_command(spec_file(tmp_path), tmp_path / "out")
    with RunFolder(tmp_path / "out"):
        second = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert second.returncode == 2
    assert (
        second.stderr == f"brokerlab: another run is writing into {tmp_path / 'out'}; name another folder with --out\n"
    )


@pytest.mark.java
def test_a_changed_spec_is_refused_before_anything_is_started(tmp_path: Path) -> None:
    from workloads.run.manifest import new_manifest

    folder = ResultsFolder(tmp_path)
    folder.write_manifest(new_manifest(QUICK))
    before = folder.manifest_path.read_bytes()
    with pytest.raises(SpecChanged, match=r"holds records of another spec \(hash .*; name a new folder with --out"):
        run_here(tmp_path, PLAN)
    assert SpecChanged.exit_code == 2
    assert folder.manifest_path.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["manifest.json"]


@pytest.mark.parametrize("content", ["", "{", "[]", '{"schema_version": 1}'])
def test_a_damaged_manifest_is_refused_before_anything_is_started(tmp_path: Path, content: str) -> None:
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(UserError, match=r"manifest\.json "):
        run_here(tmp_path, QUICK)
    assert (tmp_path / "manifest.json").read_text() == content
    assert [path.name for path in tmp_path.iterdir()] == ["manifest.json"]


def test_an_architecture_that_a_broker_refuses_ends_the_run_with_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = broker_folders.config
    monkeypatch.setattr(broker_folders, "config", lambda *told: {**real(*told), "brokr": 1})
    with pytest.raises(
        UserError, match=r"(?s)architecture 'static': broker-\d ended with 2; .*unknown key 'brokr'"
    ) as refused:
        run_here(tmp_path, ONE_TRIAL)
    assert refused.value.exit_code == 2
    assert not started_here()
