from __future__ import annotations

import dataclasses

import pytest

from analysis.charts import surfaces
from analysis.findings import Findings
from tests import made_findings


@pytest.mark.usefixtures("unrendered")
def test_cost_against_scale_is_drawn_over_the_axis_that_varies_most(found: Findings) -> None:
    rows = tuple(
        {"architecture": name, "source": "rule", "change": change, "brokers": brokers, "topics": 10, "groups": 10,
         "messages": brokers * 7}
        for name in ("dsbs", "zookeeper")
        for change in ("topic created", "broker dies")
        for brokers in (3, 5, 10)
    )  # fmt: skip
    drawn = {one.name: one for one in surfaces.figures(dataclasses.replace(found, scale=rows))}
    assert "by number of brokers (10 topics, 10 groups)" in drawn["cost_against_scale"].caption


@pytest.mark.usefixtures("unrendered")
def test_the_ratio_is_drawn_over_both_sizes_where_both_are_swept(found: Findings) -> None:
    assert "Ratio of dsbs to zookeeper" in next(iter(surfaces.figures(found))).caption
    few = tuple({**row, "ratio": None} if row["message_size"] == 8 else row for row in found.ratios)
    assert list(surfaces.figures(dataclasses.replace(found, ratios=few))) == []
    one_size = dataclasses.replace(found, ratios=tuple(row for row in found.ratios if row["message_size"] == 32))
    assert list(surfaces.figures(one_size)) == []


def test_one_architecture_alone_has_no_ratio_to_draw(found: Findings) -> None:
    assert list(surfaces.figures(made_findings.alone(found, "dsbs"))) == []
