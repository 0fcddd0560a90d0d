"""Kafka's record batch, format 2: the unit that is produced, stored, copied and fetched, and never taken apart for it.

A batch is 61 bytes of header and its records, which may be compressed as one. The CRC-32C covers everything from the
attributes on; the first 21 bytes (base offset, length, leader epoch, magic and the CRC itself) stay outside, so a
broker gives a batch its offset and epoch without touching what the producer signed. Pure: no clock, no file, no socket.

The hot path is `check_produced` (one unpack, one CRC) and `place` (one pack into the receive buffer). Taking records
apart is for tools, the gRPC service and timestamp look-ups.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple

from crc32c import crc32c

from brokers.wire.compression import Codec, CompressionRefused, compress, decompress
from brokers.wire.primitives import append_signed, read_signed

MAGIC: Final = 2
HEADER_BYTES: Final = 61
LENGTH_END: Final = 12  # the length field counts the bytes behind itself
EPOCH_AT: Final = 12
CRC_AT: Final = 17
CRC_BEGIN: Final = 21  # the first byte that the CRC covers
LENGTH_MIN: Final = HEADER_BYTES - LENGTH_END
RECORD_BYTES_MIN: Final = 7
# Records of one batch: the most that a client can be told to make (librdkafka's `batch.num.messages`). It is still a
# second of work to take apart, and three million empty records fit into 4 MB.
BATCH_RECORDS_MAX: Final = 1_000_000
RECORD_HEADERS_MAX: Final = 100_000  # of one record that is taken apart; two bytes each, and a hundred in memory
DECOMPRESSED_BYTES_MAX: Final = 128 * 1024 * 1024
INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1
NO_PRODUCER: Final = -1

HEADER: Final = struct.Struct(">qiibIhiqqqhii")
EXTENT: Final = struct.Struct(">8xi11xi")  # length and last offset delta, all that a walk along a segment needs
_unpack_header: Final = HEADER.unpack_from
_new_tuple: Final = tuple.__new__  # half the price of _make, on the path of every batch
PLACE: Final = struct.Struct(">qii")
CRC: Final = struct.Struct(">I")

_CODEC_BITS: Final = 0x07
_LOG_APPEND_TIME_BIT: Final = 0x08
_TRANSACTIONAL_BIT: Final = 0x10
_CONTROL_BIT: Final = 0x20
_CODECS_KNOWN: Final = len(Codec)


class BatchError(ValueError):
    """A batch that is refused; definite: nothing of it was stored. `kafka_error` names the error code that says so."""

    kafka_error: ClassVar[str] = "CORRUPT_MESSAGE"


class BatchCutShort(BatchError):
    """The bytes end before the batch does, or go on behind it."""


class BatchCrcMismatch(BatchError):
    """The bytes are not those that the producer signed."""


class BatchMagicUnsupported(BatchError):
    """Another format than 2."""

    kafka_error = "UNSUPPORTED_FOR_MESSAGE_FORMAT"


class BatchTooLarge(BatchError):
    """More bytes or records than this broker takes in one batch."""

    kafka_error = "MESSAGE_TOO_LARGE"


class BatchInvalid(BatchError):
    """The CRC holds, and what it vouches for contradicts itself or is not a producer's to send."""

    kafka_error = "INVALID_RECORD"


class BatchCodecUnknown(BatchError):
    """A compression type that the format does not define."""

    kafka_error = "UNSUPPORTED_COMPRESSION_TYPE"


class BatchTransactional(BatchError):
    """Part of a transaction, which this broker does not offer."""

    kafka_error = "INVALID_TXN_STATE"


class BatchHeader(NamedTuple):
    """The header's fields in wire order. A tuple because it is made once for every batch that arrives."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_count: int

    @property
    def size(self) -> int:
        """Bytes of the whole batch."""
        return self.length + LENGTH_END

    @property
    def appended_at(self) -> bool:
        """Whether the largest timestamp is that of all records, as the broker that stored them gave it."""
        return bool(self.attributes & _LOG_APPEND_TIME_BIT)

    @property
    def codec(self) -> int:
        """The compression type's number; validated batches hold one that `Codec` knows."""
        return self.attributes & _CODEC_BITS


@dataclass(frozen=True, slots=True)
class Record:
    """One record as its reader sees it. An absent key or value is None; header values may be absent too."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True, slots=True)
class RecordToSend:
    """One record before it has an offset."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp: int = 0


