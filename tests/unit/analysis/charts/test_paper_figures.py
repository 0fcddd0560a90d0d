from __future__ import annotations

import dataclasses
import re

import pytest

from analysis import publish
from analysis.charts import paper_figures
from analysis.charts.style import Drawn
from analysis.findings import Findings

ALL = {f"figure_{number:02}" for number in range(1, 13)}


def test_every_figure_of_the_paper_is_drawn(named: dict[str, Drawn]) -> None:
    assert set(named) >= ALL
    more = {"ratio_by_cell", "coordination_tax", "latency", "processor_time"}
    more |= {"request_time", "what_if", "heatmap_size_batch"}
    assert set(named) - ALL == more  # the windows are too short for a rate over time, and nothing says what scale costs


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (1, "Production, messages/s, by message size (split"),
        (4, "Production, KB/s, by message size (streaming"),
        (5, "Consumption, messages/s, by message size (split"),
        (8, "Consumption, KB/s, by message size (streaming"),
        (9, "Production, messages/s, by batch size (split, 32 B"),
        (12, "Consumption, messages/s, by batch size (streaming, 32 B"),
    ],
)
def test_figures_have_the_papers_numbers(named: dict[str, Drawn], number: int, words: str) -> None:
    assert named[f"figure_{number:02}"].caption.startswith(f"Figure {number}. {words}")


def test_figures_are_the_same_bytes_each_time_and_tell_no_date(found: Findings, named: dict[str, Drawn]) -> None:
    again = next(iter(paper_figures.figures(found)))
    assert (again.png, again.svg) == (named["figure_01"].png, named["figure_01"].svg)
    assert not re.search(rb"<dc:date>|20\d\d-\d\d-\d\d", again.svg)


@pytest.mark.usefixtures("unrendered")
def test_figure_without_data_is_not_drawn(found: Findings) -> None:
    split = dataclasses.replace(found, cells=tuple(row for row in found.cells if row["mode"] == "split"))
    assert {one.name for one in paper_figures.figures(split)} == {f"figure_{n:02}" for n in range(1, 13, 2)}
    nothing = dataclasses.replace(
        found,
        trials=(),
        cells=(),
        ratios=(),
        latency=(),
        over_time=(),
        coordination=(),
        resources=(),
        batches=(),
    )
    assert publish.draw(nothing) == []


@pytest.mark.usefixtures("unrendered")
def test_one_value_alone_is_no_figure(found: Findings) -> None:
    one = dataclasses.replace(found, cells=tuple(row for row in found.cells if row["batch_size"] == 20))
    assert {one.name for one in paper_figures.figures(one)} == {f"figure_{n:02}" for n in range(1, 9)}
    one = dataclasses.replace(found, cells=tuple(row for row in found.cells if row["message_size"] == 8))
    assert list(paper_figures.figures(one)) == []


@pytest.mark.usefixtures("unrendered")
def test_one_try_has_points_without_bars(found: Findings) -> None:
    once = dataclasses.replace(
        found,
        cells=tuple({**row, "low": None, "high": None} for row in found.cells),
        ratios=tuple({**row, "low": None, "high": None} for row in found.ratios),
    )
    assert {one.name for one in publish.draw(once)} >= ALL | {"ratio_by_cell", "coordination_tax"}
