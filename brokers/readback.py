"""`python -m brokers.readback --out FILE.npz PARTITION=FOLDER ...`: what logs hold, read off the disk for an audit.

It goes along the segment files themselves, not through the broker that was measured, and checks every CRC. For each
partition the file holds the first eight bytes of every message's value, in order, as big-endian numbers.
"""

from __future__ import annotations

import argparse
import mmap
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from brokers.wire.batch import HEADER_BYTES, BatchError, crc_holds, decode_records, parse_header

if TYPE_CHECKING:
    from collections.abc import Iterator

ID_BYTES: Final = 8


class Damaged(Exception):
    """A batch on the disk is not what its producer signed."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m brokers.readback", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="the file to write")
    parser.add_argument("partitions", nargs="+", metavar="PARTITION=FOLDER")
    options = parser.parse_args()
    found = {}
    try:
        for word in options.partitions:
            number, _, folder = word.partition("=")
            ids = b"".join(ids_in(Path(folder)))
            found[number] = np.frombuffer(ids, ">u8").astype(np.uint64)
        np.savez(options.out, **found)  # type: ignore[arg-type] # its stub takes every keyword for an option
    except (Damaged, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def ids_in(folder: Path) -> Iterator[bytes]:
    """The ids in one partition's folder, in the order of its log."""
    for segment in sorted(folder.glob("*.log")):
        with segment.open("rb") as file:
            if segment.stat().st_size:
                with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                    yield from _ids(content, segment)


def _ids(content: mmap.mmap, segment: Path) -> Iterator[bytes]:
    position = 0
    while position < len(content):
        try:
            header = parse_header(content[position : position + HEADER_BYTES])
            batch = content[position : position + header.size]
            if len(batch) != header.size or not crc_holds(batch, header):
                raise BatchError("its bytes are not those that its producer signed")
            for record in decode_records(batch):
                yield (record.value or b"")[:ID_BYTES].ljust(ID_BYTES, b"\xff")
        except BatchError as error:
            raise Damaged(f"{segment} at byte {position}: {error}") from error
        position += header.size


if __name__ == "__main__":
    sys.exit(main())
