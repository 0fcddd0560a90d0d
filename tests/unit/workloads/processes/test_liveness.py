"""Whether a process is there and stands still, told from the kernel's own words about real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.integration.processes.running import eventually
from workloads.processes.liveness import Liveness, liveness_of, started_at

# A thread beside the first one; a line is said when both are there.
TWO_THREADS = """
import threading, time
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
print(flush=True)
time.sleep(60)
"""


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", TWO_THREADS], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def test_a_process_is_paused_from_sigstop_to_sigcont(child: subprocess.Popen[bytes]) -> None:
    started = started_at(child.pid)
    assert liveness_of(child.pid, started) is Liveness.RUNNING
    child.send_signal(signal.SIGSTOP)
    eventually(lambda: liveness_of(child.pid, started) is Liveness.PAUSED, "each of its threads stands still")
    child.send_signal(signal.SIGCONT)
    eventually(lambda: liveness_of(child.pid, started) is Liveness.RUNNING, "it goes on")


def test_a_process_that_has_ended_is_gone_before_anybody_has_asked_for_its_code(
    child: subprocess.Popen[bytes],
) -> None:
    started = started_at(child.pid)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert liveness_of(child.pid, started) is Liveness.GONE


def test_another_process_that_has_the_id_by_now_is_not_taken_for_it(child: subprocess.Popen[bytes]) -> None:
    started = started_at(child.pid)
    assert started is not None
    assert liveness_of(child.pid, started - 1) is Liveness.GONE
    assert liveness_of(child.pid, None) is Liveness.GONE


def test_nothing_is_known_of_an_id_that_nobody_has(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    child.wait()
    assert started_at(child.pid) is None
    assert liveness_of(child.pid, 1) is Liveness.GONE
