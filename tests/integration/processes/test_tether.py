"""Child processes: gone when their owner is gone, however it goes; and they wait until others pause."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.processes.running import alive, eventually
from workloads.processes.process import TETHER, tethered

SLEEPER = [sys.executable, "-c", "print('up', flush=True); import time; time.sleep(60)"]
# Starts a tethered child, says its process id, and waits.
OWNER = """
import subprocess, sys, time
from workloads.processes.process import tethered
child = subprocess.Popen(tethered([sys.executable, "-c", "import time; print('up', flush=True); time.sleep(60)"]),
                         stdout=subprocess.PIPE, start_new_session=True)
child.stdout.readline()
print(child.pid, flush=True)
time.sleep(60)
"""


def test_a_child_dies_with_an_owner_that_is_killed() -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE)
    assert owner.stdout is not None
    child = int(owner.stdout.readline())
    assert alive(child)
    owner.kill()
    owner.communicate()
    eventually(lambda: not alive(child), "the child is gone")


def test_a_child_whose_owner_went_before_it_was_bound_does_not_start() -> None:
    """As it is when the owner dies between fork and prctl: the parent is another by then."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(TETHER), "1", *SLEEPER],
        capture_output=True,
        text=True,
        check=False,
        timeout=10,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "the owner is gone\n"


@pytest.mark.parametrize(
    ("command", "why"), [("/no/such/command", "No such file or directory"), ("/etc/passwd", "Permission denied")]
)
def test_a_command_that_cannot_be_started_is_said_so(command: str, why: str) -> None:
    done = subprocess.run(tethered([command, "x"]), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, f"{command}: {why}\n")


def test_the_child_is_the_command_itself_with_its_arguments(tmp_path: Path) -> None:
    words = ["a b", "", "'\"$x", "-I", "ü"]
    program = "import sys, os; print(os.getpid(), sys.argv[1:])"
    child = subprocess.Popen(tethered([sys.executable, "-c", program, *words]), stdout=subprocess.PIPE, text=True)
    said, _ = child.communicate()
    assert said.strip() == f"{child.pid} {words}"


def test_a_child_and_its_own_children_wait_until_others_pause() -> None:
    says = "import os, subprocess, sys; print(os.sched_getscheduler(0), flush=True); "
    goes_on = [sys.executable, "-c", says + "subprocess.run(sys.argv[1:])", sys.executable, "-c", says]
    said = subprocess.run(tethered(goes_on), capture_output=True, text=True, check=True).stdout
    assert said.split() == [str(os.SCHED_BATCH)] * 2


def test_a_policy_that_somebody_chose_is_kept() -> None:
    says = [sys.executable, "-c", "import os; print(os.sched_getscheduler(0))"]
    done = subprocess.run(["chrt", "--idle", "0", *tethered(says)], capture_output=True, text=True, check=True)
    assert done.stdout == f"{os.SCHED_IDLE}\n"
