"""Windows of the drivers against real brokers: each goes on where the last one ended, and nothing is lost between."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from confluent_kafka import Consumer as Library
from confluent_kafka import TopicPartition

from brokers.rpc import brokerlab_pb2 as pb
from brokers.rpc.brokerlab_pb2_grpc import AdminStub
from tests.integration.kafka.cluster import Cluster
from tests.unit.workloads.clients.jobs import Words, consume_job, produce_job
from workloads.clients.drivers import kafka
from workloads.clients.drivers.api import COUNTER_BITS, Consumed, Consumer, Produced, Producer, WindowOrder, load

PATIENCE_S = 60
PARTITIONS = 3
BATCH = 10
DRIVERS = ("kafka", "grpc")
WINDOWS = 12


@dataclass(frozen=True)
class Place:
    """A topic whose fetches are answered with a batch."""

    cluster: Cluster
    topic: str

    def job(self, driver: str, **changes: Any) -> dict[str, Any]:
        port = {"kafka": "kafka_port", "grpc": "rpc_port"}[driver]
        bootstrap = tuple(f"127.0.0.1:{row[port]}" for row in self.cluster.rows)
        sizes = {"message_size": 32, "batch_size": BATCH}
        return {"driver": driver, "bootstrap": bootstrap, "topic": self.topic, **sizes, **changes}

    def producer(self, driver: str, **changes: Any) -> Producer:
        job = produce_job(Path(), **self.job(driver, partitions=PARTITIONS, **changes))
        return load(driver).Producer(job, None)

    def consumer(self, driver: str, number: int = 0, of: int = 1, **changes: Any) -> Consumer:
        shared = {
            "group": f"group-{self.topic}",
            "partitions": tuple(range(number, PARTITIONS, of)),
            "consumer": number,
        }
        return load(driver).Consumer(consume_job(Path(), **self.job(driver, **shared, **changes)), None)

    def ends(self) -> dict[int, int]:
        with closing(Library({"bootstrap.servers": self.cluster.bootstrap, "group.id": "ends"})) as asked:
            return {
                number: asked.get_watermark_offsets(TopicPartition(self.topic, number), PATIENCE_S)[1]
                for number in range(PARTITIONS)
            }

    def filled(self, messages: int) -> dict[int, list[int]]:
        """The ids that each partition holds, in their order."""
        with closing(self.producer("kafka")) as producer:
            producer.connect()
            return ids_of(produced(producer, 1, Words(), messages=messages))

    def requests(self, api: str) -> int:
        """Requests of an API that the brokers have served so far."""
        total = 0
        for row in self.cluster.rows:
            with grpc.insecure_channel(f"127.0.0.1:{row['rpc_port']}") as channel:
                total += AdminStub(channel).Statistics(pb.StatisticsRequest(), timeout=PATIENCE_S).kafka_requests[api]
        return total

    def operations(self, name: str) -> tuple[int, int]:
        """Requests of a kind that carried messages, and their messages."""
        requests = messages = 0
        for row in self.cluster.rows:
            with grpc.insecure_channel(f"127.0.0.1:{row['rpc_port']}") as channel:
                answer = AdminStub(channel).Statistics(pb.StatisticsRequest(), timeout=PATIENCE_S)
            for found in answer.operations:
                if found.operation == name:
                    requests, messages = requests + found.requests, messages + found.messages
        return requests, messages

    def journaled(self) -> int:
        """Places of this topic's group that the brokers have written down: one for each partition of a commit."""
        journals = [path for path in self.cluster.folder.rglob("*") if path.is_file() and "offsets" in path.name]
        assert journals
        return sum(path.read_bytes().count(f'"group-{self.topic}"'.encode()) for path in journals)


@pytest.fixture
def place(three: Cluster, batched: str) -> Place:
    return Place(three, batched)


def produced(producer: Producer, number: int, words: Words, **order: Any) -> Produced:
    producer.prepare(WindowOrder(number, **order))
    return producer.run(words)


def ids_of(found: Produced, producer: int = 2) -> dict[int, list[int]]:
    return {
        partition: [(producer << COUNTER_BITS) + counter for block in blocks for counter in block]
        for partition, blocks in found.acknowledged.items()
    }


def ids_in(found: Consumed) -> dict[int, list[int]]:
    return {
        partition: [int.from_bytes(raw[at : at + 8], "big") for at in range(0, len(raw), 8)]
        for partition, raw in found.ids.items()
    }


