"""`brokerlab status`: of runs that are done, partly done, failed, or no runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.made_records import MadeTrial, trial_row
from workloads.__main__ import main
from workloads.results import SCHEMA_VERSION, ResultsFolder


def run_of(path: Path, *, planned: list[str], ended: str | None, **verdicts: tuple[str, str]) -> None:
    folder = ResultsFolder(path)
    folder.write_manifest({
        "schema_version": SCHEMA_VERSION, "spec_hash": "x", "profile": "quick", "started": "at dawn", "ended": ended,
        "planned": planned,
    })  # fmt: skip
    for trial, (verdict, reason) in verdicts.items():
        made = MadeTrial("static", name=trial, columns={"verdict": verdict, "reason": reason})
        folder.write_trial({**trial_row(made), "verdict": verdict, "reason": reason}, [])


def said(path: Path, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["status", str(path), *words]) == 0
    return capsys.readouterr().out


def test_a_run_that_is_done(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_of(tmp_path, planned=["a", "b"], ended="at noon", a=("valid", ""), b=("valid", ""))
    assert said(tmp_path, capsys) == (
        f"{tmp_path} (quick)\nstarted at dawn, ended at noon\n2 trials planned: 2 valid, 0 left\n"
    )


def test_a_run_that_was_interrupted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_of(tmp_path, planned=["a", "b", "c"], ended=None, b=("valid", ""))
    assert "not ended: the same run command goes on with it\n3 trials planned: 1 valid, 2 left" in said(
        tmp_path, capsys
    )


def test_a_run_before_its_first_trial(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_of(tmp_path, planned=["a"], ended=None)
    assert "1 trials planned: none finished, 1 left" in said(tmp_path, capsys)


def test_what_failed_is_told_with_its_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_of(tmp_path, planned=["a", "b", "c"], ended=None, a=("failed", "broker-1 is gone"), b=("invalid", "lost 3"))
    text = said(tmp_path, capsys)
    assert "3 trials planned: 1 failed, 1 invalid, 1 left" in text
    assert text.endswith("  a: broker-1 is gone\n  b: lost 3\n")


def test_the_same_as_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_of(tmp_path, planned=["a", "b"], ended=None, a=("failed", "why"))
    assert json.loads(said(tmp_path, capsys, "--json")) == {
        "folder": str(tmp_path), "profile": "quick", "started": "at dawn", "ended": None, "planned": 2,
        "trials": {"failed": 1}, "left": ["b"], "reasons": {"a": "why"},
    }  # fmt: skip


def test_a_file_is_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["status", str(tmp_path / "file")]) == 2
    assert capsys.readouterr().err == f"brokerlab: {tmp_path}/file is no results folder: it has no manifest.json\n"


@pytest.mark.parametrize("content", [None, "{", '{"schema_version": 1}'])
def test_what_is_no_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str | None) -> None:
    if content is not None:
        (tmp_path / "manifest.json").write_text(content)
    assert main(["status", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"brokerlab: {tmp_path}")
    assert error.count("\n") == 1
