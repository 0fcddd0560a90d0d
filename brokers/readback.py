"""`python -m brokers.readback`: what logs hold, read off the disk for an audit.

It goes along the segment files themselves, not through the broker that was measured, and checks every CRC. Each line
that it is given is a job, `{"out": FILE.npz, "partitions": {PARTITION: FOLDER}}`; each that it answers is
`{"read": NUMBER}` or `{"failed": REASON}`. For each partition the file holds the first eight bytes of every message's
value, in order, as numbers.

The batches of an experiment are alike for long stretches: same size, and in them records of one layout. Those are read
as one array; any other batch is decoded record by record.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from crc32c import crc32c

from brokers.wire.batch import CRC_BEGIN, HEADER_BYTES, BatchError, decode_records, parse_header
from brokers.wire.primitives import read_signed

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    Bytes = npt.NDArray[np.uint8]
    Ids = npt.NDArray[np.uint64]

ID_BYTES: Final = 8
NO_ID: Final = b"\xff"
# Where a header says what batches that are read together must have in common: length, magic, attributes, count.
_COMMON: Final = np.r_[8:12, 16, 21:23, 57:61]
_CRC: Final = slice(17, 21)
_ALIKE_BYTES_MAX: Final = 16 * 1024 * 1024
_ALIKE_FIRST_TRY: Final = 8
# An offset delta takes one byte more from each of these on.
_WIDER_FROM: Final = (1 << 6, 1 << 13, 1 << 20, 1 << 27)
_RECORD_HEAD_BYTES_MAX: Final = 40


class Damaged(Exception):
    """A batch on the disk is not what its producer signed."""


def main() -> int:
    for line in sys.stdin:
        job = json.loads(line)
        try:
            answer: dict[str, Any] = {"read": read(Path(job["out"]), job["partitions"])}
        except (Damaged, OSError) as error:
            answer = {"failed": str(error)}
        print(json.dumps(answer), flush=True)
    return 0


def read(out: Path, partitions: dict[str, str]) -> int:
    """Write the ids of each partition's folder to `out`; how many there were."""
    found = {number: ids_in(Path(folder)) for number, folder in partitions.items()}
    np.savez(out, **found)  # type: ignore[arg-type] # its stub takes every keyword for an option
    return sum(map(len, found.values()))


def ids_in(folder: Path) -> Ids:
    """The ids in one partition's folder, in the order of its log. Raises `Damaged`."""
    parts = [
        part
        for segment in sorted(folder.glob("*.log"))
        if segment.stat().st_size
        for part in _ids(np.memmap(segment, np.uint8, "r"), segment)
    ]
    return np.concatenate(parts) if parts else np.empty(0, np.uint64)


def _ids(content: Bytes, segment: Path) -> Iterator[Ids]:
    position, alike_max = 0, _ALIKE_FIRST_TRY
    while position < len(content):
        try:
            header = parse_header(content[position : position + HEADER_BYTES].tobytes())
            if not HEADER_BYTES <= header.size <= len(content) - position:
                raise BatchError("its end is missing")
            batches = _sound(_alike(content[position:], header.size, alike_max))
            if not len(batches):
                raise BatchError("its bytes are not those that its producer signed")
            yield _ids_of(batches, header.records_count)
        except BatchError as error:
            raise Damaged(f"{segment} at byte {position}: {error}") from error
        alike_max = 8 * alike_max if len(batches) == alike_max else _ALIKE_FIRST_TRY
        position += batches.size


def _alike(content: Bytes, size: int, rows_max: int) -> Bytes:
    """The first batch, and as many behind it as have its size, format and number of records; a row each."""
    rows = max(1, min(rows_max, len(content) // size, _ALIKE_BYTES_MAX // size))
    batches = content[: rows * size].reshape(rows, size)
    common = (batches[:, _COMMON] == batches[0, _COMMON]).all(axis=1)
    return batches if common.all() else batches[: int(common.argmin())]


def _sound(batches: Bytes) -> Bytes:
    """The batches before the first whose CRC fails."""
    crcs = batches[:, _CRC].copy().view(">u4")[:, 0].tolist()
    for number, (batch, crc) in enumerate(zip(batches, crcs, strict=True)):
        if crc32c(batch[CRC_BEGIN:]) != crc:
            return batches[:number]
    return batches


def _ids_of(batches: Bytes, records: int) -> Ids:
    """The ids of batches that are alike."""
    found = _ids_at_once(batches, records)
    if found is not None:
        return found
    if len(batches) > 1:
        return np.concatenate([_ids_of(batch[None, :], records) for batch in batches])
    values = (record.value or b"" for record in decode_records(batches.tobytes()))
    ids = b"".join(value[:ID_BYTES].ljust(ID_BYTES, NO_ID) for value in values)
    return np.frombuffer(ids, ">u8").astype(np.uint64)


def _ids_at_once(batches: Bytes, records: int) -> Ids | None:
    """The ids of batches in which each record is laid out as its neighbours are; None where one is not."""
    parts, position, first = [], HEADER_BYTES, 0
    for delta_bytes, wider_from in enumerate(_WIDER_FROM, start=1):
        count = min(records, wider_from) - first
        if count <= 0:
            break
        layout = _Layout.of(batches[0], position, delta_bytes)
        end = position + count * layout.stride if layout else 0
        if layout is None or end > batches.shape[1]:
            return None
        block = batches[:, position:end].reshape(len(batches), count, layout.stride)
        if not layout.holds(block, first):
            return None
        parts.append(block[:, :, layout.value : layout.value + ID_BYTES])
        position, first = end, first + count
    if position != batches.shape[1] or first != records:
        return None
    return np.concatenate(parts, axis=1).view(">u8").reshape(-1).astype(np.uint64)


class _Layout(NamedTuple):
    """Where in a record what stands, in bytes from its begin."""

    stride: int
    timestamp: int
    delta: int
    key: int
    value: int

    @classmethod
    def of(cls, batch: Bytes, position: int, delta_bytes: int) -> _Layout | None:
        """That of the record at `position`; None where it is none that this can read."""
        data = batch[position : position + _RECORD_HEAD_BYTES_MAX].tobytes()
        try:
            length, begin = read_signed(data, 0)
            timestamp = begin + 1
            _, delta = read_signed(data, timestamp)
            key = delta + delta_bytes
            key_length, at = read_signed(data, key)
            value_length, value = read_signed(data, at)
        except ValueError:
            return None
        stride = begin + length
        plain = key_length == -1 and value_length >= ID_BYTES and value + value_length + 1 == stride
        return cls(stride, timestamp, delta, key, value) if plain else None

    def holds(self, block: Bytes, first: int) -> bool:
        """Whether every record in (batches, records, bytes) has it, with offset deltas that count from `first`."""
        fixed = np.r_[: self.timestamp, self.key : self.value, self.stride - 1]
        width = self.key - self.delta
        numbers = np.arange(first, first + block.shape[1]) << 1  # zigzag, as all deltas are
        deltas = np.stack([numbers >> 7 * n & 0x7F | (0x80 if n < width - 1 else 0) for n in range(width)], axis=1)
        longer = block[:, :, self.timestamp : self.delta] >> 7
        return bool(
            (block[:, :, fixed] == block[0, 0, fixed]).all()
            and (block[:, :, self.delta : self.key] == deltas).all()
            and longer[:, :, :-1].all()
            and not longer[:, :, -1].any()
            and block[0, 0, -1] == 0  # no headers
        )


if __name__ == "__main__":
    sys.exit(main())
