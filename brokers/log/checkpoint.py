"""What the log wants to know of itself at its next start, in one small file that is replaced in one step.

  recovered_offset  everything before it was synced: it is never cut, only reported when it is damaged
  clean_end         the end offset when the log was closed in order; absent while it is open
  epochs            (leader epoch, first offset), written before the first batch of the epoch is

The first line is a CRC-32C of the rest, which is JSON so that a person can read it. A missing or damaged file costs a
full scan at the next start, nothing else.
"""

import json
from dataclasses import dataclass
from typing import Final

from crc32c import crc32c

_VERSION: Final = 1
FILE_NAME: Final = "checkpoint"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The content of the file."""

    recovered_offset: int
    clean_end: int | None
    epochs: tuple[tuple[int, int], ...]


def encode_checkpoint(checkpoint: Checkpoint) -> bytes:
    """The file's bytes."""
    content = {
        "version": _VERSION,
        "recovered_offset": checkpoint.recovered_offset,
        "clean_end": checkpoint.clean_end,
        "epochs": checkpoint.epochs,
    }
    body = json.dumps(content).encode() + b"\n"
    return b"%08x\n%s" % (crc32c(body), body)


def decode_checkpoint(data: bytes) -> Checkpoint | None:
    """The checkpoint, or None when a byte of it is not as it was written."""
    crc, _, body = data.partition(b"\n")
    if crc != b"%08x" % crc32c(body):
        return None
    content = json.loads(body)
    if content["version"] != _VERSION:
        return None
    epochs = tuple((int(epoch), int(offset)) for epoch, offset in content["epochs"])
    return Checkpoint(content["recovered_offset"], content["clean_end"], epochs)
