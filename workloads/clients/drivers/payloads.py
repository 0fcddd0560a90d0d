"""Payloads of messages: made by producers, looked at by consumers.

A payload's first eight bytes are the message's id, its producer and its counter. The rest repeats one byte.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from workloads.clients.drivers.api import COUNTER_BITS, ID_BYTES, NO_ID

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workloads.clients.drivers.api import ProduceJob

_ID: Final = struct.Struct(">Q")
_FILLER: Final = 0xA5
# numpy makes small payloads three times as fast as `struct` (20 and 65 ns at 32 bytes), and large ones slower.
_BLOCK_PAYLOAD_BYTES_MAX: Final = 256
# Payloads are made before a window up to this much memory; beyond, they are large, and making one costs little beside
# sending it.
READY_BYTES_MAX: Final = 512 * 1024 * 1024
_OBJECT_BYTES: Final = 41  # what Python needs beside the payload
_MADE_TOGETHER: Final = 4096
_MADE_TOGETHER_BYTES_MAX: Final = 16 * 1024 * 1024


def payloads(job: ProduceJob, first_counter: int, count: int) -> list[bytes]:
    """The payloads of consecutive messages, each unique."""
    first, size = (job.producer << COUNTER_BITS) + first_counter, job.message_size
    if size > _BLOCK_PAYLOAD_BYTES_MAX:
        filler = _filler(size)
        return [_ID.pack(number) + filler for number in range(first, first + count)]
    block = np.full((count, size), _FILLER, np.uint8)
    ids = np.arange(first, first + count, dtype=np.uint64).astype(">u8")
    block[:, :ID_BYTES] = ids.view(np.uint8).reshape(count, ID_BYTES)
    made: list[bytes] = block.view(f"V{size}").ravel().tolist()
    return made


class Stock:
    """The payloads of a producer in their order: those that were made beforehand, then others as they are needed."""

    def __init__(self, job: ProduceJob) -> None:
        self._job = job
        self._ready: list[bytes] = []
        self._at = 0  # of the next one, among those that are ready
        self._made = 0

    def prepare(self, messages: int) -> None:
        """Have so many ready, or as many as the memory allows."""
        del self._ready[: self._at]
        self._at = 0
        wanted = min(messages, READY_BYTES_MAX // (self._job.message_size + _OBJECT_BYTES))
        while (missing := wanted - len(self._ready)) > 0:
            self._make(missing)

    def take(self, messages: int) -> list[bytes]:
        """The next ones."""
        end = self._at + messages
        if end > len(self._ready):
            del self._ready[: self._at]
            self._at, end = 0, messages
            while len(self._ready) < messages:
                self._make(_MADE_TOGETHER)
        taken = self._ready[self._at : end]
        self._at = end
        return taken

    def _make(self, messages: int) -> None:
        count = min(messages, max(1, min(_MADE_TOGETHER, _MADE_TOGETHER_BYTES_MAX // self._job.message_size)))
        self._ready += payloads(self._job, self._made, count)
        self._made += count


def payload_is_right(payload: bytes, message_size: int) -> bool:
    """Whether the part behind the id is what a producer puts there."""
    return len(payload) == message_size and payload.endswith(_filler(message_size))


def look_through(values: Sequence[bytes], message_size: int) -> tuple[bytes, int]:
    """The ids of messages, one behind the other, and how many payloads nobody sent."""
    if message_size > _BLOCK_PAYLOAD_BYTES_MAX or set(map(len, values)) != {message_size}:
        ids = b"".join([value[:ID_BYTES].ljust(ID_BYTES, NO_ID) for value in values])
        return ids, sum(not payload_is_right(value, message_size) for value in values)
    block = np.frombuffer(b"".join(values), np.uint8).reshape(-1, message_size)
    wrong = np.any(block[:, ID_BYTES:] != _FILLER, axis=1)
    return block[:, :ID_BYTES].tobytes(), int(np.count_nonzero(wrong))


@lru_cache(maxsize=1)  # a process sends or reads one size at a time, and large ones take long to make
def _filler(message_size: int) -> bytes:
    return bytes([_FILLER]) * (message_size - ID_BYTES)
