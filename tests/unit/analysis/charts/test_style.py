from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from analysis.charts import style
from analysis.charts.style import Drawn


def test_every_architecture_looks_different_and_always_the_same() -> None:
    names = ["raft", "zookeeper", "dsbs", "zookeeper-watch", "static", "dsbs-quorum"]
    given = style.looks(names)
    assert len({look.colour for look in given.values()}) == len(names)
    assert len({look.mark for look in given.values()}) == len(names)
    assert style.looks(["dsbs"])["dsbs"] == given["dsbs"]


def test_a_mark_says_its_value_and_what_it_is_of() -> None:
    figure, (axes,) = style.canvas(3, 2)
    (line,) = axes.plot([1, 2], [1, 2])
    style.tip(line, 'a "b" & <c>', ["dsbs", "static"], (32, 20, "split"))
    (plain,) = axes.plot([1], [1])
    style.tip(plain, "floor")
    _, svg = style.rendered(figure)
    marked = '<g class="mark" data-arch="dsbs static" data-size="32" data-batch="20" data-mode="split"><title>'
    assert f'{marked}a "b" &amp; &lt;c&gt;</title>' in svg.decode()
    assert '<g class="mark"><title>floor</title>' in svg.decode()
    ElementTree.fromstring(svg)


def test_labels_that_would_lie_upon_each_other_are_moved_apart_around_their_middle() -> None:
    moved = style.apart([0.5, 0.51, 0.52, 0.9], 0.05)
    assert all(later - sooner >= 0.05 - 1e-9 for sooner, later in pairwise(moved))
    assert sum(moved) == pytest.approx(0.5 + 0.51 + 0.52 + 0.9)
    assert style.apart([0.1, 0.9], 0.05) == [0.1, 0.9]
    assert style.apart([], 0.05) == []
    assert max(style.apart([0.97, 0.98, 0.99], 0.1)) <= 1


@pytest.mark.parametrize("ends", [(0.98, 1.02), (0.3, 1.2), (0.5, 20.0), (1e-3, 1e3)])
def test_an_axis_of_ratios_has_a_tick_at_1_and_few_others(ends: tuple[float, float]) -> None:
    _, (axes,) = style.canvas(3, 2)
    style.log_ratio_axis(axes, ends)
    ticks = list(axes.xaxis.get_major_locator()())
    assert 1 in ticks
    assert len(ticks) <= 13


def test_a_name_with_dollars_is_drawn_as_it_is() -> None:
    figure, (axes,) = style.canvas(3, 2)
    axes.set_title("rtt=$\\frac$")
    png, svg = style.rendered(figure)
    assert png
    assert svg


def test_letters_are_outlines_so_that_no_font_is_needed(named: dict[str, Drawn]) -> None:
    assert b"<text" not in named["figure_01"].svg
    assert b"http" not in re.sub(
        rb'xmlns(:\w+)?="[^"]*"|<!DOCTYPE[^>]*>|<metadata>.*</metadata>', b"", named["figure_01"].svg, flags=re.DOTALL
    )


def test_the_architectures_of_the_experiments_have_fixed_looks_and_unknown_ones_look_like_none_of_them() -> None:
    named = ["zookeeper", "zookeeper-watch", "dsbs", "static", "kafka-zookeeper", "kafka-kraft"]
    fixed = style.looks(named)
    assert all(style.looks([name])[name] == fixed[name] for name in named)
    unknown = [f"mine-{number}" for number in range(20)]
    given = style.looks([*named, *unknown])
    assert len(set(given.values())) == len(given)
    assert not {given[name].mark for name in unknown} & {fixed[name].mark for name in named}
