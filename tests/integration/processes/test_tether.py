"""Child processes: gone when their owner is gone, however it goes; failures that say what happened."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.integration.processes.running import alive, eventually
from workloads.processes.process import LOG_TAIL_LINES, TETHER, Process, ProcessFailed, tethered

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


# --- Process --------------------------------------------------------------------------------------------------


def with_process(
    folder: Path, program: str, act: Callable[[Process], Awaitable[None]], *, spoken_with: bool = False
) -> None:
    """Start a Python program as a child, do something with it, and stop it."""

    async def run() -> None:
        process = await Process.start(
            "child", [sys.executable, "-c", program], folder / "child.log", spoken_with=spoken_with
        )
        try:
            await act(process)
        finally:
            await process.stop()

    asyncio.run(run())


ECHO = "import sys\nfor line in sys.stdin: print('heard', line.strip(), flush=True)"


def test_a_child_that_is_spoken_with_answers_line_by_line(tmp_path: Path) -> None:
    async def act(process: Process) -> None:
        for word in (b"one", b"two"):
            await process.write_line(word)
            assert await process.read_line() == b"heard " + word + b"\n"
        assert process.running
        await process.stop()
        assert not process.running
        await process.stop()

    with_process(tmp_path, ECHO, act, spoken_with=True)


def test_the_end_of_a_child_is_told_with_its_code_and_last_lines(tmp_path: Path) -> None:
    async def act(process: Process) -> None:
        with pytest.raises(ProcessFailed) as failed:
            await process.read_line()
        lines = str(failed.value).splitlines()
        assert failed.value.code == 7
        assert lines[0] == "child ended with 7; the end of child.log:"
        assert lines[1:] == [f"  | line {number}" for number in range(30 - LOG_TAIL_LINES, 30)]

    program = "import sys\nfor n in range(30): print('line', n, file=sys.stderr)\nsys.exit(7)"
    with_process(tmp_path, program, act, spoken_with=True)


def test_a_child_that_was_killed_is_told_by_the_signals_name(tmp_path: Path) -> None:
    async def act(process: Process) -> None:
        os.kill(process.pid, signal.SIGKILL)
        await process.ended()
        assert str(process.failure()) == "child was ended by SIGKILL; its log is empty"
        assert process.failure().code == -9

    with_process(tmp_path, "import time; time.sleep(60)", act)


def test_speaking_with_a_child_that_is_gone_fails_with_its_end(tmp_path: Path) -> None:
    async def act(process: Process) -> None:
        await process.ended()
        with pytest.raises(ProcessFailed, match="child ended with 3"):
            await process.write_line(b"x" * 10_000_000)

    with_process(tmp_path, "import sys; sys.exit(3)", act, spoken_with=True)


def test_a_child_that_does_not_heed_sigterm_is_killed(tmp_path: Path) -> None:
    async def act(process: Process) -> None:
        assert await process.read_line() == b"deaf\n"
        await process.stop(grace_s=0.2)
        assert process.failure().code == -signal.SIGKILL

    program = (
        "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('deaf', flush=True)\ntime.sleep(60)"
    )
    with_process(tmp_path, program, act, spoken_with=True)


def test_ctrl_c_does_not_reach_a_child(tmp_path: Path) -> None:
    async def act(process: Process) -> None:
        assert os.getsid(process.pid) != os.getsid(0) or os.getpgid(process.pid) != os.getpgid(0)

    with_process(tmp_path, "import time; time.sleep(60)", act)


def test_words_of_a_child_that_is_not_spoken_with_go_to_its_log(tmp_path: Path) -> None:
    async def act(process: Process) -> None:
        await process.ended()

    with_process(tmp_path, "import sys; print('out', flush=True); print('err', file=sys.stderr)", act)
    assert (tmp_path / "child.log").read_text() == "out\nerr\n"
