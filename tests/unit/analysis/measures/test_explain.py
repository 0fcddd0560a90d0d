"""Which corner of a grid comes nearest to the published ratios, on rows made by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

from analysis.findings import Findings
from analysis.measures.explain import explain, published_ratios
from analysis.report.audit_tables import paper_explain

PUBLISHED = {1: 1.0, 20: 3.0, 50: 1.2}


def numbers(ratios: dict[int, float] = PUBLISHED) -> tuple[dict[str, Any], ...]:
    common = {"table": "batch_sweep", "message_size": 32, "mode": "split", "role": "production", "metric": "rps"}
    return tuple(
        {**common, "architecture": name, "batch_size": batch, "try": "avg", "value": 1000.0 * factor}
        for batch, ratio in ratios.items()
        for name, factor in (("dsbs", ratio), ("zookeeper", 1.0))
    )


def corner(
    ratios: dict[int, float], others: str = "", against: str = "zookeeper", sd: float = 0.01
) -> list[dict[str, Any]]:
    return [
        {
            "architecture": "dsbs", "against": against, "others": others, "message_size": 32, "batch_size": batch,
            "mode": "split", "role": "production", "ratio": ratio, "sd": sd, "n": 4, "degrees": 3.0,
        }
        for batch, ratio in ratios.items()
    ]  # fmt: skip


def found(*corners: list[dict[str, Any]], published: tuple[dict[str, Any], ...] | None = None) -> Findings:
    ratios = tuple(row for rows in corners for row in rows)
    return Findings(ratios=ratios, published=numbers() if published is None else published)


def test_published_ratios_are_those_of_the_batch_sweeps_averages_alone() -> None:
    other = {**numbers()[0], "table": "size_sweep", "value": 1.0}
    one_try = {**numbers()[0], "try": "1", "value": 1.0}
    assert published_ratios([*numbers(), other, one_try]) == pytest.approx(PUBLISHED)


def test_the_distance_is_the_mean_absolute_log_ratio_and_the_nearest_comes_first() -> None:
    near = {batch: ratio * 1.1 for batch, ratio in PUBLISHED.items()}
    far = {1: 2.0, 20: 3.0, 50: 1.2}
    rows = explain(found(corner(far, "in_flight=20"), corner(near, "in_flight=1")))
    assert [row["others"] for row in rows] == ["in_flight=1", "in_flight=20"]
    assert [row["distance"] for row in rows] == pytest.approx([math.log(1.1), math.log(2.0) / 3])
    assert [row["nearest"] for row in rows] == [1.0, 0.0]


def test_corners_that_cannot_be_told_apart_share_the_draws() -> None:
    rows = explain(found(corner(PUBLISHED, "a=1", sd=0.3), corner(PUBLISHED, "a=2", sd=0.3)))
    shares = [row["nearest"] for row in rows]
    assert sum(shares) == pytest.approx(1)
    assert all(0.4 < share < 0.6 for share in shares)


def test_a_corner_that_lacks_a_published_batch_size_is_left_out() -> None:
    whole, part = corner(PUBLISHED, "a=1"), corner({1: 1.0, 20: 3.0}, "a=2")
    assert explain(found(whole, part)) == ()
    rows = explain(found(whole, part, corner(PUBLISHED, against="zookeeper-watch")))
    assert [(row["against"], row["others"]) for row in rows] == [("zookeeper", "a=1"), ("zookeeper-watch", "")]


def test_the_table_has_a_column_for_each_published_batch_size_and_the_paper_in_its_first_row() -> None:
    table = paper_explain(found(corner(PUBLISHED, "a=1"), corner({1: 2.0, 20: 3.0, 50: 1.2}, "a=2")))
    assert [row["others"] for row in table.rows] == ["", "a=1", "a=2"]
    assert [table.rows[0][f"at_{batch}"] for batch in PUBLISHED] == pytest.approx(list(PUBLISHED.values()))
    assert [table.rows[2][f"at_{batch}"] for batch in PUBLISHED] == [2.0, 3.0, 1.2]
    assert {f"at_{batch}" for batch in PUBLISHED} <= {column.name for column in table.columns}
    assert paper_explain(Findings()).rows == ()


def test_the_same_findings_say_the_same() -> None:
    of = found(corner(PUBLISHED, "a=1", sd=0.2), corner(PUBLISHED, "a=2", sd=0.2))
    assert explain(of) == explain(of)
