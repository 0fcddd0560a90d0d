"""The state that the log needs at its next start, in one small file that is replaced in one step.

  recovered_offset  everything before it was synced: it is never cut, only reported when it is damaged
  clean_end         the end offset when the log was closed in order; absent while it is open
  start_offset      where the log begins: moved by retention alone, before a segment is removed
  epochs            (leader epoch, first offset), written before the first batch of the epoch is

The first line is a CRC-32C of the rest, which is JSON so that a person can read it. A missing or damaged file costs a
full scan at the next start, nothing else.
"""

import json
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from crc32c import crc32c

from brokers.log.epochs import OFFSET_BOUND

_VERSION: Final = 1
_EPOCH_MAX: Final = (1 << 31) - 1
FILE_NAME: Final = "checkpoint"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The content of the file."""

    recovered_offset: int
    clean_end: int | None
    epochs: tuple[tuple[int, int], ...]
    start_offset: int | None = None  # files of earlier versions do not say


def encode_checkpoint(checkpoint: Checkpoint) -> bytes:
    """The file's bytes."""
    content = {
        "version": _VERSION,
        "recovered_offset": checkpoint.recovered_offset,
        "clean_end": checkpoint.clean_end,
        "start_offset": checkpoint.start_offset,
        "epochs": checkpoint.epochs,
    }
    body = json.dumps(content).encode() + b"\n"
    return b"%08x\n%s" % (crc32c(body), body)


def decode_checkpoint(data: bytes) -> Checkpoint | None:
    """The checkpoint, or None when it is not one that this program wrote, whatever its CRC says."""
    crc, _, body = data.partition(b"\n")
    if crc != b"%08x" % crc32c(body):
        return None
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return None
    match content:
        case {"version": 1, "recovered_offset": recovered_offset, "clean_end": clean_end, "epochs": list(found)}:
            start_offset = content.get("start_offset")
            epochs = _epochs(found)
        case _:
            return None
    offsets = [recovered_offset, *(offset for offset in (clean_end, start_offset) if offset is not None)]
    if epochs is None or not all(map(_is_offset, offsets)):
        return None
    return Checkpoint(recovered_offset, clean_end, epochs, start_offset)


def _is_offset(found: object) -> bool:
    return type(found) is int and 0 <= found <= OFFSET_BOUND


def _epochs(found: list[Any]) -> tuple[tuple[int, int], ...] | None:
    """Pairs that rise in both columns, or None."""
    for pair in found:
        if not isinstance(pair, list) or len(pair) != 2 or not _is_offset(pair[1]):
            return None
        if type(pair[0]) is not int or not 0 <= pair[0] <= _EPOCH_MAX:
            return None
    epochs = tuple((epoch, offset) for epoch, offset in found)
    rising = all(one[0] < next_one[0] and one[1] < next_one[1] for one, next_one in pairwise(epochs))
    return epochs if rising else None
