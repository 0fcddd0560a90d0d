"""A leader that was stopped for a while hears of what happened before it acknowledges anything."""

from __future__ import annotations

import signal
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from brokers.rpc import brokerlab_pb2 as pb
from tests.contract.servers import fresh_chroot
from tests.integration.kafka.raw import RawClient, batch, produce_request, produced
from tests.integration.processes.running import RunningBroker, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.contract.servers import Server

pytestmark = pytest.mark.java
DOUBT_MS = 500
REQUESTS = 20


def coordinator(architecture: str, server: Server) -> dict[str, Any]:
    """Each of them keeps its metadata in the broker."""
    if architecture == "dsbs":
        # A deletion does not wait long for who does not answer, and nobody is buried meanwhile.
        return {"name": "dsbs", "doubt_ms": DOUBT_MS, "acknowledge_ms": 200, "timeout_ms": 20_000}
    watch = {"name": "zookeeper", "metadata": "watch", "doubt_ms": DOUBT_MS}
    return watch | {"connect": server.address, "chroot": fresh_chroot(), "session_timeout_ms": 20_000}


@contextmanager
def pair(folder: Path, options: dict[str, Any]) -> Iterator[dict[int, RunningBroker]]:
    """Two brokers that know each other."""
    with ExitStack() as stopping:
        first = RunningBroker(folder / "1", brokers=2, coordinator=options)
        second = RunningBroker(folder / "2", coordinator=options)
        second.rpc_port = first.config["brokers"][1]["rpc_port"]
        second.config |= {"broker": 2, "brokers": first.config["brokers"]}
        both = {1: first, 2: second}
        for broker in both.values():
            stopping.callback(broker.stop)
            broker.spawn()
        for broker in both.values():
            assert broker.process is not None
            assert broker.process.stdout is not None
            assert broker.process.stdout.readline(), broker.log
        eventually(lambda: all(known(broker) == 2 for broker in both.values()), "both know each other")
        yield both


def known(broker: RunningBroker) -> int:
    """How many brokers it knows."""
    return len(broker.admin_stub().DescribeCluster(pb.DescribeClusterRequest()).brokers)


def made(broker: RunningBroker) -> int:
    """The leader of a new topic."""
    answer = broker.admin_stub().CreateTopic(pb.CreateTopicRequest(name="t", partitions=1, replication_factor=1))
    assert not answer.HasField("error"), answer.error
    return answer.topic.partitions[0].leader


def values(broker: RunningBroker) -> list[bytes]:
    found: list[pb.FetchResponse] = []

    def readable() -> bool:
        found.append(broker.data_stub().Fetch(pb.FetchRequest(topic="t")))
        return not found[-1].HasField("error")

    eventually(readable, "the topic is served")
    return [record.value for record in found[-1].records]


def deleted(broker: RunningBroker) -> None:
    answer = broker.admin_stub().DeleteTopic(pb.DeleteTopicRequest(name="t"))
    assert not answer.HasField("error"), answer.error


@pytest.mark.parametrize("architecture", ["zookeeper-watch", "dsbs"])
def test_what_a_leader_acknowledges_after_a_sleep_is_in_the_topic_that_was_made_meanwhile(
    architecture: str, server: Server, tmp_path: Path
) -> None:
    with pair(tmp_path, coordinator(architecture, server)) as both:
        leader = made(both[1])
        sleeper, other = both[leader], both[3 - leader]
        port = sleeper.config["brokers"][leader - 1]["kafka_port"]
        with RawClient(port) as client:
            eventually(lambda: client.produce("t", batch(b"before"), acks=-1)[0] == 0, "the leader serves")
            assert sleeper.process is not None
            sleeper.process.send_signal(signal.SIGSTOP)
            awake = time.monotonic() + 2 * DOUBT_MS / 1000
            try:
                deleted(other)
                assert made(other) == leader, "the same rule, and the same brokers"
                for number in range(REQUESTS):
                    client.send(produce_request("t", batch(b"v%d" % number), acks=-1, correlation_id=number))
                eventually(lambda: time.monotonic() > awake, "the sleep is long enough to be told by the clock")
            finally:
                sleeper.process.send_signal(signal.SIGCONT)
            answers = [produced(client.receive()) for _ in range(REQUESTS)]
            acknowledged = [b"v%d" % number for number, (error, _) in enumerate(answers) if error == 0]
            eventually(lambda: client.produce("t", batch(b"after"), acks=-1)[0] == 0, "the leader serves again")
        assert values(sleeper) == [*acknowledged, b"after"]
