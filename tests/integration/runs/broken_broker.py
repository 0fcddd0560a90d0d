"""A broker with a fault put into its store: `python -m tests.integration.runs.broken_broker FAULT CONFIG`.

It acknowledges everything as a sound broker would. `put_in` makes the runner of this process start such brokers.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from crc32c import crc32c

from brokers.__main__ import main
from brokers.log.errors import LogDiskFailed
from brokers.log.files import OsFiles
from brokers.log.log import Log
from brokers.wire.batch import CRC, CRC_AT, CRC_BEGIN, parse_header
from brokers.wire.rows import Row
from workloads.processes import process

MODULE = "tests.integration.runs.broken_broker"
ONE_IN = 10_000
DELAY_S = 0.05

Append = Callable[[Log, Sequence[Any], int], list[Any]]
sound: Append = Log.append


class Drops:
    """One batch in 10,000 is not stored."""

    seen = 0

    def __call__(self, log: Log, batches: Sequence[Any], epoch: int) -> list[Any]:
        results: list[Any] = []
        for batch in batches:
            self.seen += 1
            results += [log.end_offset] if self.seen % ONE_IN == 0 else sound(log, [batch], epoch)
        return results


class Duplicates:
    """One batch in a hundred is stored twice."""

    seen = 0

    def __call__(self, log: Log, batches: Sequence[Any], epoch: int) -> list[Any]:
        results: list[Any] = []
        for batch, header in batches:
            self.seen += 1
            copies = [bytearray(batch) for _ in range(2 if self.seen % 100 == 0 else 1)]
            results.append(sound(log, [(copy, header) for copy in copies], epoch)[0])
        return results


class Reorders:
    """The second batch of each log is stored behind the third."""

    def __init__(self) -> None:
        self.held: dict[Log, Any] = {}
        self.seen: dict[Log, int] = {}

    def __call__(self, log: Log, batches: Sequence[Any], epoch: int) -> list[Any]:
        results: list[Any] = []
        for batch, header in batches:
            self.seen[log] = self.seen.get(log, 0) + 1
            if self.seen[log] == 2:
                self.held[log] = (bytearray(batch), header)
                results.append(log.end_offset)
                continue
            results += sound(log, [(batch, header)], epoch)
            if self.seen[log] == 3:
                sound(log, [self.held.pop(log)], epoch)
        return results


class Corrupts:
    """One batch in a hundred is stored with a byte of its last message changed, and signed again: no CRC tells."""

    seen = 0

    def __call__(self, log: Log, batches: Sequence[Any], epoch: int) -> list[Any]:
        changed: list[Any] = []
        for batch, header in batches:
            self.seen += 1
            copy = bytearray(batch)
            if self.seen % 100 == 0:
                copy[-2] ^= 1  # behind a message there is a byte that counts its headers
                CRC.pack_into(copy, CRC_AT, crc32c(memoryview(copy)[CRC_BEGIN:]))
            changed.append((copy, header))
        return sound(log, changed, epoch)


class Delays:
    """Whatever is appended takes 50 ms more."""

    def __call__(self, log: Log, batches: Sequence[Any], epoch: int) -> list[Any]:
        time.sleep(DELAY_S)
        return sound(log, batches, epoch)


class Refuses:
    """Nothing can be stored, as on a disk that is full."""

    def __call__(self, log: Log, batches: Sequence[Any], epoch: int) -> list[Any]:
        raise LogDiskFailed("No space left on device")


FAULTS: dict[str, Callable[[], Append]] = {
    "drops": Drops, "duplicates": Duplicates, "reorders": Reorders, "corrupts": Corrupts, "delays": Delays,
    "refuses": Refuses,
}  # fmt: skip


COUNTS_SYNCS = "counts-syncs"  # no fault: it says at its end how often it brought data to the disk


def put_in(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    """Let every broker that is started from here be one of this module's."""
    real = process.Process.start.__func__  # type: ignore[attr-defined]

    async def start(cls: Any, name: str, command: Sequence[str], *rest: Any, **options: Any) -> process.Process:
        words = list(command)
        if "brokers" in words:
            at = words.index("brokers")
            words[at : at + 1] = [MODULE, fault]
        found: process.Process = await real(cls, name, words, *rest, **options)
        return found

    monkeypatch.setattr(process.Process, "start", classmethod(start))


def broken(fault: Append) -> int:
    def append(log: Log, batches: Sequence[Any], epoch: int) -> list[Any]:
        return fault(log, batches, epoch)

    def append_row(log: Log, row: Row, epoch: int) -> list[Any]:
        return fault(log, [(batch, parse_header(batch)) for batch in row.batches()], epoch)

    for method in (append, append_row):
        setattr(Log, method.__name__, method)
    return main()


def counting() -> int:
    synced = 0

    def fdatasync(handle: int) -> None:
        nonlocal synced
        synced += 1
        os.fdatasync(handle)

    setattr(OsFiles, "fdatasync", staticmethod(fdatasync))  # noqa: B010 - as above
    code = main()
    print(f"syncs: {synced}", file=sys.stderr)
    return code


if __name__ == "__main__":
    chosen = sys.argv.pop(1)
    sys.exit(counting() if chosen == COUNTS_SYNCS else broken(FAULTS[chosen]()))
