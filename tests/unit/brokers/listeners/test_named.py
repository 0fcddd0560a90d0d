"""Which partitions the requests of a read name, before anybody is asked."""

from __future__ import annotations

from pathlib import Path

from brokers.listeners.events import Requests
from brokers.listeners.requests.named import named
from brokers.listeners.requests.produce import Run
from coordinators.model import TopicPartition
from tests.integration.kafka.raw import batch, fetch_request, produce_request
from tests.unit.brokers.listeners.harness import HeldBack, listening, run

ONE, FIRST, SECOND = TopicPartition("one", 0), TopicPartition("two", 0), TopicPartition("two", 1)


def requests_of(*frames: bytes, alike: int = 0) -> Requests:
    data, places = bytearray(), []
    for frame in frames:
        places.append((len(data) + 4, len(data) + len(frame)))
        data += frame
    return Requests(data, memoryview(data), places, alike)


def named_by(folder: Path, requests: Requests) -> dict[TopicPartition, int]:
    found: dict[TopicPartition, int] = {}

    async def work() -> None:
        async with listening(folder, kind=HeldBack) as harness:
            found.update(named(requests, Run(harness.listener._service)))

    run(work())
    return found


def test_each_partition_is_counted_by_the_requests_that_name_it(tmp_path: Path) -> None:
    frames = [produce_request("two", batch(b"v"), partition=n % 2) for n in range(5)]
    assert named_by(tmp_path, requests_of(*frames, fetch_request("one", 0))) == {FIRST: 3, SECOND: 2, ONE: 1}


def test_requests_that_are_begun_name_nothing(tmp_path: Path) -> None:
    requests = requests_of(produce_request("one", batch(b"v")), produce_request("two", batch(b"v")))
    requests.number = 1
    assert named_by(tmp_path, requests) == {FIRST: 1}


def test_what_is_malformed_names_nothing_nor_does_what_follows(tmp_path: Path) -> None:
    broken = bytearray(produce_request("one", batch(b"v")))
    broken[-60:] = b"\xff" * 60
    frames = (produce_request("two", batch(b"v")), bytes(broken[:40]), produce_request("one", batch(b"v")))
    assert named_by(tmp_path, requests_of(*frames)) == {FIRST: 1}
