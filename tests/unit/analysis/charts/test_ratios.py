from __future__ import annotations

import dataclasses
import re

import pytest

from analysis.charts import ratios
from analysis.findings import Findings


@pytest.mark.usefixtures("unrendered")
def test_each_pair_of_the_answer_has_a_forest_and_the_aa_too(steady: Findings) -> None:
    assert [one.name for one in ratios.figures(steady)] == [
        "ratio_dsbs_zookeeper",
        "ratio_dsbs_zookeeper_watch",
        "ratio_zookeeper_static",
        "ratio_zookeeper_watch_static",
        "ratio_dsbs_static",
        "ratio_static_again_static",
    ]


def test_a_forest_has_the_pooled_ratio_every_cell_the_floor_and_the_aa(steady: Findings) -> None:
    titles = re.findall(r"<title>(.*?)</title>", next(iter(ratios.figures(steady))).svg.decode())
    for words in ("all cells, production: ", "32 B, batch 1, split, consumption: ", "floor: 3.0 %", "A/A: 1.00 "):
        assert any(words in title for title in titles), words
    assert any(re.search(r"64 B, batch 20, streaming, consumption: [\d.]+ \(.* to .*\), n = 3", one) for one in titles)


@pytest.mark.usefixtures("unrendered")
def test_a_ratio_that_has_no_value_or_no_interval_is_left_out_or_has_no_line(steady: Findings) -> None:
    bare = tuple({**row, "low": None, "high": None} for row in steady.ratios)
    assert len(list(ratios.figures(dataclasses.replace(steady, ratios=bare)))) == 6
    empty = tuple({**row, "ratio": None} for row in bare)
    assert list(ratios.figures(dataclasses.replace(steady, ratios=empty))) == []


@pytest.mark.usefixtures("unrendered")
def test_without_an_aa_there_is_a_forest_without_a_floor(steady: Findings) -> None:
    assert len(list(ratios.figures(dataclasses.replace(steady, zero=())))) == 6


def test_a_cell_is_named_by_size_batch_mode_and_other_axes() -> None:
    assert ratios.cell_text(("", 20, 32, "split")) == "32 B, batch 20, split"
    assert ratios.cell_text(("brokers=5", 1, 1024, "streaming")) == "1 KB, batch 1, streaming, brokers=5"
