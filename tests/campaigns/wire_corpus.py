"""Sound requests of every API and version, for the fuzzer to spoil."""

from __future__ import annotations

from dataclasses import MISSING, fields
from types import NoneType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from brokers.wire.apis.list_offsets import EARLIEST
from brokers.wire.apis.table import SERVED, Api, ApiKey
from brokers.wire.compression import Codec
from brokers.wire.schema import Since
from tests.integration.kafka.raw import batch, fetch_request, produce_request, request

FUZZED_TOPIC = "fuzzed"
# What a field holds, where its type alone would make a request that is refused at once.
_KNOWN: dict[str, Any] = {
    "name": FUZZED_TOPIC,
    "key": "group",
    "group_id": "group",
    "timestamp": EARLIEST,
    "num_partitions": 1,
    "replication_factor": 1,
    "session_timeout_ms": 6_000,
    "rebalance_timeout_ms": 100,
    "timeout_ms": 100,
    "resource_type": 2,
    "resource_name": FUZZED_TOPIC,
    "protocol_type": "consumer",
    "validate_only": True,
    "committed_offset": 1,
    "replica_id": -1,
    "transactional_id": None,
    "topic_names": ("no-such-topic",),
    "assignments": (),
    "configs": (),
}


def corpus() -> list[bytes]:
    """The bodies of their frames."""
    frames = [*_produces(), *_fetches()]
    for api in SERVED.values():
        if api.request is not None:
            frames += [_sample(api, version) for version in range(api.version_min, api.version_max + 1)]
    return [frame[4:] for frame in frames]


def _produces() -> list[bytes]:
    batches = [batch(b"value"), batch(b"a", b"b", b"c"), batch(b"x" * 500, codec=Codec.ZSTD)]
    batches.append(batch(b"idempotent", producer=(7, 0, 0)))
    return [
        produce_request(FUZZED_TOPIC, records, partition=number % 2, acks=acks, version=version)
        for number, records in enumerate(batches)
        for acks in (1, -1, 0)
        for version in (3, 7)
    ]


def _fetches() -> list[bytes]:
    return [
        fetch_request(FUZZED_TOPIC, offset, wait_ms=wait_ms, bytes_min=bytes_min)
        for offset in (0, 1, 10**6)
        for wait_ms in (0, 20)
        for bytes_min in (1, 10**6)
    ]


def _sample(api: Api, version: int) -> bytes:
    assert api.request is not None
    key: ApiKey = api.key
    return request(key, version, _message(api.request, version))


def _message(kind: type, version: int) -> Any:
    hints = get_type_hints(kind, include_extras=True)
    held = {}
    for part in fields(kind):
        if part.name in _KNOWN:
            held[part.name] = _KNOWN[part.name]
        elif part.default is MISSING:
            held[part.name] = _value(hints[part.name], version)
    return kind(**held)


def _value(hint: Any, version: int) -> Any:
    if get_origin(hint) is Annotated:
        base, kind = get_args(hint)[:2]
        if isinstance(kind, Since):
            return _value(base, version)
        return {"string": "text", "bytes": b"bytes", "boolean": False}.get(kind, 0)
    if get_origin(hint) is tuple:
        return (_value(get_args(hint)[0], version),)
    members = [member for member in get_args(hint) if member is not NoneType]
    return _value(members[0], version) if members else _message(hint, version)