# --- producers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("driver", DRIVERS)
def test_windows_of_a_producer_send_consecutive_messages_and_wait_for_all_of_them(place: Place, driver: str) -> None:
    every = Produced()
    with closing(place.producer(driver)) as producer:
        producer.connect()
        orders: list[tuple[dict[str, Any], Words]] = [
            ({"messages": 7 * BATCH + 5}, Words()),
            ({}, Words(stop_after=20)),
            ({"messages": 4 * BATCH, "rate": 10_000.0}, Words()),
            ({"rate": 20_000.0}, Words(stop_after=20)),
            ({"messages": BATCH}, Words(stop_after=0)),
            ({}, Words(stop_after=20)),
        ]
        for number, (order, words) in enumerate(orders, start=1):
            sent = produced(producer, number, words, **order)
            if words.stopped():
                assert not sent.sent % BATCH, "batches are whole"
            else:
                assert sent.sent == order["messages"]
            assert {row.window_number for row in sent.rows} <= {number}
            assert sum(row.messages for row in sent.rows) == sent.sent
            assert bool(words.at_work) == bool(sent.sent)
            assert not sent.failed
            every.extend(sent)
            assert sum(place.ends().values()) == every.sent, "all that was sent is stored"
    counters = sorted(counter for blocks in every.acknowledged.values() for block in blocks for counter in block)
    if driver == "kafka":
        assert counters == list(range(every.sent))
    assert len(set(counters)) == every.sent


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_window_that_is_stopped_before_it_begins_sends_nothing(place: Place, driver: str) -> None:
    with closing(place.producer(driver)) as producer:
        producer.connect()
        for order in ({}, {"rate": 0.001}):
            sent = produced(producer, 1, Words(stop_after=0), **order)
            assert (sent.sent, sent.rows, sent.sends) == (0, [], [])
    assert sum(place.ends().values()) == 0


@pytest.mark.parametrize("driver", DRIVERS)
def test_at_a_fixed_rate_batches_are_spread_evenly_and_none_leaves_ahead(place: Place, driver: str) -> None:
    with closing(place.producer(driver)) as producer:
        producer.connect()
        sent = produced(producer, 1, Words(), messages=30 * BATCH, rate=5_000.0)
    assert {len(ids) for ids in ids_of(sent).values()} == {10 * BATCH}
    moments = [at_ns for _, at_ns in sorted(sent.sends)]
    assert {later - earlier for earlier, later in itertools.pairwise(moments)} == {2_000_000}
    assert all(row.done_ns >= row.sent_ns for row in sent.rows)


class Watched(kafka.Producer):
    """Notes how many requests were under way for each connection, as the library counts them."""

    def __init__(self, *args: Any) -> None:
        self.under_way: list[int] = []
        super().__init__(*args)

    def _on_statistics(self, text: str) -> None:
        super()._on_statistics(text)
        self.under_way += [broker["waitresp_cnt"] for broker in json.loads(text)["brokers"].values()]


def test_no_connection_has_more_requests_under_way_than_in_flight_says(place: Place) -> None:
    def busy(in_flight: int) -> int:
        job = produce_job(Path(), **place.job("kafka", partitions=PARTITIONS, in_flight=in_flight))
        with closing(Watched(job)) as producer:
            producer.connect()
            producer.under_way.clear()
            for _ in range(100):
                produced(producer, 1, Words(stop_after=1000))
                if len(producer.under_way) >= 40 and max(producer.under_way) >= in_flight:
                    break
            return max(producer.under_way)

    assert busy(1) == 1
    assert busy(3) == 3


@pytest.mark.parametrize("in_flight", [1, 3])
def test_the_driver_grpc_has_as_many_requests_under_way_for_each_connection(place: Place, in_flight: int) -> None:
    with closing(place.producer("grpc", in_flight=in_flight)) as producer:
        producer.connect()
        sent = produced(producer, 1, Words(), messages=200 * BATCH)
    assert len({row.partition for row in sent.rows}) == PARTITIONS, "each is led by another broker"
    for partition in range(PARTITIONS):
        rows = [row for row in sent.rows if row.partition == partition]
        under_way = [sum(one.sent_ns <= row.sent_ns < one.done_ns for one in rows) for row in rows]
        assert max(under_way) == min(in_flight, len(rows))


# --- consumers ------------------------------------------------------------------------------------------------


def in_turn(consumers: Sequence[Consumer], act: Callable[[Consumer], Any]) -> list[Any]:
    """Everybody acts at once; the results in the consumers' order."""
    with ThreadPoolExecutor(len(consumers)) as threads:
        return [each.result(PATIENCE_S) for each in [threads.submit(act, consumer) for consumer in consumers]]


def consumed(consumer: Consumer, number: int, words: Words, *, both: bool = False) -> Consumed:
    consumer.prepare(WindowOrder(number))
    return consumer.run(words, both=both)


