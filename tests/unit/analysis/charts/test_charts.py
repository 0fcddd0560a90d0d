from __future__ import annotations

import dataclasses
import re

import pytest

from analysis import publish
from analysis.charts import comparison, paper_figures, request_time, style, surfaces
from analysis.findings import Findings

pytestmark = pytest.mark.java
ALL = {f"figure_{number:02}" for number in range(1, 13)}


@pytest.fixture(scope="module")
def named(drawn: list[paper_figures.Drawn]) -> dict[str, paper_figures.Drawn]:
    return {one.name: one for one in drawn}


def test_every_figure_of_the_paper_is_drawn(named: dict[str, paper_figures.Drawn]) -> None:
    assert set(named) >= ALL
    more = {"ratio_by_cell", "coordination_tax", "latency", "processor_time"}
    more |= {"request_time", "what_if", "heatmap_size_batch"}
    assert set(named) - ALL == more  # the windows are too short for a rate over time, and nothing says what scale costs


@pytest.fixture
def _unrendered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw, but make no files: a second for every few figures."""
    for module in ("paper_figures", "comparison", "request_time", "surfaces"):
        monkeypatch.setattr(f"analysis.charts.{module}.rendered", lambda figure: (b"", b""))


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
def test_figures_have_the_papers_numbers(named: dict[str, paper_figures.Drawn], number: int, words: str) -> None:
    assert named[f"figure_{number:02}"].caption.startswith(f"Figure {number}. {words}")


def test_figures_are_the_same_bytes_each_time_and_tell_no_date(
    found: Findings, named: dict[str, paper_figures.Drawn]
) -> None:
    again = next(iter(paper_figures.paper_figures(found)))
    assert (again.png, again.svg) == (named["figure_01"].png, named["figure_01"].svg)
    assert not re.search(rb"<dc:date>|20\d\d-\d\d-\d\d", again.svg)


def test_letters_are_outlines_so_that_no_font_is_needed(named: dict[str, paper_figures.Drawn]) -> None:
    assert b"<text" not in named["figure_01"].svg
    assert b"http" not in re.sub(
        rb'xmlns(:\w+)?="[^"]*"|<!DOCTYPE[^>]*>|<metadata>.*</metadata>', b"", named["figure_01"].svg, flags=re.DOTALL
    )


@pytest.mark.usefixtures("_unrendered")
def test_figure_without_data_is_not_drawn(found: Findings) -> None:
    split = dataclasses.replace(found, cells=tuple(row for row in found.cells if row["mode"] == "split"))
    assert {one.name for one in paper_figures.paper_figures(split)} == {f"figure_{n:02}" for n in range(1, 13, 2)}
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


@pytest.mark.usefixtures("_unrendered")
def test_one_value_alone_is_no_figure(found: Findings) -> None:
    one = dataclasses.replace(found, cells=tuple(row for row in found.cells if row["batch_size"] == 20))
    assert {one.name for one in paper_figures.paper_figures(one)} == {f"figure_{n:02}" for n in range(1, 9)}
    one = dataclasses.replace(found, cells=tuple(row for row in found.cells if row["message_size"] == 8))
    assert list(paper_figures.paper_figures(one)) == []


@pytest.mark.usefixtures("_unrendered")
def test_one_try_has_points_without_bars(found: Findings) -> None:
    once = dataclasses.replace(
        found,
        cells=tuple({**row, "low": None, "high": None} for row in found.cells),
        ratios=tuple({**row, "low": None, "high": None} for row in found.ratios),
    )
    assert {one.name for one in publish.draw(once)} >= ALL | {"ratio_by_cell", "coordination_tax"}


def test_every_architecture_looks_different_and_always_the_same() -> None:
    names = ["raft", "zookeeper", "dsbs", "zookeeper-watch", "static", "dsbs-quorum"]
    given = style.looks(names)
    assert len({look.colour for look in given.values()}) == len(names)
    assert len({look.mark for look in given.values()}) == len(names)
    assert style.looks(["dsbs"])["dsbs"] == given["dsbs"]


@pytest.mark.usefixtures("_unrendered")
def test_a_name_with_dollars_is_drawn_as_it_is() -> None:
    figure, (axes,) = style.canvas(3, 2)
    axes.set_title("rtt=$\\frac$")
    png, svg = style.rendered(figure)
    assert png
    assert svg


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
    names = {one.name for one in comparison.more_figures(dataclasses.replace(found, over_time=tuple(rows)))}
    assert "rate_over_time" in names


@pytest.mark.usefixtures("_unrendered")
def test_cost_against_scale_is_drawn_over_the_axis_that_varies_most(found: Findings) -> None:
    rows = tuple(
        {"architecture": name, "source": "rule", "change": change, "brokers": brokers, "topics": 10, "groups": 10,
         "messages": brokers * 7}
        for name in ("dsbs", "zookeeper")
        for change in ("topic created", "broker dies")
        for brokers in (3, 5, 10)
    )  # fmt: skip
    drawn = {one.name: one for one in surfaces.wide_figures(dataclasses.replace(found, scale=rows))}
    assert "by number of brokers (10 topics, 10 groups)" in drawn["cost_against_scale"].caption


@pytest.mark.usefixtures("_unrendered")
def test_one_architecture_alone_has_no_figure_of_ratios(found: Findings) -> None:
    alone = dataclasses.replace(
        found,
        trials=tuple(row for row in found.trials if row["architecture"] == "dsbs"),
        cells=tuple(row for row in found.cells if row["architecture"] == "dsbs"),
        ratios=(),
    )
    assert [*request_time.why_figures(alone), *surfaces.wide_figures(alone)] == []
