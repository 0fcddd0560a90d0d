from __future__ import annotations

import dataclasses

import pytest

from analysis.charts import comparison
from analysis.findings import Findings
from tests import made_findings


def test_rate_over_time_is_drawn_for_windows_that_have_time(found: Findings) -> None:
    cell = {name: found.cells[0][name] for name in ("cell", "others", "message_size", "batch_size", "mode")}
    rows = [
        {
            **cell,
            "architecture": "dsbs",
            "architecture_rank": 1,
            "role": role,
            "try": 1,
            "slice": n,
            "rps": 1e5 + n,
            "at_s": n / 10,
        }
        for role in ("production", "consumption")
        for n in range(5)
    ]
    names = {one.name for one in comparison.figures(dataclasses.replace(found, over_time=tuple(rows)))}
    assert "rate_over_time" in names


@pytest.mark.usefixtures("unrendered")
def test_one_architecture_alone_has_latency_and_processor_time_and_nothing_to_compare(found: Findings) -> None:
    names = [one.name for one in comparison.figures(made_findings.alone(found, "dsbs"))]
    assert names == ["latency", "processor_time"]


@pytest.mark.usefixtures("unrendered")
def test_processor_time_that_is_not_known_has_no_piece_of_a_bar(found: Findings) -> None:
    unknown = tuple({**row, "cpu_us_per_message": None, "cores_busiest": None} for row in found.resources)
    names = {one.name for one in comparison.figures(dataclasses.replace(found, resources=unknown))}
    assert "processor_time" in names
