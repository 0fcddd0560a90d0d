"""Clusters of DSBS brokers that are processes of their own: started, ended, replaced, and asked as clients would."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from brokers.rpc import brokerlab_pb2 as pb
from brokers.rpc import peer_pb2 as peers
from brokers.rpc.peer_pb2_grpc import TablesStub
from tests.integration.processes.running import PATIENCE_S, RunningBroker, eventually
from workloads.processes.ports import free_ports

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Deaths are noticed within two seconds, and a broker that a busy machine delays by one is not taken for dead.
COORDINATOR: Final = {"name": "dsbs", "heartbeat_ms": 100, "timeout_ms": 1200, "suspicion_ms": 400, "join_ms": 1500}
PASSING: Final = frozenset({pb.NOT_LEADER, pb.NOT_COORDINATOR, pb.COORDINATOR_UNAVAILABLE, pb.UNKNOWN_TOPIC})


class Member(RunningBroker):
    """One broker, and what it says when it is asked."""

    def __init__(self, folder: Path, row: dict[str, Any], data: Path | None = None) -> None:
        super().__init__(folder, coordinator=COORDINATOR)
        self.id: int = row["id"]
        self.rpc_port = row["rpc_port"]
        self.row = row
        self.config |= {"broker": self.id, "data_dir": str(data or self.data)}

    def await_ready(self) -> None:
        assert self.process is not None
        assert self.process.stdout is not None
        assert self.process.stdout.readline(), f"the broker ended with {self.process.wait()}: {self.log}"

    @property
    def ended(self) -> bool:
        """By itself."""
        return self.process is not None and self.process.poll() is not None

    def wait(self) -> int:
        """Its exit code, when it ends by itself."""
        assert self.process is not None
        return self.process.wait(PATIENCE_S)

    def tables(self) -> peers.ShowTablesResponse:
        return TablesStub(self.channel()).Show(peers.ShowTablesRequest(), timeout=PATIENCE_S)

    def create(self, topic: str, partitions: int = 3, replicas: int = 2) -> pb.CreateTopicResponse:
        request = pb.CreateTopicRequest(name=topic, partitions=partitions, replication_factor=replicas)
        return self.admin_stub().CreateTopic(request)

    def topic(self, name: str) -> pb.Topic | None:
        """As this broker knows it; None where it does not."""
        answer = self.admin_stub().DescribeTopics(pb.DescribeTopicsRequest(names=[name]))
        return None if answer.HasField("error") else answer.topics[0]

    def leader(self, topic: str, partition: int) -> int:
        found = self.topic(topic)
        return -1 if found is None else found.partitions[partition].leader

    def leaders(self, topic: str) -> list[int]:
        found = self.topic(topic)
        return [] if found is None else [at.leader for at in found.partitions]

    def epoch(self, topic: str, partition: int) -> int:
        found = self.topic(topic)
        assert found is not None
        return found.partitions[partition].epoch

    def home(self, group: str) -> int:
        return self.admin_stub().DescribeCluster(pb.DescribeClusterRequest(group=group)).group_coordinator

    def live(self) -> set[int]:
        """The brokers that this one takes for live."""
        return {broker.id for broker in self.admin_stub().DescribeCluster(pb.DescribeClusterRequest()).brokers}


class Brokers:
    """A cluster; `members` are those that run, by id."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._rows: dict[int, dict[str, Any]] = {}
        self._made: list[Member] = []
        self.members: dict[int, Member] = {}

    def made(self, number: int, *, elsewhere: str = "", data: Path | None = None) -> Member:
        """A broker's place, not started. With `elsewhere` it is another machine's: another address, another disk."""
        if elsewhere or number not in self._rows:
            taken = {port for row in self._rows.values() for port in (row["kafka_port"], row["rpc_port"])}
            kafka, rpc = free_ports(2, avoid=taken)
            self._rows[number] = {"id": number, "host": "127.0.0.1", "kafka_port": kafka, "rpc_port": rpc}
        member = Member(self._folder / f"broker-{number}{elsewhere}", self._rows[number], data)
        member.config["brokers"] = list(self._rows.values())
        self._made.append(member)
        return member

    def start(self, *members: Member) -> None:
        """At the same time; return when all of them serve and all that run know each other."""
        rows = {member.id: member.row for member in members}
        for member in members:
            known = {row["id"]: row for row in member.config["brokers"]} | rows
            member.config["brokers"] = list(known.values())
            member.spawn()
        for member in members:
            member.await_ready()
            self.members[member.id] = member
        self.agree()

    def agree(self) -> None:
        """Return when every broker knows of exactly those that run, and all tables are the same."""
        eventually(lambda: all(one.live() == self.members.keys() for one in self), "all know who is there")
        eventually(lambda: len({one.tables().hash for one in self}) == 1, "all tables are the same")

    def lose(self, number: int) -> Member:
        """A broker's process is killed; the others are not told."""
        member = self.members.pop(number)
        member.stop()
        return member

    def __iter__(self) -> Iterator[Member]:
        return iter(self.members.values())

    def others(self, *numbers: int) -> list[Member]:
        return [member for member in self if member.id not in numbers]

    # --- as clients do -------------------------------------------------------------------------------------

    def produce(self, topic: str, partition: int, values: Iterable[bytes]) -> int:
        """To whoever leads, asking anew until the messages are acknowledged; the offset of the first."""
        request = pb.ProduceRequest(
            topic=topic, partition=partition, acks=1, records=[pb.Record(value=value) for value in values]
        )
        answers: list[pb.ProduceResponse] = []

        def acknowledged() -> bool:
            leader = self.members.get(next(iter(self)).leader(topic, partition))
            if leader is None:
                return False
            answers.append(leader.data_stub().Produce(request))
            assert answers[-1].error.code in PASSING | {pb.OK}, answers[-1].error
            return answers[-1].error.code == pb.OK

        eventually(acknowledged, f"{topic}-{partition} takes messages")
        return answers[-1].base_offset

    def values(self, topic: str, partition: int) -> list[bytes]:
        """All messages of a partition, from its leader."""
        leader = self.members[next(iter(self)).leader(topic, partition)]
        values: list[bytes] = []
        while True:
            answer = leader.data_stub().Fetch(pb.FetchRequest(topic=topic, partition=partition, offset=len(values)))
            assert not answer.HasField("error"), answer.error
            values += [record.value for record in answer.records]
            if len(values) == answer.end_offset:
                return values

    def commit(self, group: str, topic: str, offset: int) -> int:
        """The broker that took it."""
        home = self.members[next(iter(self)).home(group)]
        places = [pb.PartitionOffset(topic=topic, offset=offset)]
        answer = home.data_stub().CommitOffsets(pb.CommitOffsetsRequest(group=group, offsets=places))
        assert not answer.HasField("error"), answer.error
        return home.id

    def committed(self, group: str) -> int:
        """Where the group is, from whoever serves it by now."""
        found: list[pb.CommittedOffsetsResponse] = []

        def answered() -> bool:
            home = self.members.get(next(iter(self)).home(group))
            if home is None:
                return False
            found.append(home.data_stub().CommittedOffsets(pb.CommittedOffsetsRequest(group=group)))
            return not found[-1].HasField("error")

        eventually(answered, f"somebody serves group {group}")
        return found[-1].offsets[0].offset if found[-1].offsets else -1

    def close(self) -> None:
        for member in self._made:
            member.stop()


@contextmanager
def brokers(folder: Path, size: int) -> Iterator[Brokers]:
    """A cluster of so many, numbered from 1, which all serve and know each other."""
    cluster = Brokers(folder)
    try:
        cluster.start(*[cluster.made(number) for number in range(1, size + 1)])
        yield cluster
    finally:
        cluster.close()
