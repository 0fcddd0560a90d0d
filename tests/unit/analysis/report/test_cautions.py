from __future__ import annotations

import dataclasses
from typing import Any

from analysis.findings import Findings
from analysis.report import cautions

PAIR = ("dsbs", "zookeeper")


def quiet(found: Findings, **changed: Any) -> Findings:
    """Without a mark or a busy process, and then with these."""
    calm = {"disturbed": False, "unsettled": False, "few": False}
    return dataclasses.replace(
        found,
        windows=tuple({**row, **calm, **changed} for row in found.windows),
        resources=tuple({**row, "cores_busiest": 0.3} for row in found.resources),
    )


def test_nothing_to_say_is_nothing_said(steady: Findings) -> None:
    calm = quiet(steady)
    assert list(cautions.of_family(calm, PAIR, "production")) == []
    assert {cautions.OfCells(calm).marks(row) for row in calm.ratios} == {""}


def test_windows_are_counted_of_the_pair_and_family(steady: Findings) -> None:
    windows = 2 * 7 * 3 * 2  # architectures, cells, blocks, rounds
    for family in ("production", "consumption", "streaming"):
        (told,) = cautions.of_family(quiet(steady, disturbed=True), PAIR, family)
        assert told == f"of {windows} windows, {windows} disturbed"


def test_a_client_that_kept_a_core_busy_bounds_the_cells_it_worked_in(steady: Findings) -> None:
    calm = quiet(steady)
    resources = tuple(
        {**row, "cores_busiest": 0.95}
        if (row["architecture"], row["process"], row["batch_size"]) == ("dsbs", "producer", 50)
        else row
        for row in calm.resources
    )
    busy = dataclasses.replace(calm, resources=resources)
    assert list(cautions.of_family(busy, PAIR, "production")) == ["client-bound in 1 of 7 cells"]
    assert list(cautions.of_family(busy, PAIR, "consumption")) == []
    marks = {
        cautions.OfCells(busy).marks(row)
        for row in busy.ratios
        if (row["batch_size"], row["role"], row["mode"]) == (50, "production", "split")
    }
    assert marks == {"", "client-bound (producer of dsbs)"}


def test_a_server_that_kept_a_core_busy_is_part_of_the_answer_and_only_marked_in_its_cell(steady: Findings) -> None:
    calm = quiet(steady)
    resources = tuple(
        {**row, "cores_busiest": 0.95} if row["process"] == "coordinator" else row for row in calm.resources
    )
    busy = dataclasses.replace(calm, resources=resources)
    assert list(cautions.of_family(busy, PAIR, "production")) == []
    (row,) = (
        row
        for row in busy.ratios
        if (row["architecture"], row["against"], row["batch_size"], row["mode"], row["role"])
        == (*PAIR, 1, "split", "production")
    )
    assert cautions.OfCells(busy).marks(row) == "busy (coordinator of zookeeper)"


def test_marks_of_windows_stand_at_their_cell(steady: Findings) -> None:
    found = quiet(steady, unsettled=True)
    assert {cautions.OfCells(found).marks(row) for row in found.ratios} == {"12 of 12 windows unsettled"}
