"""One child as its owner meets it: spoken with, stopped, and told of when it ends, with its last words."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from workloads.processes.process import LOG_TAIL_LINES, Process, ProcessFailed


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
