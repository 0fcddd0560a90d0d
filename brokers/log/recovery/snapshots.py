"""Snapshots of the idempotent producers, one beside each segment, and how the state is made again from them.

`<offset>.producers` holds for all batches before that offset. It is written when a segment is begun and when the log is
closed, and never trusted beyond its CRC: a missing one costs reading the headers of the segment before.
"""

import re
from bisect import bisect_right
from collections.abc import Container
from pathlib import Path
from typing import Final

from brokers.log.files import Files, read_file, replace_file
from brokers.log.producers import Producers, decode_producers
from brokers.log.recovery.scan import EpochSpan, good_batches
from brokers.log.segment import OpenSegments, Segment
from brokers.wire.batch import NO_PRODUCER

_NAME: Final = re.compile(r"(\d{20})\.producers")


def save_producers(files: Files, directory: Path, producers: Producers, offset: int, *, durable: bool) -> None:
    """Write the snapshot for `offset`."""
    replace_file(files, _path(directory, offset), producers.encode(offset), durable=durable)


def load_producers(files: Files, directory: Path, producers_max: int, end_offset: int) -> tuple[Producers, int]:
    """The latest good snapshot at or before `end_offset` and its offset; no producers and 0 when there is none."""
    for offset in sorted(snapshot_offsets(files, directory), reverse=True):
        if offset <= end_offset:
            data = read_file(files, _path(directory, offset))
            producers = None if data is None else decode_producers(data, offset, producers_max)
            if producers is not None:
                return producers, offset
    return Producers(producers_max), 0


def restore_producers(
    files: Files,
    directory: Path,
    segments: list[Segment],
    open_segments: OpenSegments,
    producers_max: int,
    epoch_span: EpochSpan,
    now_ms: int,
) -> Producers:
    """The producers as of the log's end: the latest snapshot, and the batches behind it."""
    producers, offset = load_producers(files, directory, producers_max, segments[-1].end_offset)
    producers.now_ms = now_ms
    for segment in segments:
        if segment.idempotent and segment.end_offset > offset:
            if segment is not segments[-1]:
                open_segments.use(segment)
            replay(producers, segment, offset, epoch_span)
    return producers


def replay(producers: Producers, segment: Segment, offset: int, epoch_span: EpochSpan) -> None:
    """Note the segment's good batches from `offset` on, those behind damage as well. The segment is open."""
    index = segment.index
    entry = index.last_within(segment.size, offset)
    while entry < len(index):
        position, first = index.positions[entry], index.offsets[entry]
        for at, header in good_batches(segment.files, segment.handle, position, segment.size, first, epoch_span):
            if header.producer_id != NO_PRODUCER and header.base_offset >= offset:
                producers.note(header, header.base_offset)
            position = at + header.size
        entry = bisect_right(index.positions, position)


def prune_snapshots(files: Files, directory: Path, keep: Container[int]) -> None:
    """Remove the snapshots of all offsets but those."""
    for offset in snapshot_offsets(files, directory):
        if offset not in keep:
            files.unlink(_path(directory, offset))


def snapshot_offsets(files: Files, directory: Path) -> list[int]:
    """Offsets for which there is a snapshot file."""
    return [int(match[1]) for name in files.list_names(directory) if (match := _NAME.fullmatch(name))]


def _path(directory: Path, offset: int) -> Path:
    return directory / f"{offset:020}.producers"
