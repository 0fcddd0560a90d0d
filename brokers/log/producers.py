"""The last batches of each idempotent producer, so that a batch sent twice is stored once.

The rules are Kafka's (KIP-98): per producer id the current epoch and its last five batches are remembered. A batch that
is among them is a duplicate and is answered with the offset it got the first time. One that continues the last sequence
is new. Anything else is out of order. A lower epoch is fenced; a higher one starts again at sequence 0. A producer id
that is not known may start anywhere: its state may have expired. Sequences wrap from 2^31 - 1 to 0.

Pure: `now_ms` is given, and the order of the dict is the order of last use.
"""

import struct
from typing import Final, NamedTuple

from crc32c import crc32c

from brokers.log.errors import ProducerFenced, SequenceOutOfOrder
from brokers.wire.batch import BatchHeader

BATCHES_REMEMBERED: Final = 5
_SEQUENCES: Final = 1 << 31
_FORMAT: Final = b"BLPRD1\n\0"
_HEADER: Final = struct.Struct(">8sqI")
_PRODUCER: Final = struct.Struct(">qhqB")
_BATCH: Final = struct.Struct(">iiq")
_CRC: Final = struct.Struct(">I")


class Written(NamedTuple):
    """One remembered batch."""

    first_sequence: int
    last_sequence: int
    base_offset: int


class Producer(NamedTuple):
    """One producer id: the epoch it writes under, when it last did, and its last batches, oldest first."""

    epoch: int
    used_ms: int
    batches: tuple[Written, ...]


class Producers:
    """The producers of one partition, `producers_max` at most: the one that wrote longest ago is forgotten first."""

    __slots__ = ("_by_id", "_producers_max", "now_ms")

    def __init__(self, producers_max: int, now_ms: int = 0) -> None:
        self._producers_max = producers_max
        self._by_id: dict[int, Producer] = {}
        self.now_ms = now_ms

    def __len__(self) -> int:
        return len(self._by_id)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Producers) and self.encode(0) == other.encode(0)

    __hash__ = None  # type: ignore[assignment]

    def duplicate_of(self, header: BatchHeader) -> int | None:
        """The offset under which this batch is stored already, None when it is the producer's next one.

        ProducerFenced or SequenceOutOfOrder when it is neither.
        """
        known = self._by_id.get(header.producer_id)
        if known is None:
            return None
        first = header.base_sequence
        if header.producer_epoch != known.epoch:
            _check_epoch(header, known.epoch)
            return None
        last = (first + header.last_offset_delta) % _SEQUENCES
        for written in known.batches:
            if written.first_sequence == first and written.last_sequence == last:
                return written.base_offset
        expected = (known.batches[-1].last_sequence + 1) % _SEQUENCES
        if first != expected:
            raise SequenceOutOfOrder(f"producer {header.producer_id} sent sequence {first}, {expected} is next")
        return None

    def note(self, header: BatchHeader, base_offset: int) -> Producer | None:
        """Remember a batch that is appended; what was known of its producer before, for `undo`."""
        known = self._by_id.pop(header.producer_id, None)
        first = header.base_sequence
        written = Written(first, (first + header.last_offset_delta) % _SEQUENCES, base_offset)
        earlier = known.batches[1 - BATCHES_REMEMBERED :] if known and known.epoch == header.producer_epoch else ()
        self._by_id[header.producer_id] = Producer(header.producer_epoch, self.now_ms, (*earlier, written))
        if len(self._by_id) > self._producers_max:
            del self._by_id[next(iter(self._by_id))]
        return known

    def undo(self, noted: list[tuple[int, Producer | None]]) -> None:
        """Forget batches that were not appended after all: pairs of a producer id and what `note` returned for it.

        A producer that was forgotten to make room stays so, as after any other that wrote.
        """
        for producer_id, known in reversed(noted):
            self._by_id.pop(producer_id, None)
            if known is not None:
                self._by_id[producer_id] = known

    def expire(self, now_ms: int, unused_ms_max: int) -> None:
        """Forget producers that wrote nothing for longer than `unused_ms_max`."""
        self.now_ms = now_ms
        while self._by_id:
            producer_id, oldest = next(iter(self._by_id.items()))
            if now_ms - oldest.used_ms <= unused_ms_max:
                return
            del self._by_id[producer_id]

    def encode(self, end_offset: int) -> bytes:
        """A snapshot for the state after all batches before `end_offset`."""
        parts = [_HEADER.pack(_FORMAT, end_offset, len(self._by_id))]
        for producer_id, producer in self._by_id.items():
            parts.append(_PRODUCER.pack(producer_id, producer.epoch, producer.used_ms, len(producer.batches)))
            parts += [_BATCH.pack(*written) for written in producer.batches]
        body = b"".join(parts)
        return body + _CRC.pack(crc32c(body))


def _check_epoch(header: BatchHeader, known_epoch: int) -> None:
    """A batch of another epoch than the known one passes when the epoch is higher and its sequence starts again."""
    producer_id, epoch = header.producer_id, header.producer_epoch
    if epoch < known_epoch:
        raise ProducerFenced(f"producer {producer_id} wrote under epoch {epoch}, {known_epoch} has taken over")
    if header.base_sequence != 0:
        raise SequenceOutOfOrder(f"producer {producer_id} starts epoch {epoch} at sequence {header.base_sequence}")


def decode_producers(data: bytes, end_offset: int, producers_max: int) -> Producers | None:
    """The producers of a snapshot that was made for `end_offset`, or None when it is not one, whatever its CRC says."""
    if len(data) < _HEADER.size + _CRC.size or not data.startswith(_FORMAT):
        return None
    if crc32c(memoryview(data)[: -_CRC.size]) != _CRC.unpack_from(data, len(data) - _CRC.size)[0]:
        return None
    _, snapshot_end, count = _HEADER.unpack_from(data)
    if snapshot_end != end_offset:
        return None
    producers = Producers(producers_max)
    position, body_end = _HEADER.size, len(data) - _CRC.size
    for _ in range(count):
        if body_end - position < _PRODUCER.size:
            return None
        producer_id, epoch, used_ms, batches_count = _PRODUCER.unpack_from(data, position)
        position += _PRODUCER.size
        end = position + batches_count * _BATCH.size
        if not 1 <= batches_count <= BATCHES_REMEMBERED or end > body_end or min(producer_id, epoch, used_ms) < 0:
            return None
        batches = tuple(Written(*fields) for fields in _BATCH.iter_unpack(data[position:end]))
        if not all(min(written) >= 0 and written.base_offset < end_offset for written in batches):
            return None
        producers._by_id[producer_id] = Producer(epoch, used_ms, batches)
        position = end
    return producers if position == body_end else None
