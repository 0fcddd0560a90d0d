from __future__ import annotations

import dataclasses
from typing import Any

from analysis.findings import Findings
from analysis.measures import saturation
from tests import made_findings

EMPTY = Findings()


def row(process: str, cores: float | None, window: str = "production", cell: str = "c") -> dict[str, Any]:
    return {"architecture": "dsbs", "window": window, "cell": cell, "process": process, "cores_busiest": cores}


def found(*rows: dict[str, Any]) -> Findings:
    trials = ({"architecture": "dsbs", "architecture_rank": 0, "kind": "measured"},)
    return dataclasses.replace(EMPTY, trials=trials, resources=rows)


def test_each_cell_has_its_busiest_process() -> None:
    rows = [row("producer", 0.5), row("broker", 0.7), row("broker", 0.2, cell="d"), row("consumer", 1.0, "consumption")]
    busiest = saturation.busiest(found(*rows), "dsbs", "production")
    assert [(one["cell"], one["process"]) for one in busiest] == [("c", "broker"), ("d", "broker")]


def test_nine_tenths_of_a_core_are_a_whole_one_and_less_is_not() -> None:
    assert saturation.saturated(found(row("broker", 0.9))) == {("dsbs", "c", "production"): "broker"}
    assert saturation.saturated(found(row("broker", 0.89))) == {}


def test_a_process_busy_in_streaming_saturates_both_roles() -> None:
    full = saturation.saturated(found(row("consumer", 1.0, "both")))
    assert full == {("dsbs", "c", role): "consumer" for role in ("production", "consumption")}


def test_a_process_of_which_nothing_is_known_is_not_busy() -> None:
    assert saturation.saturated(found(row("broker", None))) == {}
    assert {name for name, _, _ in saturation.saturated(made_findings.foreign())} == set()
