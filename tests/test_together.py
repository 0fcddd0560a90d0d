"""Tests that share what is started once run in one process, where there are several."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import defaultdict

from tests.conftest import shared_by
from tests.test_tidy import ROOT

ANALYSIS = "tests/unit/analysis"
OTHERS = ("tests/unit/coordinators/test_views.py", "tests/unit/brokers/wire/test_header.py")
# Some of one folder with a conftest.py, and two files that have none; Java is not needed for any.
CHOSEN = (f"{ANALYSIS}/test_console.py", f"{ANALYSIS}/report/test_formats.py", *OTHERS)


def test_files_below_one_conftest_are_shared_by_its_outermost_folder() -> None:
    for file in ("test_load.py", "charts/test_style.py", "measures/test_rates.py"):
        assert shared_by(ROOT / ANALYSIS / file) == ANALYSIS.removeprefix("tests/")
    assert shared_by(ROOT / OTHERS[0]) == str(ROOT / OTHERS[0])


def test_two_processes_divide_what_is_not_shared_and_nothing_else() -> None:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-v",
        "-p",
        "no:cacheprovider",
        "--numprocesses",
        "2",
        "--dist",
        "loadfile",
    ]
    ended = subprocess.run([*command, *CHOSEN], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout
    processes = defaultdict(set)
    for process, file in re.findall(r"^\[(gw\d)\] .*? PASSED (\S+?)::", ended.stdout, re.MULTILINE):
        processes[shared_by(ROOT / file)].add(process)
    assert {group: len(ran) for group, ran in processes.items()} == dict.fromkeys(
        map(shared_by, map(ROOT.__truediv__, CHOSEN)), 1
    )
    assert len(set.union(*processes.values())) == 2
