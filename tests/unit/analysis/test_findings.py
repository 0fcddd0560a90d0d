from __future__ import annotations

import random

import pytest

from analysis.findings import Findings, cell_of, in_order, middle_cell, size_text, window_text
from tests import made_findings


def test_architectures_come_in_the_order_of_the_experiments(found: Findings) -> None:
    assert found.architectures == ("zookeeper", "dsbs", "static")


def test_another_system_is_not_beside_the_control_and_counts_nothing() -> None:
    foreign = made_findings.foreign()
    assert foreign.beside_control == foreign.counting == {"dsbs", "static"}


def test_rows_come_in_one_order_however_they_arrive(found: Findings) -> None:
    rows = list(found.cells)
    random.Random(1).shuffle(rows)
    assert in_order(rows) == found.cells
    roles = [row["role"] for row in found.cells[:6]]
    assert roles == ["production"] * 6


def test_the_middle_cell_is_of_the_mode_where_there_is_one(found: Findings) -> None:
    cells = [cell_of(row) for row in found.cells]
    assert middle_cell(cells, "streaming") == ("", 20, 8, "streaming")
    assert middle_cell([cell for cell in cells if cell[-1] == "split"], "streaming") == ("", 20, 8, "split")
    assert middle_cell([], "split") is None


@pytest.mark.parametrize(("size", "text"), [(8, "8 B"), (1024, "1 KB"), (1536, "1536 B"), (3 << 20, "3 MB")])
def test_sizes_are_written_as_in_the_experiments_file(size: int, text: str) -> None:
    assert size_text(size) == text


def test_the_window_of_both_roles_is_streaming() -> None:
    assert [window_text(window) for window in ("production", "both")] == ["production", "streaming"]
