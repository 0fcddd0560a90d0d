from __future__ import annotations

import dataclasses

import pytest

from analysis.charts import inside
from analysis.findings import Findings


@pytest.mark.usefixtures("unrendered")
def test_rate_over_time_is_drawn_for_windows_that_have_time(steady: Findings) -> None:
    names = ("cell", "others", "message_size", "batch_size", "mode", "architecture", "architecture_rank")
    cell = {name: steady.cells[0][name] for name in names}
    rows = tuple(
        {**cell, "role": role, "try": 1, "slice": n, "rps": 1e5 + n, "at_s": n / 10}
        for role in ("production", "consumption")
        for n in range(5)
    )
    drawn = {one.name: one for one in inside.figures(dataclasses.replace(steady, over_time=rows))}
    assert drawn["rate_over_time"].only[0].startswith("message_size=")
    few = tuple(row for row in rows if row["slice"] < 4)
    assert [one.name for one in inside.figures(dataclasses.replace(steady, over_time=few))] == ["processor_time"]


def test_processor_time_is_told_for_each_end_of_both_modes(steady: Findings) -> None:
    (drawn,) = inside.figures(steady)
    assert drawn.caption == "Processor time a message by kind of process, 32 B, batch 20."
    assert "zookeeper, coordinator: 0.400 µs a message" in drawn.svg.decode()


@pytest.mark.usefixtures("unrendered")
def test_processor_time_that_is_not_known_has_no_piece_of_a_bar(steady: Findings) -> None:
    unknown = tuple({**row, "cpu_us_per_message": None, "cores_busiest": None} for row in steady.resources)
    assert [one.name for one in inside.figures(dataclasses.replace(steady, resources=unknown))] == ["processor_time"]
    assert list(inside.figures(dataclasses.replace(steady, resources=()))) == []
