from __future__ import annotations

import os
from pathlib import Path

import pytest

from analysis import publish
from analysis.charts.style import Drawn
from analysis.errors import InputError
from analysis.findings import Findings


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_work_folder_is_gone_at_the_end_and_leftovers_at_the_start(tmp_path: Path) -> None:
    (tmp_path / publish.WORK / "old").mkdir(parents=True)
    with publish.work_folder(tmp_path) as work:
        assert list(work.iterdir()) == []
    assert list(tmp_path.iterdir()) == []


def test_second_analysis_of_a_folder_is_refused_while_one_is_at_work(tmp_path: Path) -> None:
    with publish.work_folder(tmp_path) as work:
        (work / "file").write_text("mine")
        with pytest.raises(InputError, match="another analysis"), publish.work_folder(tmp_path):
            pass
        assert (work / "file").read_text() == "mine"
    with publish.work_folder(tmp_path):
        pass


def test_new_results_take_the_place_of_all_old_ones(found: Findings, drawn: list[Drawn], tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "raft_performance.csv").write_text("of an architecture that is no longer there")
    for _ in range(2):
        with publish.work_folder(tmp_path) as work:
            publish.publish(tmp_path, work, found, drawn, None)
    names = set(files(tmp_path))
    assert {
        "report.html",
        "summary.txt",
        "tables/comparison.csv",
        "tables/comparison.md",
        "tables/comparison.tex",
    } <= names
    assert {"figures/figure_01.png", "figures/figure_01.svg"} <= names
    assert "tables/raft_performance.csv" not in names


def test_failure_half_way_leaves_the_old_results(
    found: Findings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with publish.work_folder(tmp_path) as work:
        publish.publish(tmp_path, work, found, [], None)
    before = files(tmp_path)
    monkeypatch.setattr("analysis.report.page.page", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError), publish.work_folder(tmp_path) as work:
        publish.publish(tmp_path, work, found, [], None)
    assert files(tmp_path) == before


def test_drawing_forks_nothing_that_could_inherit_a_held_lock(found: Findings) -> None:
    forks: list[None] = []
    os.register_at_fork(before=lambda: forks.append(None))
    assert publish.draw(found)
    assert forks == []
