"""confluent-kafka (librdkafka) against real brokers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType  # type: ignore[attr-defined]

from tests.integration.kafka.cluster import Cluster

PATIENCE_S = 30


def producer(cluster: Cluster, **options: Any) -> Producer:
    return Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 1, **options})


def consumer(cluster: Cluster, group: str, **options: Any) -> Consumer:
    settings = {
        "bootstrap.servers": cluster.bootstrap,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "session.timeout.ms": 6000,
        "heartbeat.interval.ms": 100,
    }
    return Consumer(settings | options)


def send(cluster: Cluster, topic: str, values: list[bytes], **options: Any) -> list[Message]:
    """Produce and wait; what was delivered, in order."""
    delivered: list[Message] = []

    def note(error: object, message: Message) -> None:
        assert error is None
        delivered.append(message)

    client = producer(cluster, **options)
    for value in values:
        client.produce(topic, value, partition=0, on_delivery=note)
    assert client.flush(PATIENCE_S) == 0
    return delivered


def receive(client: Consumer, count: int) -> list[Message]:
    """The next `count` messages, or the test fails."""
    messages: list[Message] = []
    while len(messages) < count:
        found = client.consume(count - len(messages), timeout=PATIENCE_S)
        assert found, f"{len(messages)} of {count} messages came"
        for message in found:
            assert message.error() is None, message.error()
        messages += found
    return messages


def values(messages: list[Message]) -> list[bytes | None]:
    return [message.value() for message in messages]


def numbered(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


@pytest.fixture
def reader(cluster: Cluster, topic: str) -> Iterator[Consumer]:
    client = consumer(cluster, f"{topic}-group")
    yield client
    client.close()


def test_metadata_names_every_broker_and_leader(three: Cluster, spread: str) -> None:
    send(three, spread, [b"makes the spread"])
    found = AdminClient({"bootstrap.servers": three.bootstrap}).list_topics(spread, timeout=PATIENCE_S)
    assert sorted(found.brokers) == [0, 1, 2]
    assert {part.leader for part in found.topics[spread].partitions.values()} == {0, 1, 2}


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_messages_come_back_as_they_were_sent(codec: str, cluster: Cluster, topic: str, reader: Consumer) -> None:
    client = producer(cluster, **{"compression.type": codec})
    headers: list[tuple[str, str | bytes | None]] = [("one", b"1"), ("none", None), ("one", b"again")]
    client.produce(topic, b"value", key=b"key", headers=headers, timestamp=1_500_000_000_123)
    client.produce(topic, None, key=b"tombstone")
    client.produce(topic, b"", key=None)
    for number in range(1000):
        client.produce(topic, b"%d" % number * 20)
    assert client.flush(PATIENCE_S) == 0
    reader.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    messages = receive(reader, 1003)
    first = messages[0]
    assert (first.key(), first.value(), first.headers()) == (b"key", b"value", headers)
    assert first.timestamp()[1] == 1_500_000_000_123
    assert (messages[1].key(), messages[1].value()) == (b"tombstone", None)
    assert (messages[2].key(), messages[2].value()) == (None, b"")
    assert values(messages[3:]) == [b"%d" % number * 20 for number in range(1000)]
    assert [message.offset() for message in messages] == list(range(1003))


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_every_kind_of_acknowledgement_works(acks: object, cluster: Cluster, topic: str, reader: Consumer) -> None:
    send(cluster, topic, numbered(100), acks=acks)
    reader.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    assert values(receive(reader, 100)) == numbered(100)


def test_reading_starts_where_it_is_told_to(cluster: Cluster, topic: str, reader: Consumer) -> None:
    client = producer(cluster)
    for number in range(10):
        client.produce(topic, b"%d" % number, partition=0, timestamp=1000 + number)
        assert client.flush(PATIENCE_S) == 0
    reader.assign([TopicPartition(topic, 0, 7)])
    assert values(receive(reader, 3)) == [b"7", b"8", b"9"]
    found = reader.offsets_for_times([TopicPartition(topic, 0, 1004)], PATIENCE_S)
    assert found[0].offset == 4
    assert reader.get_watermark_offsets(TopicPartition(topic, 0), PATIENCE_S) == (0, 10)


def test_reading_from_the_end_sees_only_what_is_new(cluster: Cluster, topic: str, reader: Consumer) -> None:
    send(cluster, topic, [b"old"])
    reader.assign([TopicPartition(topic, 0, OFFSET_END)])
    found = reader.poll(0.05)
    while found is None:
        send(cluster, topic, [b"new"])
        found = reader.poll(0.05)
    assert found.value() == b"new"


def test_a_group_shares_partitions_and_goes_on_where_it_was(three: Cluster, spread: str) -> None:
    client = producer(three)
    for number in range(300):
        client.produce(spread, b"%d" % number, partition=number % 3)
    assert client.flush(PATIENCE_S) == 0
    first, second = consumer(three, f"{spread}-group"), consumer(three, f"{spread}-group")
    first.subscribe([spread])
    got = receive(first, 300)
    assert len({message.partition() for message in got}) == 3
    first.commit(asynchronous=False)
    second.subscribe([spread])
    while not (1 <= len(second.assignment()) <= 2 and len(first.assignment()) + len(second.assignment()) == 3):
        assert first.poll(0.05) is None
        assert second.poll(0.05) is None
    second.close()
    while len(first.assignment()) != 3:
        assert first.poll(0.05) is None
    committed = first.committed([TopicPartition(spread, number) for number in range(3)], PATIENCE_S)
    assert [place.offset for place in committed] == [100, 100, 100]
    first.close()
    client.produce(spread, b"later", partition=1)
    assert client.flush(PATIENCE_S) == 0
    third = consumer(three, f"{spread}-group")
    third.subscribe([spread])
    assert values(receive(third, 1)) == [b"later"]
    third.close()


def test_commits_carry_metadata_and_are_refused_to_strangers(cluster: Cluster, topic: str, reader: Consumer) -> None:
    send(cluster, topic, numbered(5))
    reader.commit(offsets=[TopicPartition(topic, 0, 3, "note")], asynchronous=False)
    place = reader.committed([TopicPartition(topic, 0)], PATIENCE_S)[0]
    assert (place.offset, place.metadata) == (3, "note")
    with pytest.raises(KafkaException):
        reader.commit(offsets=[TopicPartition("no-such-topic", 0, 3)], asynchronous=False)


def test_a_static_member_comes_back_without_a_rebalance(cluster: Cluster, topic: str) -> None:
    send(cluster, topic, numbered(3))
    group, options = f"{topic}-group", {"group.instance.id": "one", "session.timeout.ms": 30_000}
    first = consumer(cluster, group, **options)
    first.subscribe([topic])
    assert values(receive(first, 3)) == numbered(3)
    first.commit(asynchronous=False)
    first.close()
    send(cluster, topic, [b"later"])
    again = consumer(cluster, group, **options)
    again.subscribe([topic])
    assert values(receive(again, 1)) == [b"later"]
    again.close()


def test_an_idempotent_producer_stores_everything_once(cluster: Cluster, topic: str, reader: Consumer) -> None:
    delivered = send(cluster, topic, numbered(2000), **{"enable.idempotence": True, "batch.num.messages": 50})
    assert [message.offset() for message in delivered] == list(range(2000))
    reader.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    assert values(receive(reader, 2000)) == numbered(2000)


def test_transactions_are_refused_and_not_awaited(cluster: Cluster, topic: str) -> None:
    client = producer(cluster, **{"transactional.id": topic})
    with pytest.raises(KafkaException):
        client.init_transactions(PATIENCE_S)


def test_many_topics_with_short_names_are_listed(three: Cluster) -> None:
    """librdkafka cannot read such a list in the compact form of Metadata 9."""
    admin = AdminClient({"bootstrap.servers": three.bootstrap})
    names = [f"s{number}" for number in range(20)]
    for made in admin.create_topics([NewTopic(name, 1, 1) for name in names]).values():
        made.result(PATIENCE_S)
    assert admin.list_topics(timeout=PATIENCE_S).topics.keys() >= set(names)
    for deleted in admin.delete_topics(names).values():
        deleted.result(PATIENCE_S)


def test_topics_are_made_described_and_deleted(cluster: Cluster, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    new = NewTopic(topic, 2, 1, config={"fetch_records_max": "20", "retention.bytes": "1000000"})
    admin.create_topics([new])[topic].result(PATIENCE_S)
    with pytest.raises(KafkaException, match="TOPIC_ALREADY_EXISTS"):
        admin.create_topics([new])[topic].result(PATIENCE_S)
    resource = ConfigResource(ResourceType.TOPIC, topic)
    configs = admin.describe_configs([resource])[resource].result(PATIENCE_S)
    assert (configs["fetch_records_max"].value, configs["retention.bytes"].value) == ("20", "1000000")
    assert len(admin.list_topics(topic, timeout=PATIENCE_S).topics[topic].partitions) == 2
    admin.delete_topics([topic])[topic].result(PATIENCE_S)
    with pytest.raises(KafkaException, match="UNKNOWN_TOPIC"):
        admin.delete_topics([topic])[topic].result(PATIENCE_S)


@pytest.mark.parametrize(
    ("new", "code"),
    [
        (NewTopic("a/b", 1, 1), "TOPIC_EXCEPTION"),
        (NewTopic("bad-partitions", 0, 1), "INVALID_PARTITIONS"),
        (NewTopic("bad-factor", 1, 7), "INVALID_REPLICATION_FACTOR"),
        (NewTopic("bad-setting", 1, 1, config={"fetch_record_max": "1"}), "INVALID_CONFIG"),
        (NewTopic("bad-value", 1, 1, config={"fetch_records_max": "many"}), "INVALID_CONFIG"),
    ],
)
def test_a_topic_that_cannot_be_is_refused_with_its_reason(new: NewTopic, code: str, cluster: Cluster) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    with pytest.raises(KafkaException, match=code):
        admin.create_topics([new])[new.topic].result(PATIENCE_S)


def test_a_topic_may_cap_the_records_of_an_answer(cluster: Cluster, topic: str, reader: Consumer) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1, config={"fetch_records_max": "20"})])[topic].result(PATIENCE_S)
    send(cluster, topic, numbered(200), **{"batch.num.messages": 10})
    reader.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    assert values(receive(reader, 200)) == numbered(200)


def test_groups_are_listed_and_described(cluster: Cluster, topic: str, reader: Consumer) -> None:
    send(cluster, topic, numbered(1))
    reader.subscribe([topic])
    receive(reader, 1)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    listed = admin.list_consumer_groups().result(PATIENCE_S)
    assert f"{topic}-group" in {group.group_id for group in listed.valid}
    described = admin.describe_consumer_groups([f"{topic}-group"])[f"{topic}-group"].result(PATIENCE_S)
    assert described.state.name == "STABLE"
    assert [len(member.assignment.topic_partitions) for member in described.members] == [1]
