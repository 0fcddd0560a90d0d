"""Rows as they stand on the disk and travel: compact JSON, one array a row. Pure.

One encoding serves the journal, the wire, the hash of a table and the ties of a merge, so the simulation exchanges the
very bytes that real brokers do. Reading takes nothing on trust: types, bounds and counts are checked row by row.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from coordinators.dsbs.tables.rows import LeaderRow, MemberRow, OffsetRow, Row, Status, TopicRow
from coordinators.model import Broker, TopicSettings
from coordinators.strict_json import decoded as from_json
from coordinators.strict_json import shown, to_text

if TYPE_CHECKING:
    from collections.abc import Sequence

# Encodings and hashes of the same few rows are asked for again and again; this many are remembered.
_REMEMBERED_MAX: Final = 2**14


class Malformed(ValueError):
    """The bytes are not what a broker of this program writes; the message says where."""


def row_to_json(row: Row) -> list[Any]:
    if isinstance(row, MemberRow):
        to = row.broker
        return ["m", to.id, to.host, to.kafka_port, to.rpc_port, row.session, row.incarnation, int(row.status)]
    if isinstance(row, TopicRow):
        settings = row.settings
        own = [settings.fetch_records_max, settings.retention_bytes, settings.retention_ms]
        least = [settings.min_insync_replicas] if settings.min_insync_replicas else []
        return ["t", row.name, row.generation, row.creator, int(row.deleted), row.replicas, *own, *least]
    if isinstance(row, LeaderRow):
        birth = [row.generation, row.creator]
        return ["l", row.topic, row.partition, *birth, row.epoch, row.version, row.leader, row.in_sync]
    place = [row.offset, row.leader_epoch, row.metadata]
    return ["o", row.group, row.topic, row.partition, row.generation, row.version, *place]


@lru_cache(_REMEMBERED_MAX)
def encoded(row: Row) -> str:
    return to_text(row_to_json(row))


@lru_cache(_REMEMBERED_MAX)
def row_hash(row: Row) -> int:
    """64 bits; a table's hash is the exclusive or of its rows' hashes."""
    return int.from_bytes(blake2b(encoded(row).encode(), digest_size=8).digest())


def row_from_json(found: object) -> Row:
    """Raises `Malformed` with what is wrong."""
    if not isinstance(found, list) or any(isinstance(value, bool) for value in found):
        raise Malformed(f"no row: {shown(found)}")
    match found:
        case ["m", int(broker), str(host), int(kafka), int(rpc), int(session), int(incarnation), int(status)] if (
            0 <= status <= Status.LEFT
        ):
            row: Row = MemberRow(Broker(broker, host, kafka, rpc), session, incarnation, Status(status))
        case ["t", str(name), int(generation), int(creator), 0 | 1 as deleted, list(replicas), *settings]:
            placed = tuple(_ids(brokers) for brokers in replicas)
            row = TopicRow(name, generation, creator, placed, _settings(settings), bool(deleted))
        case ["l", str(topic), int(partition), int(generation), int(creator), int(epoch), int(version), int(leader), _]:
            row = LeaderRow(topic, partition, generation, creator, epoch, version, leader, _ids(found[-1]))
        case ["o", str(group), str(topic), int(partition), int(generation), int(version), int(offset), int(epoch), _]:
            row = OffsetRow(group, topic, partition, generation, version, offset, epoch, _text(found[-1]))
        case _:
            raise Malformed(f"no row: {shown(found)}")
    if (fault := row.fault()) is not None:
        raise Malformed(fault)
    return row


def decoded(record: bytes) -> Row:
    """A row from its line in a journal. Raises `Malformed`."""
    return row_from_json(parsed(record))


def parsed(content: bytes) -> object:
    """JSON. Raises `Malformed`, for what nests too deep as well."""
    try:
        return from_json(content)
    except ValueError as error:
        raise Malformed(f"not JSON: {error}") from error


def _ids(found: object) -> tuple[int, ...]:
    if not isinstance(found, list) or not all(type(broker) is int for broker in found):
        raise Malformed(f"broker ids must be a list of whole numbers, not {shown(found)}")
    return tuple(found)


def _text(found: object) -> str:
    if not isinstance(found, str):
        raise Malformed(f"metadata must be text, not {shown(found)}")
    return found


def _settings(found: Sequence[object]) -> TopicSettings:
    match found:
        case [int(records), int() | None as size, int() | None as age]:
            return TopicSettings(records, size, age)
        case [int(records), int() | None as size, int() | None as age, int(least)] if least:
            return TopicSettings(records, size, age, least)
    raise Malformed(f"no settings of a topic: {shown(found)}")
