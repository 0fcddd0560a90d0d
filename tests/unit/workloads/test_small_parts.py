"""Ports, resources, pace, shares: what each promises."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.workloads.run.plans import plan
from workloads.clients.drivers.api import DriverError
from workloads.measure.resources import Usage, _number_behind, reset_peak, usage_of
from workloads.processes import ports
from workloads.processes.ports import RANGE, NoFreePort, free_ports
from workloads.run import progress
from workloads.run.progress import LiveProgress, Pace, PlainProgress, duration, progress_for
from workloads.run.runner import Finished
from workloads.trial.trial import refuse_shares, share

# --- ports ----------------------------------------------------------------------------------------------------


def test_free_ports_are_different_and_nobody_listens_on_them() -> None:
    found = free_ports(7)
    assert len(set(found)) == 7
    assert all(port in RANGE for port in found)
    for port in found:
        with socket.create_server(("127.0.0.1", port)):
            pass


def test_a_port_that_somebody_listens_on_is_not_free() -> None:
    (port,) = free_ports(1)
    with socket.create_server(("127.0.0.1", port)):
        assert not ports._is_free(port)


def test_ports_that_are_to_be_avoided_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random.SystemRandom, "sample", lambda *_: [21_000, 21_001, 21_002])
    monkeypatch.setattr(ports, "_is_free", lambda port: port != 21_001)
    assert free_ports(1, avoid={21_000}) == [21_002]


def test_without_a_free_port_the_error_says_where_was_looked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "_is_free", lambda _: False)
    with pytest.raises(NoFreePort, match="no 3 free ports among 1000 tried between 20000 and 32000"):
        free_ports(3)


# --- resources ------------------------------------------------------------------------------------------------


def test_a_process_has_used_what_it_used() -> None:
    before = usage_of(os.getpid())
    kept = bytearray(b"x") * 1_000_000
    while usage_of(os.getpid()).cpu_user_s < before.cpu_user_s + 0.05:
        kept.count(b"y")
    used = usage_of(os.getpid()).since(before)
    assert used.cpu_user_s > 0.04
    assert used.cpu_system_s >= 0
    assert used.rss_max_bytes > len(kept)


def test_the_peak_of_memory_counts_from_its_reset() -> None:
    kept = bytearray(b"x") * 80_000_000
    high = usage_of(os.getpid()).rss_max_bytes
    del kept
    reset_peak(os.getpid())
    assert usage_of(os.getpid()).rss_max_bytes < high - 60_000_000


def test_a_process_that_is_gone_is_said_to_be() -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    for ask in (usage_of, reset_peak):
        with pytest.raises(ProcessLookupError, match=f"process {gone.pid} is gone"):
            ask(gone.pid)


def test_a_process_that_has_ended_and_is_not_yet_reaped_is_readable() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert usage_of(child.pid).rss_max_bytes == 0
    child.wait()


def test_counters_are_told_apart_by_their_whole_names() -> None:
    text = "rchar: 1\ncancelled_write_bytes: 9\nwrite_bytes: 4096\ncancelled_write_bytes: 0\n"
    assert _number_behind("\nwrite_bytes:", text) == 4096
    assert _number_behind("VmHWM:", text) == 0


def test_usage_between_two_readings_is_their_difference_but_for_the_peak() -> None:
    assert Usage(5.0, 3.0, 900, 50).since(Usage(1.0, 1.0, 800, 20)) == Usage(4.0, 2.0, 900, 30)


# --- shares ---------------------------------------------------------------------------------------------------


@given(st.integers(0, 10_000), st.integers(1, 64))
def test_shares_add_up_and_differ_by_one_at_most(total: int, parts: int) -> None:
    found = [share(total, parts, number) for number in range(parts)]
    assert sum(found) == total
    assert max(found) - min(found) <= 1


def test_a_group_may_share_partitions_in_any_way_that_gives_each_to_one_consumer() -> None:
    refuse_shares(3, [[2], [], [0, 1]])


@pytest.mark.parametrize("shares", [[[0, 1], []], [[0, 1], [1, 2]], [[0, 1, 2, 3], []]])
def test_a_trial_fails_where_a_partition_is_read_by_nobody_or_by_two(shares: list[list[int]]) -> None:
    with pytest.raises(DriverError, match="the consumers share 3 partitions as"):
        refuse_shares(3, shares)


# --- progress -------------------------------------------------------------------------------------------------

GOOD = Finished("valid", "", 1234.5, 99.0, 1.0)
BAD = Finished("failed", "broker-1 was ended by SIGKILL", 0.0, 0.0, 1.0)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min 0 s"),
        (200, "3 min 20 s"),
        (3599.6, "1 h 0 min"),
        (7500, "2 h 5 min"),
    ],
)
def test_durations_read_as_a_person_says_them(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_a_plain_line_says_trial_place_and_rates(capsys: pytest.CaptureFixture[str]) -> None:
    small = plan()
    shown = PlainProgress()
    shown.begin(small, 1)
    shown.trial_ends(small.trials[1], GOOD)
    shown.trial_ends(small.trials[2], BAD)
    first, second, third = capsys.readouterr().out.splitlines()
    assert first == "going on: 1 of 4 trials are done"
    assert second.startswith("[2/4, ")
    assert second.endswith(f"{small.trials[1].id}: 1,234/s produced, 99/s consumed")
    assert third.endswith(f"{small.trials[2].id}: FAILED: broker-1 was ended by SIGKILL")


def test_warm_ups_are_not_counted_and_shown_only_when_they_fail(capsys: pytest.CaptureFixture[str]) -> None:
    warmed = plan(trials="trials: {warmup: 1}")
    (warmup,) = (trial for trial in warmed.trials if trial.kind == "warmup")
    shown = PlainProgress()
    shown.begin(warmed, 0)
    shown.trial_ends(warmup, GOOD)
    shown.trial_ends(warmup, BAD)
    assert capsys.readouterr().out == f"[0/4] {warmup.id}: FAILED: broker-1 was ended by SIGKILL\n"


def test_trials_that_were_done_before_do_not_speed_up_the_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(progress, "monotonic", lambda: now)
    small = plan()
    pace = Pace(small, 2)
    assert pace.left_s() is None
    now = 110.0
    pace.count(small.trials[2])
    assert pace.left_s() == 10.0


def test_a_live_line_may_end_before_it_began_and_prints_what_failed(capsys: pytest.CaptureFixture[str]) -> None:
    LiveProgress().end()
    small = plan()
    shown = LiveProgress()
    shown.begin(small, 0)
    try:
        shown.trial_begins(small.trials[0])
        shown.trial_ends(small.trials[0], BAD)
    finally:
        shown.end()
    assert "FAILED: broker-1 was ended by SIGKILL" in " ".join(capsys.readouterr().out.split())


def test_where_there_is_no_terminal_lines_are_plain() -> None:
    assert isinstance(progress_for(object()), PlainProgress)
