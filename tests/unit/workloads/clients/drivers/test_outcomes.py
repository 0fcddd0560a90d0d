"""What each driver says of a send's end: `fail` only where the messages are certainly not stored."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from brokers.rpc import brokerlab_pb2 as pb
from tests.unit.workloads.clients.jobs import Words, produce_job
from workloads.clients.drivers import grpc, kafka
from workloads.clients.drivers.api import COUNTER_BITS, OK, Produced, WindowOrder
from workloads.clients.drivers.grpc.producer import _Sent
from workloads.clients.history import NO_OFFSET, History, history_path, read_histories

FIRST = (2 << COUNTER_BITS) + 8


def answer(*, definite: bool) -> pb.ProduceResponse:
    return pb.ProduceResponse(error=pb.Error(code=pb.NOT_LEADER, definite=definite))


@pytest.mark.parametrize(
    ("status", "said", "outcome", "offset"),
    [
        (OK, pb.ProduceResponse(base_offset=40), "ok", 40),
        ("NOT_LEADER", answer(definite=True), "fail", NO_OFFSET),
        ("NOT_LEADER", answer(definite=False), "unknown", NO_OFFSET),
        ("UNAVAILABLE", None, "unknown", NO_OFFSET),  # the stream broke
        (OK, None, "unknown", NO_OFFSET),  # acks=0: it left, and nobody answers
    ],
)
def test_the_driver_grpc_takes_the_brokers_word_and_knows_nothing_without_one(
    status: str, said: pb.ProduceResponse | None, outcome: str, offset: int
) -> None:
    with closing(grpc.Producer(produce_job(Path()))) as producer:
        found = producer._operation(1, _Sent(8, 2, 100), 200, status, said)
    assert (found.partition, found.first, found.messages) == (1, FIRST, 2)
    assert (found.invoked_ns, found.done_ns) == (100, 200)
    assert (found.outcome, found.offset) == (outcome, offset)
    assert found.detail == ("" if outcome == "ok" else status)


def sent_to_nobody(folder: Path, **changes: Any) -> tuple[Produced, list[dict[str, Any]]]:
    """What a producer whose brokers are not there says of a window, and its history, through the library's own
    attempts."""
    out = folder / "producer-2"
    history = History(history_path(out), "producer", 2)
    producer = kafka.Producer(produce_job(out, driver="kafka", answer_within_s=0.5, **changes), history)
    with closing(producer):
        producer.prepare(WindowOrder(1, 10))
        produced = producer.run(Words())
    history.close()
    found: list[dict[str, Any]] = read_histories([out]).to_pylist()
    return produced, found


def test_the_driver_kafka_does_not_know_of_a_message_that_had_no_answer_in_time(tmp_path: Path) -> None:
    _, found = sent_to_nobody(tmp_path)
    assert sum(row["messages"] for row in found) == 10
    assert {(row["outcome"], row["detail"], row["offset"]) for row in found} == {
        ("unknown", "_MSG_TIMED_OUT", NO_OFFSET)
    }
    assert all(row["invoked_ns"] <= row["done_ns"] for row in found)


@pytest.mark.parametrize("batch_size", [1, 2, 4])
def test_messages_that_failed_are_counted_and_in_no_row(tmp_path: Path, batch_size: int) -> None:
    produced, _ = sent_to_nobody(tmp_path, batch_size=batch_size)
    assert (produced.sent, produced.failed) == (10, {"_MSG_TIMED_OUT": 10})
    assert (produced.acknowledged, produced.rows) == ({}, [])
