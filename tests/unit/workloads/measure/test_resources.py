"""What a process used, as the kernel counts it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from workloads.measure.resources import Usage, _number_behind, reset_peak, usage_of


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