def windows_of(consumers: Sequence[Consumer], ends: Mapping[int, int]) -> Iterator[list[Consumed]]:
    """Window after window of a few batches, and at last one up to the ends."""
    for number in range(1, WINDOWS + 1):
        yield in_turn(consumers, lambda each, n=number: consumed(each, n, Words(ends, stop_after=2 * n)))  # type: ignore[misc]
    yield in_turn(consumers, lambda each: consumed(each, WINDOWS + 1, Words(ends)))


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("of", [1, 2])
def test_windows_of_a_membership_read_on_in_order_and_nothing_twice(place: Place, driver: str, of: int) -> None:
    sent = place.filled(600 * BATCH)
    with ExitStack() as stack:
        consumers = [stack.enter_context(closing(place.consumer(driver, n, of))) for n in range(of)]
        in_turn(consumers, lambda each: each.join())
        shares = in_turn(consumers, lambda each: each.settle(Words()))
        assert sorted(number for share in shares for number in share) == list(range(PARTITIONS))
        every = [Consumed() for _ in consumers]
        for number, parts in enumerate(windows_of(consumers, place.ends()), start=1):
            for whole, part in zip(every, parts, strict=True):
                whole.extend(part)
                assert {row.window_number for row in part.rows} <= {number}
                assert part.commits >= sum(row.requests for row in part.rows if row.messages)
    found = {partition: ids for whole in every for partition, ids in ids_in(whole).items()}
    assert found == sent
    assert all(whole.dry and not whole.wrong_payloads for whole in every)


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_window_ends_at_its_targets_exactly_and_what_is_read_is_committed(place: Place, driver: str) -> None:
    place.filled(60 * BATCH)
    with closing(place.consumer(driver)) as consumer:
        consumer.join()
        consumer.settle(Words())
        for number, targets in enumerate(({0: 7, 1: 0, 2: 103}, {0: 8, 1: 25, 2: 103}, {0: 150, 1: 150}), start=1):
            seen = consumed(consumer, number, Words(targets))
            assert seen.dry
    with closing(Library({"bootstrap.servers": place.cluster.bootstrap, "group.id": f"group-{place.topic}"})) as asked:
        places = asked.committed([TopicPartition(place.topic, n) for n in range(PARTITIONS)], PATIENCE_S)
    assert [place.offset for place in places] == [150, 150, 103]


@pytest.mark.parametrize("in_flight", [1, 5])
def test_a_batch_is_one_partitions_as_a_fetch_brought_it_and_a_commit_follows_each(
    place: Place, in_flight: int
) -> None:
    batches = 90
    place.filled(batches * BATCH)
    with closing(place.consumer("kafka", in_flight=in_flight)) as consumer:
        consumer.join()
        consumer.settle(Words())
        before = place.requests("OFFSET_COMMIT"), *place.operations("fetch")
        seen = consumed(consumer, 1, Words(place.ends()))
        after = place.requests("OFFSET_COMMIT"), *place.operations("fetch")
    commits, fetches, messages = (later - earlier for earlier, later in zip(before, after, strict=True))
    assert messages == batches * BATCH
    assert fetches == batches, "an answer holds a batch"
    assert seen.commits == sum(row.requests for row in seen.rows) == commits == batches
    written = place.journaled()  # the last of a partition's commits that came in one turn is the one that is written
    assert written == batches if in_flight == 1 else 0 < written <= batches, "a commit is of one partition"


@pytest.mark.parametrize("driver", DRIVERS)
def test_nothing_is_fetched_between_windows(place: Place, driver: str) -> None:
    with closing(place.consumer(driver)) as consumer:
        consumer.join()
        consumer.settle(Words())
        consumed(consumer, 1, Words(stop_after=3), both=True)
        _, before = place.operations("fetch")
        place.filled(30 * BATCH)
        _, after = place.operations("fetch")
        under_way = PARTITIONS * BATCH  # the last fetch from each broker may still be answered
        assert after - before <= under_way
        assert consumed(consumer, 2, Words(place.ends())).dry


@pytest.mark.parametrize("driver", DRIVERS)
def test_who_waits_for_producers_or_has_no_partition_is_at_work_when_it_begins(place: Place, driver: str) -> None:
    with closing(place.consumer(driver)) as consumer:
        consumer.join()
        consumer.settle(Words())
        waiting, beside = Words(stop_after=2), Words(stop_after=2)
        assert not consumed(consumer, 1, waiting).dry
        assert waiting.at_work == 0
        consumed(consumer, 2, beside, both=True)
        assert beside.at_work
        place.filled(BATCH)
        first = Words(place.ends())
        consumed(consumer, 3, first)
        assert first.at_work
