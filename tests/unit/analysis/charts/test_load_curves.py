from __future__ import annotations

import dataclasses
import re

import pytest

from analysis.charts import load_curves
from analysis.findings import Findings


def test_each_size_and_batch_under_load_has_its_curves(steady: Findings) -> None:
    first, second = load_curves.figures(steady)
    assert (first.name, second.name) == ("latency_32_1", "latency_32_20")
    assert (second.table, second.only) == ("load", ("message_size=32B", "batch_size=20", "mode=load"))
    titles = re.findall(r"<title>(.*?)</title>", second.svg.decode())
    assert "dsbs at 60% load (107,331 messages/s): 0.916 ms, n = 3" in titles


@pytest.mark.usefixtures("unrendered")
def test_one_load_is_no_curve(steady: Findings) -> None:
    once = tuple(row for row in steady.load if row["load"] == 0.6)
    assert list(load_curves.figures(dataclasses.replace(steady, load=once))) == []


@pytest.mark.usefixtures("unrendered")
def test_a_latency_that_nobody_measured_has_no_panel(steady: Findings) -> None:
    sent = tuple({**row, "e2e_p50_us": None, "e2e_p99_us": None} for row in steady.load)
    assert len(list(load_curves.figures(dataclasses.replace(steady, load=sent)))) == 2
