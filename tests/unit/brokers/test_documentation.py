"""docs/broker.md names every key, every error code, every exit code and every part of the statistics."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from brokers import __main__ as process
from brokers.config import BrokerConfig, Limits, OffsetsConfig, TopicDefaults
from brokers.log.config import FsyncPolicy, LogConfig
from brokers.rpc import brokerlab_pb2 as pb
from coordinators.model import Broker
from coordinators.registry import BACK_ENDS
from workloads.systems import brokerlab

TEXT = (Path(__file__).parents[3] / "docs" / "broker.md").read_text()


@pytest.mark.parametrize("kind", [Limits, TopicDefaults, OffsetsConfig, LogConfig, Broker])
def test_every_setting_is_named(kind: type) -> None:
    assert [field.name for field in fields(kind) if f"{field.name}`" not in TEXT] == []


def test_every_default_that_is_a_small_number_or_word_is_right() -> None:
    for kind, section in ((Limits, "limits"), (TopicDefaults, "topics")):
        for field in fields(kind):
            if isinstance(field.default, int) and 1 < field.default < 100_000:
                (line,) = [line for line in TEXT.splitlines() if f"`{section}.{field.name}`" in line]
                assert str(field.default) in line.replace(",", "")


def test_every_top_key_policy_and_back_end_is_named() -> None:
    names = {field.name for field in fields(BrokerConfig)} - {"me", "coordinator_options"}
    assert {name for name in names if f"`{name}" not in TEXT} == set()
    assert {policy.value for policy in FsyncPolicy if f"`{policy.value}`" not in TEXT} == set()
    assert {name for name in BACK_ENDS if f"`{name}`" not in TEXT} == set()


def test_every_error_code_is_explained() -> None:
    assert [name for name in pb.ErrorCode.keys() if name != "OK" and f"`{name}`" not in TEXT] == []  # noqa: SIM118


def test_every_part_of_the_statistics_is_explained() -> None:
    parts = [field.name for field in pb.StatisticsResponse.DESCRIPTOR.fields if field.name != "broker"]
    assert [name for name in parts if f"| `{name}` |" not in TEXT] == []


def test_exit_codes_are_the_ones_that_who_starts_a_broker_knows() -> None:
    codes = {0, process.EXIT_FAILED, process.EXIT_CONFIG_REFUSED, process.EXIT_PORT_IN_USE}
    assert {int(line.split("|")[1]) for line in TEXT.splitlines() if re.match(r"\| \d", line)} == codes
    assert brokerlab.EXIT_CONFIG_REFUSED == process.EXIT_CONFIG_REFUSED
    assert brokerlab.EXIT_PORT_IN_USE == process.EXIT_PORT_IN_USE
