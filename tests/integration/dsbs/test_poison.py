"""Gossip that no honest broker sends, said to a real one through its port: refused, counted, and without effect."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from brokers.rpc import peer_pb2 as pb
from brokers.rpc.peer_pb2_grpc import PeerStub
from coordinators.dsbs.tables.messages import Envelope, Heartbeat, Push, encode
from coordinators.dsbs.tables.rows import LeaderRow, MemberRow, Status, TopicRow
from coordinators.model import DEFAULT_SETTINGS, Broker
from tests.integration.dsbs.cluster import brokers
from tests.integration.processes.running import eventually

CLUSTER = "brokerlab"
HUGE = 2**63 - 1
# Somebody who has found the port: where he says that he is, nobody answers.
LIAR = MemberRow(Broker(9, "127.0.0.1", 1, 1), 7, 1, Status.ALIVE)
VICTIM = replace(LIAR, broker=Broker(2, "127.0.0.1", 1, 1))
LIES = {
    "huge incarnation": Push((replace(VICTIM, incarnation=HUGE, status=Status.DEAD),)),
    "huge version": Push((LeaderRow("orders", 0, 1, 1, 0, HUGE, 2, (2,)),)),
    "huge generation": Push((TopicRow("orders", HUGE, 9, (), DEFAULT_SETTINGS, deleted=True),)),
}


def test_poison_is_refused_and_counted_and_the_topic_serves(tmp_path: Path) -> None:
    with brokers(tmp_path, 2) as cluster:
        cluster.members[1].create("orders", partitions=1, replicas=2)
        told = cluster.members[1]
        peer = PeerStub(told.channel())

        def tell(content: bytes, reason: str) -> None:
            before = told.tables().refused[reason]
            peer.Tell(pb.Frame(content=content))
            assert told.tables().refused[reason] == before + 1

        leader = told.leader("orders", 0)
        old_table = encode(Envelope(CLUSTER, LIAR, 1, Push((LIAR,))))
        peer.Tell(pb.Frame(content=old_table))
        for number, lie in enumerate(LIES.values(), start=2):
            tell(encode(Envelope(CLUSTER, LIAR, number, lie)), "leap")
        tell(old_table, "replayed")
        tell(encode(Envelope(CLUSTER, replace(LIAR, broker=Broker(1, "127.0.0.1", 1, 1)), 9, Heartbeat(0))), "own id")
        tell(encode(Envelope("elsewhere", LIAR, 9, Heartbeat(0))), "foreign cluster")
        tell(encode(Envelope(CLUSTER, LIAR, 9, Push((LIAR,) * 700_000))), "malformed")
        tell(b"no message", "malformed")

        assert told.leader("orders", 0) == leader
        cluster.produce("orders", 0, [b"x"])
        eventually(lambda: told.live() == {1, 2}, "the liar, who never answers, is buried")
        cluster.agree()
