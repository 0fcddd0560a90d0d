from __future__ import annotations

import pytest

from analysis.charts import request_time
from analysis.findings import Findings
from tests import made_findings


@pytest.mark.usefixtures("unrendered")
def test_times_and_prices_are_drawn_for_the_size_with_most_batch_sizes(found: Findings) -> None:
    times, prices = request_time.figures(found)
    assert (times.name, prices.name) == ("request_time", "what_if")
    assert times.caption.startswith("A request's time, 32 B")
    assert "ratio of dsbs to zookeeper" in prices.caption


def test_one_architecture_alone_has_nothing_to_split(found: Findings) -> None:
    assert list(request_time.figures(made_findings.alone(found, "dsbs"))) == []
