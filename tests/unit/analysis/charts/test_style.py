from __future__ import annotations

import re

from analysis.charts import style
from analysis.charts.style import Drawn


def test_every_architecture_looks_different_and_always_the_same() -> None:
    names = ["raft", "zookeeper", "dsbs", "zookeeper-watch", "static", "dsbs-quorum"]
    given = style.looks(names)
    assert len({look.colour for look in given.values()}) == len(names)
    assert len({look.mark for look in given.values()}) == len(names)
    assert style.looks(["dsbs"])["dsbs"] == given["dsbs"]


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
