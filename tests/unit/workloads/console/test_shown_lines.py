"""A line for each message, in the order and with the tabs of Kafka's own console."""

from __future__ import annotations

import pytest
from confluent_kafka import Message

from workloads.console.reading import Shown

MESSAGE = Message(
    topic="t", partition=2, offset=7, key=b"k", value=b"v", headers=[("a", b"1"), ("b", None)], timestamp=(1, 0)
)
BARE = Message(topic="t", partition=0, offset=0, value=None)


@pytest.mark.parametrize(
    ("shown", "line"),
    [
        (Shown(offset=False, headers=False, key=False), b"v\n"),
        (Shown(offset=True, headers=False, key=False), b"Partition:2\tOffset:7\tv\n"),
        (Shown(offset=False, headers=True, key=True), b"a:1,b:null\tk\tv\n"),
    ],
)
def test_what_is_asked_for_stands_before_the_value(shown: Shown, line: bytes) -> None:
    assert shown.line(MESSAGE) == line


def test_what_is_not_there_is_shown_as_such() -> None:
    assert Shown(offset=False, headers=True, key=True).line(BARE) == b"NO_HEADERS\tnull\tnull\n"
