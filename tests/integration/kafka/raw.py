"""A client that speaks the wire itself, so that it can also say what no library would."""

from __future__ import annotations

import select
import socket
import struct
from typing import Any

from brokers.wire.apis.list_offsets import LATEST
from brokers.wire.apis.table import SERVED, ApiKey
from brokers.wire.batch import RecordToSend, encode_batch
from brokers.wire.schema import decode, encode

ANSWER_S_MAX = 20
CLIENT_ID = b"raw"


class Closed(Exception):
    """The broker ended the connection."""


def head(key: int, version: int, correlation_id: int = 1) -> bytes:
    return struct.pack(">hhih", key, version, correlation_id, len(CLIENT_ID)) + CLIENT_ID


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def request(key: ApiKey, version: int, message: object, correlation_id: int = 1) -> bytes:
    """A whole frame."""
    flexible = SERVED[key].flexible(version)
    tags = b"\0" if flexible else b""
    return framed(head(key, version, correlation_id) + tags + encode(message, version, flexible=flexible))


def produce_request(
    topic: str,
    records: bytes | None,
    *,
    partition: int = 0,
    acks: int = 1,
    timeout_ms: int = 30_000,
    correlation_id: int = 1,
    version: int = 7,
    transactional_id: bytes | None = None,
) -> bytes:
    name = topic.encode()
    identity = struct.pack(">h", -1) if transactional_id is None else struct.pack(">h", len(transactional_id))
    body = head(ApiKey.PRODUCE, version, correlation_id) + identity + (transactional_id or b"")
    body += struct.pack(">hii", acks, timeout_ms, 1) + struct.pack(">h", len(name)) + name
    size = -1 if records is None else len(records)
    return framed(body + struct.pack(">iii", 1, partition, size) + (records or b""))


def fetch_request(
    topic: str,
    offset: int,
    *,
    partition: int = 0,
    wait_ms: int = 0,
    bytes_min: int = 1,
    bytes_max: int = 1 << 20,
    leader_epoch: int = -1,
    session: tuple[int, int] = (0, -1),
    correlation_id: int = 1,
) -> bytes:
    name = topic.encode()
    body = head(ApiKey.FETCH, 11, correlation_id) + struct.pack(">iiiib", -1, wait_ms, bytes_min, bytes_max, 0)
    body += struct.pack(">ii", *session) + struct.pack(">ih", 1, len(name)) + name
    body += struct.pack(">iiiqqi", 1, partition, leader_epoch, offset, -1, bytes_max)
    return framed(body + struct.pack(">ih", 0, 0))


def batch(*values: bytes, **how: Any) -> bytes:
    return bytes(encode_batch([RecordToSend(value, timestamp=1_000 + n) for n, value in enumerate(values)], **how))


class RawClient:
    """One connection; also a context manager."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=ANSWER_S_MAX)

    def __enter__(self) -> RawClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def receive(self) -> bytes:
        """The next answer, correlation id and all. Raises `Closed`."""
        size = struct.unpack(">i", self._exactly(4))[0]
        return self._exactly(size)

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            try:
                more = self.socket.recv(size - len(data))
            except ConnectionResetError:
                more = b""
            if not more:
                raise Closed
            data += more
        return data

    def closed_by_broker(self) -> bool:
        """Wait for the end of the connection; answers before it are skipped."""
        try:
            while True:
                self.receive()
        except Closed:
            return True

    def call(self, key: ApiKey, version: int, message: object) -> Any:
        """Send a request and read its answer."""
        self.send(request(key, version, message))
        api = SERVED[key]
        assert api.response is not None
        flexible = api.flexible(version)
        skip = 5 if flexible and key is not ApiKey.API_VERSIONS else 4
        return decode(api.response, version, self.receive()[skip:], flexible=flexible)

    def produce(self, topic: str, records: bytes | None, **how: Any) -> tuple[int, int]:
        """(error, base offset) of one partition's records."""
        self.send(produce_request(topic, records, **how))
        return produced(self.receive())

    def hears(self, timeout_s: float) -> bool:
        """Whether an answer has begun to come by then."""
        return bool(select.select([self.socket], [], [], timeout_s)[0])

    def fetch(self, topic: str, offset: int, **how: Any) -> tuple[int, int, bytes]:
        """(error, high watermark, records) of one partition."""
        self.send(fetch_request(topic, offset, **how))
        return fetched(self.receive())

    def end_offset(self, topic: str, partition: int = 0) -> int:
        from brokers.wire.apis.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

        part = ListOffsetsPartition(partition_index=partition, timestamp=LATEST)
        message = ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name=topic, partitions=(part,)),))
        answer = self.call(ApiKey.LIST_OFFSETS, 5, message)
        offset = answer.topics[0].partitions[0].offset
        assert isinstance(offset, int)
        return offset


def produced(answer: bytes) -> tuple[int, int]:
    """Error and base offset from a produce answer for one partition, of version 5 and above."""
    name_length = struct.unpack_from(">h", answer, 8)[0]
    _, _, error, base_offset = struct.unpack_from(">iihq", answer, 10 + name_length)
    return error, base_offset


def fetched(answer: bytes) -> tuple[int, int, bytes]:
    """Error, high watermark and records from a fetch answer of version 11 for at most one partition."""
    _, _, error, _, topics = struct.unpack_from(">iihii", answer, 0)
    if not topics:
        return error, -1, b""
    at = 18 + 2 + struct.unpack_from(">h", answer, 18)[0]
    _, _, error, high = struct.unpack_from(">iihq", answer, at)
    at += 4 + struct.Struct(">ihqqqii").size
    size = struct.unpack_from(">i", answer, at)[0]
    return error, high, answer[at + 4 : at + 4 + size]
