from __future__ import annotations

import dataclasses
from typing import Any

from analysis.findings import Findings
from analysis.report import request_time_sentences
from tests import made_findings, made_records


def said(found: Findings) -> str:
    return " ".join(request_time_sentences.sentences(found))


def test_the_share_of_coordination_and_the_ratio_at_other_prices_are_told(found: Findings) -> None:
    text = said(found)
    assert "zookeeper 60 % (60 to 60 %); dsbs 20 % (20 to 20 %)" in text
    assert "dsbs would be 1.12, 1.56, 2.00 or 3.78 times as fast as zookeeper" in text
    assert "5.10 requests of zookeeper waited at once (median)" in text


def test_a_coordination_request_is_told_by_its_parts(found: Findings) -> None:
    text = said(found)
    assert "waited 500 µs for a coordination request of zookeeper" in text
    assert "The server's processor time in it is 60.0 µs" in text
    assert "the client takes 67 % of the processor time of both" in text


def with_resources(found: Findings, **changed: Any) -> Findings:
    return dataclasses.replace(found, resources=tuple({**row, **changed} for row in found.resources))


def test_a_client_that_does_not_count_is_not_known_rather_than_nothing(found: Findings) -> None:
    text = said(with_resources(found, coordination_cpu_us_per_message=None))
    assert "that of the coordination client in the brokers is not known (medians" in text


def test_without_static_the_share_cannot_be_told() -> None:
    without = made_findings.of(made for made in made_records.small_run() if made.architecture != "static")
    assert "cannot be told: static" in said(without)


def test_waits_that_are_not_counted_are_left_out_of_the_model(found: Findings) -> None:
    text = said(dataclasses.replace(found, coordination=(), batches=()))
    assert "with as many waits overlapping as here." in text


def test_one_architecture_alone_has_no_ratio_to_another(found: Findings) -> None:
    assert "times as fast" not in said(made_findings.alone(found, "dsbs"))
