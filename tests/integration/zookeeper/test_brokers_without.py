"""ZooKeeper goes away under real brokers of every architecture, and comes back."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from brokers.rpc import brokerlab_pb2 as pb
from brokers.wire.errors import ErrorCode
from tests.contract.servers import fresh_chroot
from tests.integration.kafka.raw import RawClient, batch, fetch_request, fetched, produce_request, produced
from tests.integration.processes.running import RunningBroker, eventually

if TYPE_CHECKING:
    from pathlib import Path

    from tests.contract.servers import Server

pytestmark = pytest.mark.java
ANSWERED_WITHIN_S = 5.0
SESSION_TIMEOUT_MS = 6_000


def coordinators(server: Server) -> dict[str, dict[str, Any]]:
    zookeeper = {"name": "zookeeper", "connect": server.address, "session_timeout_ms": SESSION_TIMEOUT_MS}
    return {
        "zookeeper": zookeeper | {"chroot": fresh_chroot(), "metadata": "lookup"},
        "zookeeper-watch": zookeeper | {"chroot": fresh_chroot(), "metadata": "watch"},
        "dsbs": {"name": "dsbs"},
        "static": {"name": "static"},
    }


class Serving:
    """A broker, its topic, and what a producer is answered."""

    def __init__(self, broker: RunningBroker) -> None:
        broker.start()
        self._data = broker.data_stub()
        self._admin = broker.admin_stub()
        made = self._admin.CreateTopic(pb.CreateTopicRequest(name="t", partitions=1, replication_factor=1))
        assert not made.HasField("error"), made.error

    def answer(self) -> pb.Error:
        request = pb.ProduceRequest(topic="t", acks=1, records=[pb.Record(value=b"x")])
        return self._data.Produce(request, timeout=ANSWERED_WITHIN_S).error

    def serves(self) -> bool:
        return self.answer().code == pb.OK

    def messages(self) -> int:
        return self._data.Fetch(pb.FetchRequest(topic="t"), timeout=ANSWERED_WITHIN_S).end_offset

    def asked(self) -> int:
        """How often it has asked ZooKeeper who leads."""
        rows = self._admin.Statistics(pb.StatisticsRequest()).coordination
        return sum(row.count for row in rows if row.operation == "lookup")

    def live(self) -> list[int]:
        return [broker.id for broker in self._admin.DescribeCluster(pb.DescribeClusterRequest()).brokers]


def test_lookup_refuses_at_once_watch_when_its_lease_ends_and_the_others_do_not_notice(
    own_server: Server, tmp_path: Path
) -> None:
    with ExitStack() as stopping:
        brokers: dict[str, Serving] = {}
        for name, options in coordinators(own_server).items():
            process = RunningBroker(tmp_path / name, coordinator=options)
            stopping.callback(process.stop)
            brokers[name] = Serving(process)
            assert brokers[name].serves()
        lookup, watch = brokers["zookeeper"], brokers["zookeeper-watch"]
        unaware = [brokers["dsbs"], brokers["static"]]

        own_server.stop()
        eventually(lambda: not lookup.serves(), "the connection has broken")
        refusal = lookup.answer()
        assert (refusal.code, refusal.definite) == (pb.COORDINATOR_UNAVAILABLE, True)
        assert watch.serves(), "its lease has not ended yet"
        acknowledged = 0
        while (said := watch.answer()).code == pb.OK:
            acknowledged += 1
            assert all(broker.serves() for broker in unaware)
        assert acknowledged > 0
        assert (said.code, watch.answer().code) == (pb.COORDINATOR_UNAVAILABLE,) * 2, said

        own_server.start()
        eventually(lambda: lookup.serves() and watch.serves(), "ZooKeeper is back")
        for broker in brokers.values():
            assert broker.live() == [1]
        assert watch.messages() >= acknowledged + 2
        for broker in unaware:
            assert broker.messages() == acknowledged + 1


def test_a_produce_that_waited_behind_a_fetch_is_not_carried_out_by_the_answer_of_before(
    own_server: Server, tmp_path: Path
) -> None:
    process = RunningBroker(tmp_path / "lookup", coordinator=coordinators(own_server)["zookeeper"])
    try:
        lookup = Serving(process)
        assert lookup.serves()
        with RawClient(process.config["brokers"][0]["kafka_port"]) as client:
            before = lookup.asked()
            client.send(fetch_request("t", 1, wait_ms=3_000) + produce_request("t", batch(b"late"), acks=-1))
            eventually(lambda: lookup.asked() == before + 1, "both have their answer, which they share")
            own_server.stop()
            assert fetched(client.receive())[2] == b""
            error, _ = produced(client.receive())
            assert error == ErrorCode.LEADER_NOT_AVAILABLE
        own_server.start()
        eventually(lookup.serves, "ZooKeeper is back")
        assert lookup.messages() == 2
    finally:
        process.stop()
