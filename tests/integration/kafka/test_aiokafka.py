"""aiokafka against a real broker."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from tests.integration.kafka.cluster import Cluster

PATIENCE_S = 60


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, PATIENCE_S))


async def send(cluster: Cluster, topic: str, count: int, **options: Any) -> list[int]:
    async with AIOKafkaProducer(bootstrap_servers=cluster.bootstrap, **options) as client:
        futures = [await client.send(topic, b"%d" % n, key=b"key", headers=[("h", b"v")]) for n in range(count)]
        return [(await future).offset for future in futures]


def consumer(cluster: Cluster, *topics: str, **options: Any) -> Any:
    settings = {"auto_offset_reset": "earliest", "enable_auto_commit": False, "heartbeat_interval_ms": 100}
    return AIOKafkaConsumer(*topics, bootstrap_servers=cluster.bootstrap, **(settings | options))


@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
def test_messages_come_back_as_they_were_sent(codec: str | None, cluster: Cluster, topic: str) -> None:
    async def work() -> None:
        assert await send(cluster, topic, 200, compression_type=codec) == list(range(200))
        async with consumer(cluster) as client:
            client.assign([TopicPartition(topic, 0)])
            messages = [await client.getone() for _ in range(200)]
        assert [message.value for message in messages] == [b"%d" % number for number in range(200)]
        assert {(message.key, tuple(message.headers)) for message in messages} == {(b"key", (("h", b"v"),))}

    run(work())


def test_an_idempotent_producer_stores_everything_once(cluster: Cluster, topic: str) -> None:
    async def work() -> None:
        assert await send(cluster, topic, 300, enable_idempotence=True) == list(range(300))

    run(work())


def test_reading_starts_where_it_is_told_to(cluster: Cluster, topic: str) -> None:
    async def work() -> None:
        await send(cluster, topic, 10)
        part = TopicPartition(topic, 0)
        async with consumer(cluster) as client:
            assert (await client.beginning_offsets([part]))[part] == 0
            assert (await client.end_offsets([part]))[part] == 10
            assert (await client.offsets_for_times({part: 1}))[part].offset == 0
            client.assign([part])
            client.seek(part, 9)
            assert (await client.getone()).value == b"9"

    run(work())


def test_a_group_goes_on_where_it_was(three: Cluster, spread: str) -> None:
    async def work() -> None:
        await send(three, spread, 30)
        async with consumer(three, spread, group_id=f"{spread}-group") as client:
            assert {(await client.getone()).value for _ in range(30)} == {b"%d" % number for number in range(30)}
            await client.commit()
        await send(three, spread, 1)
        async with consumer(three, spread, group_id=f"{spread}-group") as client:
            assert (await client.getone()).value == b"0"
            assert len(client.assignment()) == 3

    run(work())


def test_topics_are_made_and_deleted(cluster: Cluster, topic: str) -> None:
    async def work() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=cluster.bootstrap)
        await admin.start()
        await admin.create_topics([NewTopic(topic, num_partitions=2, replication_factor=1)])
        assert topic in await admin.list_topics()
        await admin.delete_topics([topic])
        assert topic not in await admin.list_topics()
        await admin.close()

    run(work())
