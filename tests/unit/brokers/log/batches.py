"""Batches to put into a log, and what should come out of it."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from brokers.log.config import LogConfig
from brokers.log.errors import LogUnreadable, SequenceError
from brokers.log.file_range import Stretch
from brokers.log.files import OS_FILES, Files
from brokers.log.log import Batch, Log
from brokers.log.segment import OpenSegments
from brokers.wire.batch import RecordToSend, check_produced, encode_batch, parse_header
from brokers.wire.rows import Row

NO_PRODUCER = (-1, -1, -1)
SMALL = LogConfig(segment_bytes=600, index_interval_bytes=100)
BATCH_BYTES_MAX = 1 << 23


def batch(*values: bytes, timestamp: int = 0, producer: tuple[int, int, int] = NO_PRODUCER) -> Batch:
    """A batch as it comes from the wire: one record per value."""
    data = encode_batch([RecordToSend(value, timestamp=timestamp) for value in values or (b"v",)], producer=producer)
    return memoryview(data), check_produced(data, BATCH_BYTES_MAX)


def row(*values: bytes, timestamp: int = 0) -> Row:
    """Batches of one record each, all of a size, with something between them, as requests have."""
    made = [bytes(batch(value, timestamp=timestamp + number)[0]) for number, value in enumerate(values)]
    gap = b"\xee" * 7
    span = memoryview(bytearray(gap.join(made)))
    headers = [parse_header(one) for one in made]
    stamps = tuple(header.max_timestamp for header in headers)
    return Row(tuple(range(len(made))), span, len(made[0]) + len(gap), headers[0], stamps)


def opened(directory: Path, config: LogConfig = SMALL, files: Files = OS_FILES, now_ms: int = 1000) -> Log:
    """A log in the directory, with room for three open sealed segments."""
    return Log.open(directory, config, now_ms=now_ms, files=files, open_segments=OpenSegments(3))


def abandon(log: Log) -> None:
    """Leave the log as a killed process would: nothing is written any more, the operating system closes the files."""
    log._close_files("abandoned")


def split(data: bytes) -> list[bytes]:
    """The whole batches in the answer of a read; ValueError when a piece is left over."""
    found = []
    position = 0
    while position < len(data):
        size = parse_header(data, position).size
        if position + size > len(data):
            raise ValueError("a read ended inside a batch")
        found.append(data[position : position + size])
        position += size
    return found


def everything(log: Log, bytes_max: int = 250) -> list[bytes]:
    """All batches of the log in order."""
    found: list[bytes] = []
    offset = log.start_offset
    while answer := split(log.reader.read(offset, bytes_max)):
        found += answer
        last = parse_header(answer[-1])
        offset = last.base_offset + last.records_count
    return found


def readable(log: Log) -> tuple[dict[int, bytes], list[tuple[int, int]]]:
    """(batches by base offset, damaged ranges), reading on behind each damage as a client would."""
    found: dict[int, bytes] = {}
    damaged: list[tuple[int, int]] = []
    offset = log.start_offset
    while offset < log.end_offset:
        try:
            answer = split(log.reader.read(offset, 250))
        except LogUnreadable as damage:
            if not damage.begin <= offset < damage.end:
                raise AssertionError(f"{damage} at {offset}") from damage
            damaged.append((damage.begin, damage.end))
            offset = damage.end
            continue
        assert answer, "a read below the end returns something"
        for piece in answer:
            header = parse_header(piece)
            found[header.base_offset] = piece
            offset = header.base_offset + header.records_count
    return found, damaged


def offsets(results: Iterable[int | SequenceError]) -> list[int]:
    """The offsets of batches none of which was refused."""
    return [result for result in results if isinstance(result, int)]


@dataclass
class Written:
    """A log and a plain list of what it must hold."""

    log: Log
    batches: list[bytes] = field(default_factory=list)

    def append(self, *values: bytes, epoch: int = 0) -> int:
        """Append one batch and note the bytes that must come back."""
        data, header = batch(*values)
        (offset,) = offsets(self.log.append([(data, header)], epoch))
        self.batches.append(bytes(data))
        return offset


def arrived(lent: Stretch) -> bytes:
    """What is lent, as a socket gets it."""
    handle = os.memfd_create("arrived")
    try:
        at = 0
        while at < len(lent):
            at += lent.send(handle, at, len(lent))
        return os.pread(handle, at, 0)
    finally:
        os.close(handle)
