"""A playground that the tests of a run share, and the command line as a person would use it there."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PATIENCE_S = 60
_numbers = itertools.count()


class Shell:
    """Runs `brokerlab` in a directory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "workloads", *words]
        return subprocess.run(
            command,
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": os.getcwd()},  # noqa: PTH109 - this tree, wherever the command runs
            input=stdin,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    def start(self, *words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "workloads", *words]
        pipe = subprocess.PIPE
        environment = {**os.environ, "PYTHONPATH": os.getcwd()}  # noqa: PTH109 - as above
        return subprocess.Popen(command, cwd=self.folder, env=environment, stdout=pipe, stderr=pipe, text=True)

    def says(self, *words: str, stdin: str = "") -> str:
        """What a command that must work says on its standard output."""
        done = self.run(*words, stdin=stdin)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return done.stdout

    def refused(self, *words: str, stdin: str = "", code: int = 2) -> str:
        """The one line with which a command is refused."""
        done = self.run(*words, stdin=stdin)
        assert done.returncode == code, done.stderr
        assert done.stderr.startswith("brokerlab: ")
        assert done.stderr.count("\n") == 1
        return done.stderr


@pytest.fixture(scope="session")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """In a directory whose playground has three brokers."""
    shell = Shell(tmp_path_factory.mktemp("playground"))
    shell.says("cluster", "up", "--brokers", "3")
    yield shell
    shell.says("cluster", "down")


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Shell]:
    """In a directory of the test's own, where nothing is up; what it starts is ended."""
    shell = Shell(tmp_path)
    yield shell
    shell.says("cluster", "down")


@pytest.fixture
def topic(shell: Shell) -> str:
    """A topic of three partitions that no other test uses."""
    name = f"topic-{next(_numbers)}"
    shell.says("topic", "create", name, "--partitions", "3")
    return name
