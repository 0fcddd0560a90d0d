"""The talk with a client process over its pipes, with the real drivers and brokers behind it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from tests.integration.kafka.cluster import Cluster
from tests.unit.workloads.clients.jobs import consume_job, produce_job
from workloads.clients.client_files import read_ids, read_receipts, read_requests
from workloads.clients.history import read_histories

DRIVERS = ("kafka", "grpc")
SIZES = {"message_size": 32, "batch_size": 10}


class Client:
    """A client process, as the runner speaks with it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def tell(self, **message: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def hear(self, word: str) -> Any:
        """The next answer, which must be this one."""
        answer = self.answer()
        assert list(answer) == [word], answer
        return answer[word]

    def begin(self, **order: object) -> None:
        self.tell(window={"number": 1, "messages": None, "rate": None, **order})
        assert self.hear("prepared") is True
        self.tell(go=True)

    def connect(self, job: Any) -> None:
        self.tell(produce=asdict(job))
        assert self.hear("ready")["seconds"] > 0

    def join(self, job: Any) -> list[int]:
        self.tell(consume=asdict(job))
        assert self.hear("joined") is True
        self.tell(all_joined=True)
        partitions: list[int] = self.hear("ready")["partitions"]
        return partitions

    def produce(self, **order: object) -> dict[str, Any]:
        """A window of an exact number of messages."""
        self.begin(**order)
        assert self.hear("working") is True
        done: dict[str, Any] = self.hear("done")
        return done

    def keep(self, *, all_windows: bool) -> None:
        self.tell(keep=all_windows)
        assert self.hear("kept") is True


@contextmanager
def client(*drivers: str) -> Iterator[Client]:
    """One that ends when nobody speaks with it any more."""
    command = [sys.executable, "-m", "workloads.clients.client", *drivers]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Client(process)
            assert process.stdin is not None
            process.stdin.close()
            assert process.wait(20) == 0
        finally:
            process.kill()


def place(cluster: Cluster, topic: str, driver: str) -> dict[str, Any]:
    port = {"kafka": "kafka_port", "grpc": "rpc_port"}[driver]
    return {
        "driver": driver, "bootstrap": tuple(f"127.0.0.1:{row[port]}" for row in cluster.rows), "topic": topic, **SIZES,
    }  # fmt: skip


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_producer_works_window_by_window_and_writes_all_of_them_down(
    three: Cluster, batched: str, driver: str, tmp_path: Path
) -> None:
    out = tmp_path / "producer-2"
    with client(driver) as producer:
        producer.connect(produce_job(out, **place(three, batched, driver)))
        done = [producer.produce(number=1, messages=25), producer.produce(number=2, messages=30, rate=10_000.0)]
        producer.begin(number=3)
        producer.hear("working")
        producer.tell(stop=True)
        done.append(producer.hear("done"))
        done.append(producer.produce(number=4, messages=10))
        producer.keep(all_windows=True)
    assert [part["sent"] for part in done] == [25, 30, done[2]["sent"], 10], "a stop holds for its window alone"
    assert done[2]["sent"] > 0
    for part in done:
        assert (part["acknowledged"], part["failed"]) == (part["sent"], {})
        assert part["window_s"] > 0
    rows = read_requests([out], "t").to_pylist()
    in_window = [sum(row["messages"] for row in rows if row["window_number"] == number) for number in (1, 2, 3, 4)]
    assert in_window == [part["sent"] for part in done]
    ids = [number for found in read_ids(out).values() for number in found.tolist()]
    assert len(set(ids)) == len(ids) == sum(in_window)


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_consumer_stops_at_its_targets_or_when_told_and_reads_on(
    three: Cluster, batched: str, driver: str, tmp_path: Path
) -> None:
    produced, consumed = tmp_path / "producer-2", tmp_path / "consumer-0"
    with client(driver) as producer:
        producer.connect(produce_job(produced, **place(three, batched, driver)))
        producer.produce(messages=9000)
        producer.keep(all_windows=True)
    ends = {str(number): len(ids) for number, ids in read_ids(produced).items()}
    with client(driver) as consumer:
        share = {"partitions": (0, 1, 2), "group": f"group-{batched}"}
        assert consumer.join(consume_job(consumed, **place(three, batched, driver), **share)) == [0, 1, 2]
        done: list[dict[str, Any]] = []
        for targets in ({"0": 10, "1": 0, "2": 7}, {"0": 10, "1": 30, "2": 0}):
            consumer.tell(window={"number": len(done) + 1, "messages": None, "rate": None})
            consumer.tell(targets=targets)
            consumer.hear("prepared")
            consumer.tell(go=True)
            consumer.hear("working")
            done.append(consumer.hear("done"))
        assert [(part["consumed"], part["dry"]) for part in done] == [(17, True), (30, True)]
        consumer.begin(number=3)
        consumer.hear("working")
        consumer.tell(stop=True)
        stopped = consumer.hear("done")
        assert stopped["consumed"] > 0
        assert not stopped["dry"], "the targets of a window hold for it alone"
        consumer.begin(number=4)
        consumer.tell(targets=ends)
        consumer.hear("working")
        assert consumer.hear("done")["dry"]
        consumer.keep(all_windows=True)
    assert {n: ids.tolist() for n, ids in read_ids(consumed).items()} == {
        n: ids.tolist() for n, ids in read_ids(produced).items()
    }
    assert read_receipts(consumed) == {}
    assert {row["window_number"] for row in read_requests([consumed], "t").to_pylist()} == {1, 2, 3, 4}


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_consumer_beside_producers_is_at_work_before_they_are_and_says_when_messages_came(
    three: Cluster, batched: str, driver: str, tmp_path: Path
) -> None:
    produced, consumed = tmp_path / "producer-2", tmp_path / "consumer-0"
    with client(driver) as producer, client(driver) as consumer:
        producer.connect(produce_job(produced, **place(three, batched, driver)))
        share = {"partitions": (0, 1, 2), "group": f"group-{batched}", "end_to_end": True}
        consumer.join(consume_job(consumed, **place(three, batched, driver), **share))
        for number in (1, 2):
            consumer.begin(number=number)
            consumer.hear("working")
            producer.produce(number=number, messages=300)
            if number == 1:
                consumer.tell(stop=True)
                first = consumer.hear("done")["consumed"]
        producer.keep(all_windows=True)
        consumer.tell(targets={str(number): len(ids) for number, ids in read_ids(produced).items()})
        assert consumer.hear("done")["consumed"] == 600 - first
        consumer.keep(all_windows=True)
    receipts = [row.tolist() for rows in read_receipts(consumed).values() for row in rows]
    assert sum(messages for messages, _, number in receipts if number == 1) == first
    assert sum(messages for messages, _, number in receipts if number == 2) == 600 - first


def test_a_job_that_fails_is_told_and_the_next_one_is_done(three: Cluster, batched: str, tmp_path: Path) -> None:
    with client("grpc") as one:
        one.tell(produce=asdict(produce_job(tmp_path / "a", bootstrap=("127.0.0.1:1",))))
        assert "unavailable" in one.hear("failed")
        one.connect(produce_job(tmp_path / "b", **place(three, batched, "grpc")))
        assert one.produce(messages=10)["acknowledged"] == 10
        one.keep(all_windows=False)
    assert list(tmp_path.iterdir()) == [], "nothing is written where nobody keeps it"


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_producer_with_a_history_tells_how_far_it_is_over_all_windows(
    three: Cluster, batched: str, driver: str, tmp_path: Path
) -> None:
    out = tmp_path / "producer-2"
    told: list[int] = []
    with client(driver) as producer:
        producer.connect(produce_job(out, **place(three, batched, driver), history=True, tell_every=100))
        for number in (1, 2):
            producer.begin(number=number, messages=300)
            while "done" not in (answer := producer.answer()):
                if "acknowledged" in answer:
                    told.append(answer["acknowledged"])
            assert answer["done"]["acknowledged"] == 300
        producer.keep(all_windows=True)
    assert len(told) == 6
    assert told[-1] == 600
    history = read_histories([out]).to_pylist()
    assert sum(row["messages"] for row in history) == 600
    assert {row["outcome"] for row in history} == {"ok"}
    ids = {number for found in read_ids(out).values() for number in found.tolist()}
    assert {row["first"] + at for row in history for at in range(row["messages"])} == ids
