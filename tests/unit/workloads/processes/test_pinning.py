"""Processes are bound with all their threads."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from workloads.processes.pinning import bind

THREADS = "import sys, threading; [threading.Thread(target=sys.stdin.read).start() for _ in range(3)]; print('there')"


@pytest.fixture
def child() -> Iterator[int]:
    """A process with several threads, until its standard input ends."""
    with subprocess.Popen(
        [sys.executable, "-c", f"{THREADS}\nimport sys; sys.stdout.flush()"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "there\n"
        yield process.pid


def affinities(pid: int) -> list[set[int]]:
    return [os.sched_getaffinity(int(task.name)) for task in Path(f"/proc/{pid}/task").iterdir()]


def test_every_thread_is_bound(child: int) -> None:
    one = min(os.sched_getaffinity(0))
    bind(child, (one,))
    assert len(affinities(child)) == 4
    assert all(found == {one} for found in affinities(child))


def test_without_processors_nothing_is_bound(child: int) -> None:
    before = affinities(child)
    bind(child, ())
    assert affinities(child) == before


def test_a_process_that_is_gone_is_left_to_whoever_watches_it() -> None:
    bind(4_194_304, (0,))
