from __future__ import annotations

import dataclasses
import math
import re

import pytest
from matplotlib.figure import Figure

from analysis import publish
from analysis.charts import paper_figures
from analysis.charts.style import Drawn
from analysis.findings import Findings

ALL = {f"figure_{number:02}" for number in range(1, 13)}


def test_every_figure_of_the_paper_is_drawn(named: dict[str, Drawn]) -> None:
    assert set(named) >= ALL
    more = {"ratio_dsbs_zookeeper", "ratio_dsbs_static", "ratio_zookeeper_static"}
    more |= {"request_time", "what_if", "processor_time", "heatmap_size_batch", "rate_over_time"}
    assert set(named) - ALL == more  # nothing was measured at a fixed load, and nothing says what scale costs


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
        pooled=(),
        windows=(),
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
    assert {one.name for one in publish.draw(once)} >= ALL | {"ratio_dsbs_zookeeper"}


def titles(figure: Drawn) -> list[str]:
    return re.findall(r"<title>(.*?)</title>", figure.svg.decode())


def test_marks_say_value_interval_and_n_and_the_published_ones_the_spread_of_their_tries(
    named: dict[str, Drawn],
) -> None:
    told = titles(named["figure_01"])
    assert any(re.fullmatch(r"dsbs: [\d,]+ messages/s \([\d,]+ to [\d,]+\), n = \d", text) for text in told)
    assert any(re.fullmatch(r"zookeeper, published: [\d,]+ messages/s, tries [\d,]+ to [\d,]+", text) for text in told)


def test_every_title_differs(found: Findings, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    def rendered(figure: Figure) -> tuple[bytes, bytes]:
        shown.extend(axes.get_title(loc="left") for axes in figure.axes)
        return b"", b""

    monkeypatch.setattr("analysis.charts.style.rendered", rendered)
    assert len(list(paper_figures.figures(found))) == len(set(shown)) == len(ALL)


def test_split_and_streaming_share_their_axis(found: Findings, monkeypatch: pytest.MonkeyPatch) -> None:
    frames: list[tuple[float, float]] = []

    def rendered(figure: Figure) -> tuple[bytes, bytes]:
        frames.append(figure.axes[0].get_ylim())
        return b"", b""

    monkeypatch.setattr("analysis.charts.style.rendered", rendered)
    assert len(list(paper_figures.figures(found))) == len(ALL)
    assert frames[::2] == frames[1::2]


def test_on_a_logarithmic_axis_the_interval_is_geometric() -> None:
    row = {"geometric": 100.0, "cv": 0.1, "n": 5}
    value, low, high = paper_figures.geometric(row)
    assert low is not None
    assert high is not None
    assert value / low == pytest.approx(high / value)
    assert high / value == pytest.approx(math.exp(2.776445 * math.sqrt(math.log(1.01) / 5)), rel=1e-5)
    assert paper_figures.geometric({**row, "n": 1, "cv": None}) == (100.0, None, None)
