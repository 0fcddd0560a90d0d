"""What the way of a request costs a broker, by where its answers come from.

`python -m tests.benchmarks.paths` starts a broker of each architecture and gives them the same requests over one
connection, in turns: so many sent together, then all their answers awaited. It prints the processor time that each
broker used for a request, medians of rounds, and each as a multiple of the first's.
"""

from __future__ import annotations

import argparse
import struct
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

from brokers.wire.apis.metadata import MetadataRequest, MetadataTopicName
from brokers.wire.apis.offsets import OffsetCommitPartition, OffsetCommitRequest, OffsetCommitTopic
from brokers.wire.apis.table import ApiKey
from tests.contract.servers import Server
from tests.integration.kafka.raw import RawClient, batch, fetch_request, produce_request, request
from tests.integration.processes.running import PROC, RunningBroker

ARCHITECTURES: Final[dict[str, dict[str, Any]]] = {
    "static": {"name": "static", "offsets": "memory"},
    "lookup-memory": {"name": "static", "metadata": "lookup", "offsets": "memory"},
    "static-journal": {"name": "static", "offsets": "journal"},
    "dsbs": {"name": "dsbs"},
    "zookeeper-watch": {"name": "zookeeper", "metadata": "watch"},
    "zookeeper": {"name": "zookeeper"},
    "zookeeper-each": {"name": "zookeeper", "metadata": "lookup_each"},
}
IN_FLIGHT: Final = (1, 5, 200)
REQUESTS: Final = 4_000
ROUNDS: Final = 5
STORED: Final = 2_000  # messages that fetches read over and over
TOPIC, STORE, GROUP = "paths", "store", "readers"


def produces(messages: int) -> Callable[[int], bytes]:
    records = batch(*[b"x" * 32] * messages)
    return lambda number: produce_request(TOPIC, records, correlation_id=number)


def fetches(number: int) -> bytes:
    return fetch_request(STORE, number % (STORED - 20), bytes_max=2_000, correlation_id=number)


def commits(number: int) -> bytes:
    part = OffsetCommitPartition(partition_index=number % 3, committed_offset=number, committed_metadata=None)
    message = OffsetCommitRequest(
        group_id=GROUP, generation_id=-1, member_id="", topics=(OffsetCommitTopic(name=TOPIC, partitions=(part,)),)
    )
    return request(ApiKey.OFFSET_COMMIT, 7, message, number)


JOBS: Final[dict[str, Callable[[int], bytes]]] = {
    "produce 32 B x 1": produces(1),
    "produce 32 B x 20": produces(20),
    "fetch 32 B x 20": fetches,
    "commit": commits,
}


class Running(NamedTuple):
    process: int
    client: RawClient

    def used_us(self) -> float:
        """Processor time of all threads, those included that have ended."""
        used = 0
        for task in (PROC / str(self.process) / "task").iterdir():
            used += int((task / "schedstat").read_text().split()[0])
        return used / 1000


def made(folder: Path, options: dict[str, Any]) -> RunningBroker:
    return RunningBroker(folder, coordinator=options, topics={"auto_create": True, "partitions": 3})


def started(stack: ExitStack, broker: RunningBroker, module: Sequence[str] = ("brokers",)) -> Running:
    broker.module = module
    broker.start()
    stack.callback(broker.stop)
    assert broker.process is not None
    client = stack.enter_context(RawClient(broker.config["brokers"][0]["kafka_port"]))
    names = (MetadataTopicName(name=TOPIC), MetadataTopicName(name=STORE))
    client.call(ApiKey.METADATA, 5, MetadataRequest(topics=names, allow_auto_topic_creation=True))
    for _ in range(STORED // 20):
        assert client.produce(STORE, batch(*[b"x" * 32] * 20))[0] == 0
    for number in range(3):
        client.send(commits(number))
        client.receive()
    return Running(broker.process.pid, client)


def cost_us(broker: Running, job: Callable[[int], bytes], in_flight: int, requests: int) -> float:
    """Processor time of the broker for a request."""
    numbers = count()
    rounds = max(1, requests // in_flight)
    frames = [b"".join(job(next(numbers)) for _ in range(in_flight)) for _ in range(rounds)]
    before_us = broker.used_us()
    for frame in frames:
        broker.client.send(frame)
        for _ in range(in_flight):
            answer = broker.client.receive()
            assert struct.unpack_from(">i", answer)[0] >= 0
    return (broker.used_us() - before_us) / (rounds * in_flight)


def compared(names: list[str], in_flight: list[int], jobs: list[str], requests: int, rounds: int) -> list[str]:
    found: dict[tuple[str, int, str], list[float]] = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        brokers = {}
        for name in names:
            options = ARCHITECTURES[name]
            if options["name"] == "zookeeper":
                server = Server()
                stack.callback(server.close)
                options = {**options, "connect": server.address}
            brokers[name] = started(stack, made(folder / name, options))
        for number in range(rounds + 1):  # the first is for warmth
            for job in jobs:
                for each in in_flight:
                    for name in names if number % 2 else reversed(names):
                        cost = cost_us(brokers[name], JOBS[job], each, requests)
                        if number:
                            found.setdefault((job, each, name), []).append(cost)
    return lines(found, names[0])


def lines(found: dict[tuple[str, int, str], list[float]], first: str) -> list[str]:
    said = ["| request | sent together | architecture | processor time | times the first |", "|---|--:|---|--:|--:|"]
    for (job, in_flight, name), costs in found.items():
        times = median(cost / other for cost, other in zip(costs, found[job, in_flight, first], strict=True))
        said.append(f"| {job} | {in_flight} | {name} | {median(costs):.1f} us | {times:.2f} |")
    return said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("architectures", nargs="*", default=["static", "lookup-memory"], help=", ".join(ARCHITECTURES))
    parser.add_argument("--jobs", nargs="+", choices=JOBS, default=list(JOBS))
    parser.add_argument("--in-flight", nargs="+", type=int, default=list(IN_FLIGHT))
    parser.add_argument("--requests", type=int, default=REQUESTS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    chosen = parser.parse_args()
    print("\n".join(compared(chosen.architectures, chosen.in_flight, chosen.jobs, chosen.requests, chosen.rounds)))


if __name__ == "__main__":
    main()
