"""A real broker under requests that are more together than it may hold: each waits for its turn, and none is lost."""

from __future__ import annotations

import struct
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress

import pytest

from brokers.wire.apis.table import ApiKey
from tests.integration.kafka.cluster import Cluster
from tests.integration.kafka.contract import make_topic
from tests.integration.kafka.raw import RawClient, batch, head, produce_request, produced
from tests.integration.processes.running import PATIENCE_S

MIB = 1024 * 1024
PRODUCERS = 24
EACH = 2
VALUE_BYTES = 15_000_000
# Together the requests of the producers are more than the broker may hold at once.
BUDGET_BYTES = 256 * MIB
ANNOUNCED_BYTES = 100 * MIB
# How long a socket that takes no more is given before its client goes on.
FULL_S = 1


@pytest.fixture
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    log = {"segment_bytes": 32 * MIB, "retention_bytes": 64 * MIB}
    cluster = Cluster(
        tmp_path_factory.mktemp("large"), 1, {"topics": {"auto_create": True, "partitions": PRODUCERS}, "log": log}
    )
    yield cluster.start()
    cluster.stop()


def send_what_goes(client: RawClient, data: memoryview) -> memoryview:
    """Send until the broker reads no further; what is left."""
    client.socket.settimeout(FULL_S)
    with suppress(TimeoutError):
        while data:
            data = data[client.socket.send(data[:MIB]) :]
    client.socket.settimeout(PATIENCE_S)
    return data


def half_a_request(port: int, sent_bytes: int) -> RawClient:
    """A client that has announced a request as large as may be, and sent so much of it if the broker took that."""
    client = RawClient(port)
    data = struct.pack(">i", ANNOUNCED_BYTES) + head(ApiKey.PRODUCE, 7) + bytes(sent_bytes)
    send_what_goes(client, memoryview(data))
    return client


def send_and_hear(port: int, frame: bytes, all_are_half_way: threading.Barrier) -> list[int]:
    """The errors of one producer's messages, each sent once the one before it was answered."""
    with RawClient(port) as client:
        left = send_what_goes(client, memoryview(frame)[:-1])
        all_are_half_way.wait(PATIENCE_S)
        client.socket.sendall(left)
        client.send(frame[-1:])
        errors = [produced(client.receive())[0]]
        for _ in range(EACH - 1):
            client.send(frame)
            errors.append(produced(client.receive())[0])
    return errors


def all_produce(port: int) -> list[list[int]]:
    with RawClient(port) as client:
        make_topic(client, "large")
    made = batch(bytes(VALUE_BYTES))
    barrier = threading.Barrier(PRODUCERS)
    with ThreadPoolExecutor(PRODUCERS) as threads:
        working = [
            threads.submit(send_and_hear, port, produce_request("large", made, partition=number), barrier)
            for number in range(PRODUCERS)
        ]
        return [one.result() for one in working]


def test_more_large_messages_than_there_is_room_for_are_all_acknowledged(broker: Cluster) -> None:
    assert PRODUCERS * VALUE_BYTES > BUDGET_BYTES
    assert all_produce(broker.port()) == [[0] * EACH] * PRODUCERS


@pytest.mark.parametrize("sent_bytes", [0, ANNOUNCED_BYTES - MIB], ids=["nothing", "nearly all"])
def test_clients_that_announce_large_requests_and_do_not_send_them_starve_nobody(
    broker: Cluster, sent_bytes: int
) -> None:
    with ExitStack() as clients:
        for _ in range(3):
            clients.enter_context(half_a_request(broker.port(), sent_bytes))
        assert all_produce(broker.port()) == [[0] * EACH] * PRODUCERS