def parse_header(data: bytes | bytearray | memoryview, position: int = 0) -> BatchHeader:
    """The header at `position`, unchecked; BatchCutShort when fewer than 61 bytes are left."""
    if len(data) - position < HEADER_BYTES:
        raise BatchCutShort(f"{len(data) - position} bytes left of a batch, its header alone has {HEADER_BYTES}")
    return BatchHeader._make(HEADER.unpack_from(data, position))


def check_produced(batch: bytearray | memoryview | bytes, bytes_max: int) -> BatchHeader:
    """The header of a batch that a producer sent, once every rule for it holds; a BatchError otherwise.

    `batch` is the whole records field of one partition: exactly one batch, as Produce demands since version 3. The
    records inside stay opaque: the CRC vouches that they are what the producer made, not that they are well-formed.
    """
    size = len(batch)
    if size < HEADER_BYTES:
        raise BatchCutShort(f"{size} bytes left of a batch, its header alone has {HEADER_BYTES}")
    header = _new_tuple(BatchHeader, _unpack_header(batch))
    (_, length, _, magic, crc, attributes, last_offset_delta, _, _, producer_id, producer_epoch, sequence, count) = (
        header
    )
    if magic != MAGIC:
        raise BatchMagicUnsupported(f"magic {magic}, only {MAGIC} is stored")
    if length != size - LENGTH_END:
        raise BatchCutShort(f"the batch claims {length + LENGTH_END} bytes, {size} came")
    if size > bytes_max:
        raise BatchTooLarge(f"a batch of {size} bytes, at most {bytes_max} are taken")
    if crc32c(batch[CRC_BEGIN:]) != crc:  # a view costs nothing to slice; whoever passes bytes pays for a copy
        raise BatchCrcMismatch(f"the CRC does not match the {size} bytes of the batch")
    if not 0 < count <= BATCH_RECORDS_MAX or last_offset_delta != count - 1:
        if count > BATCH_RECORDS_MAX:
            raise BatchTooLarge(f"a batch of {count} records, at most {BATCH_RECORDS_MAX} are taken")
        raise BatchInvalid(f"{count} records with a last offset delta of {last_offset_delta}")
    if attributes:
        _check_attributes(attributes)
    if not attributes & _CODEC_BITS and count * RECORD_BYTES_MIN > size - HEADER_BYTES:
        raise BatchInvalid(f"{count} records do not fit into {size - HEADER_BYTES} bytes")
    if producer_id != NO_PRODUCER and (producer_id < 0 or producer_epoch < 0 or sequence < 0):
        raise BatchInvalid(f"producer id {producer_id} with epoch {producer_epoch} and sequence {sequence}")
    return header


def _check_attributes(attributes: int) -> None:
    if attributes & _CODEC_BITS >= _CODECS_KNOWN:
        raise BatchCodecUnknown(f"compression type {attributes & _CODEC_BITS}, known are 0 to {_CODECS_KNOWN - 1}")
    if attributes & _CONTROL_BIT:
        raise BatchInvalid("control batches are written by brokers, not by producers")
    if attributes & _TRANSACTIONAL_BIT:
        raise BatchTransactional("transactions are not offered")


def encode_batch(
    records: Sequence[RecordToSend],
    *,
    codec: Codec = Codec.NONE,
    base_offset: int = 0,
    leader_epoch: int = -1,
    producer: tuple[int, int, int] = (NO_PRODUCER, -1, -1),
) -> bytearray:
    """One batch of at least one record, as a producer makes it; `producer` is (id, epoch, base sequence)."""
    if not records:
        raise BatchInvalid("a batch holds at least one record")
    base_timestamp = records[0].timestamp
    body = bytearray()
    for delta, record in enumerate(records):
        _append_record(body, record, delta, record.timestamp - base_timestamp)
    payload = compress(codec, body)
    count = len(records)
    batch = bytearray(HEADER_BYTES) + payload
    fields = (int(codec), count - 1, base_timestamp, max(record.timestamp for record in records), *producer, count)
    HEADER.pack_into(batch, 0, base_offset, len(batch) - LENGTH_END, leader_epoch, MAGIC, 0, *fields)
    CRC.pack_into(batch, CRC_AT, crc32c(memoryview(batch)[CRC_BEGIN:]))
    return batch


def _append_record(body: bytearray, record: RecordToSend, offset_delta: int, timestamp_delta: int) -> None:
    inner = bytearray(b"\x00")
    append_signed(inner, timestamp_delta)
    append_signed(inner, offset_delta)
    _append_bytes(inner, record.key)
    _append_bytes(inner, record.value)
    append_signed(inner, len(record.headers))
    for name, value in record.headers:
        _append_bytes(inner, name.encode())
        _append_bytes(inner, value)
    append_signed(body, len(inner))
    body += inner


