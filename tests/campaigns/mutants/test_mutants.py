"""The list of mutants fits the program as it is, and the campaign tells who survived."""

from __future__ import annotations

import ast
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests.campaigns.mutants.__main__ import INTERRUPTED, ROOT, campaign
from tests.campaigns.mutants.mutant import MistakeInList, Mutant, listed
from tests.integration.processes.running import processes_of

MUTANTS_MIN = 60


def test_every_mutants_text_stands_in_its_file_once() -> None:
    """Where this fails, the program has moved on: let the mutant follow it, or take it off the list if the promise is
    kept in another way."""
    astray = []
    for mutant in listed():
        try:
            mutant.of((ROOT / mutant.file).read_text(encoding="utf-8"))
        except (MistakeInList, FileNotFoundError) as mistake:
            astray.append(str(mistake))
    assert astray == []


def test_every_mutant_is_another_program() -> None:
    same = []
    for mutant in listed():
        content = (ROOT / mutant.file).read_text(encoding="utf-8")
        if ast.dump(ast.parse(content)) == ast.dump(ast.parse(mutant.of(content))):
            same.append(mutant.name)
    assert same == []


def test_every_test_that_is_to_find_a_mutant_is_there() -> None:
    missing = []
    for mutant in listed():
        for test in mutant.tests:
            path, _, name = test.partition("::")
            if not (ROOT / path).exists() or (name and name.partition("[")[0] not in _functions(ROOT / path)):
                missing.append(f"{mutant.name}: {test}")
    assert missing == []


def _functions(path: Path) -> list[str]:
    return re.findall(r"^(?:async )?def (\w+)\(", path.read_text(encoding="utf-8"), re.MULTILINE)


def test_mutants_are_many_have_names_of_their_own_and_say_what_they_break() -> None:
    mutants = listed()
    assert len(mutants) >= MUTANTS_MIN
    assert [name for name, count in Counter(mutant.name for mutant in mutants).items() if count > 1] == []
    assert [mutant.name for mutant in mutants if not (mutant.tests and mutant.breaks and mutant.file)] == []


# --- the campaign -----------------------------------------------------------------------------------------------

SUM = "def total(values):\n    if not values:\n        return 0\n    return sum(values)\n"
TEST = "from product.total import total\n\n\ndef test_it() -> None:\n    assert total([1, 2]) == 3\n"
FOUND = Mutant("found", "product/total.py", "sum(values)", "max(values)", ("test_total.py",), "all are added")
SURVIVOR = Mutant("survivor", "product/total.py", "return 0", "return 1", ("test_total.py",), "nothing adds up to 0")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A program of its own, with one test."""
    folder = tmp_path / "source"
    (folder / "product").mkdir(parents=True)
    (folder / "product" / "__init__.py").touch()
    (folder / "product" / "total.py").write_text(SUM)
    (folder / "test_total.py").write_text(TEST)
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    return folder


def run(source: Path, *mutants: Mutant) -> tuple[int, list[str]]:
    """Exit code and lines."""
    lines: list[str] = []
    return campaign(source, mutants, 2, ("product",), lines.append), lines


def test_a_mutant_that_no_test_finds_is_printed_and_the_campaign_fails(source: Path) -> None:
    code, lines = run(source, FOUND, SURVIVOR)
    assert code == 1
    (survivor,) = [line for line in lines if line.startswith("SURVIVED")]
    assert survivor == (
        "SURVIVED survivor: nothing adds up to 0\n  product/total.py\n    - return 0\n    + return 1\n"
        "  and these pass: test_total.py"
    )
    assert lines[-1].startswith("2 mutants, 1 found, 1 survived, in ")
    assert any("found  found by test_total.py::test_it" in line for line in lines)


def test_a_campaign_whose_mutants_are_all_found_ends_well_and_changes_nothing(source: Path) -> None:
    code, lines = run(source, FOUND, replace(FOUND, name="again"))
    assert (code, lines[-1].partition(", in")[0]) == (0, "2 mutants, 2 found, 0 survived")
    assert (source / "product" / "total.py").read_text() == SUM
    assert {path.name for path in source.rglob("*") if ".git" not in path.parts} == {
        "product", "__init__.py", "total.py", "test_total.py",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("mutant", "message"),
    [
        (replace(FOUND, find="product(values)"), "found: product/total.py holds 'product(values)' 0 times"),
        (replace(FOUND, find="values"), "found: product/total.py holds 'values' 3 times"),
        (replace(FOUND, put="sum(values"), "pytest ended with 2"),
        (replace(FOUND, tests=("test_nothing.py",)), "pytest ended with 4"),
        (replace(FOUND, tests=("product",)), "pytest ended with 5"),
    ],
)
def test_a_list_that_is_wrong_is_no_success(source: Path, mutant: Mutant, message: str) -> None:
    with pytest.raises(MistakeInList, match=re.escape(message)):
        run(source, mutant)


def test_tests_that_fail_without_a_mutant_find_none(source: Path) -> None:
    (source / "test_total.py").write_text(TEST.replace("3", "4"))
    with pytest.raises(MistakeInList, match=r"test_total\.py::test_it fails without any mutant"):
        run(source, FOUND)


def test_a_program_that_would_be_taken_from_elsewhere_is_noticed(source: Path) -> None:
    with pytest.raises(MistakeInList, match="would not test the copy"):
        campaign(source, [FOUND], 1, ("product", "json"), lambda line: None)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_campaign_that_is_interrupted_leaves_nothing_behind(tmp_path: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "tests.campaigns.mutants", "--only", "yaml-"]
    with subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, "TMPDIR": str(tmp_path)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        assert "first they run without a mutant" in process.stdout.readline()
        process.send_signal(number)
        assert process.wait() == INTERRUPTED, process.stderr.read()
        assert process.stderr.read() == "interrupted; nothing is left behind\n"
    assert list(tmp_path.iterdir()) == []
    assert processes_of(tmp_path) == {}