def _append_bytes(output: bytearray, value: bytes | None) -> None:
    if value is None:
        append_signed(output, -1)
    else:
        append_signed(output, len(value))
        output += value


def decode_records(
    batch: bytes | bytearray | memoryview, decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX
) -> list[Record]:
    """The records of one whole batch whose CRC holds.

    BatchInvalid when they are not what the header says or would unpack to more than `decompressed_bytes_max`.
    """
    header = parse_header(batch)
    return list(records_of(header, unpacked(batch, header, decompressed_bytes_max)))


def unpacked(batch: bytes | bytearray | memoryview, header: BatchHeader, bytes_max: int) -> bytes | memoryview:
    """The records of a batch as bytes; never more than `bytes_max` of them are unpacked. BatchInvalid."""
    try:
        return decompress(header.codec, memoryview(batch)[HEADER_BYTES : header.size], bytes_max)
    except CompressionRefused as error:
        raise _invalid(header, error) from error


def records_of(header: BatchHeader, body: bytes | memoryview, first: int = 0) -> Iterator[Record]:
    """The result of `unpacked`, taken apart as records are asked for, from the one with the number `first` on.

    BatchInvalid when it comes to one that is not what the header says.
    """
    try:
        if header.base_offset + header.records_count - 1 > INT64_MAX:
            raise ValueError(f"the offsets of {header.records_count} records leave 64 bits")
        position = 0
        for number in range(header.records_count):
            length, position = read_signed(body, position)
            end = position + length
            if length < RECORD_BYTES_MIN - 1 or end > len(body):
                raise ValueError(f"a record of {length} bytes where {len(body) - position} are left")
            if number >= first:
                yield _record(header, number, body, position + 1, end)
            position = end
        if position != len(body):
            raise ValueError(f"{len(body) - position} bytes behind the last record")
    except ValueError as error:
        raise _invalid(header, error) from error


def timestamps_of(header: BatchHeader, body: bytes | memoryview) -> Iterator[int]:
    """The timestamp of each record in what `unpacked` gave, without taking the rest of it apart. BatchInvalid."""
    try:
        position = 0
        for _ in range(header.records_count):
            length, position = read_signed(body, position)
            if length < RECORD_BYTES_MIN - 1 or position + length > len(body):
                raise ValueError(f"a record of {length} bytes where {len(body) - position} are left")
            yield header.base_timestamp + read_signed(body, position + 1)[0]
            position += length
    except ValueError as error:
        raise _invalid(header, error) from error


def _invalid(header: BatchHeader, error: ValueError) -> BatchInvalid:
    return BatchInvalid(f"the records of the batch at offset {header.base_offset}: {error}")


def _record(header: BatchHeader, number: int, body: bytes | memoryview, position: int, end: int) -> Record:
    timestamp_delta, position = read_signed(body, position)
    offset_delta, position = read_signed(body, position)
    if offset_delta != number:  # a reader would go back, or pass over what follows
        raise ValueError(f"record {number} has an offset delta of {offset_delta}")
    key, position = _read_bytes(body, position, end)
    value, position = _read_bytes(body, position, end)
    count, position = read_signed(body, position)
    if count > RECORD_HEADERS_MAX:
        raise ValueError(f"record {number} has {count} headers, at most {RECORD_HEADERS_MAX} are taken apart")
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        name, position = _read_bytes(body, position, end)
        header_value, position = _read_bytes(body, position, end)
        headers.append(((name or b"").decode(), header_value))
    if position != end:
        raise ValueError(f"{end - position} bytes left over in a record")
    timestamp = header.max_timestamp if header.appended_at else header.base_timestamp + timestamp_delta
    if not INT64_MIN <= timestamp <= INT64_MAX:
        raise ValueError(f"record {number} has the timestamp {timestamp}, which leaves 64 bits")
    return Record(header.base_offset + number, timestamp, key, value, tuple(headers))


def _read_bytes(body: bytes | memoryview, position: int, end: int) -> tuple[bytes | None, int]:
    length, position = read_signed(body, position)
    if length == -1:
        return None, position
    if length < 0 or position + length > end:
        raise ValueError(f"a field of {length} bytes where {end - position} are left")
    return bytes(body[position : position + length]), position + length
