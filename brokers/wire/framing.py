"""Frames out of a stream of bytes: a receive buffer that the socket fills and requests are read from in place.

A frame is a four-byte size and that many bytes. `writable()` lends the free part of the buffer, `received(n)` says
how much of it was filled and returns where complete frames lie. Those places hold **until the next `writable()`**,
which may move what is left to the front: whoever needs a frame's bytes longer must write or copy them first.

The buffer is small for a quiet client, grows to `receive_bytes` for a busy one, and past that only while one large
request arrives: doubling as its bytes come in (an announced size alone allocates nothing), out of a budget that all
connections share. It shrinks after a row of reads that did not need it: a producer of large requests sends many.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import Final

from brokers.wire.apis import ApiKey
from brokers.wire.errors import Malformed, MalformedReason

SIZE_BYTES: Final = 4
# API key, version, correlation id, and a null client id.
HEADER_BYTES_MIN: Final = 10
# Of one size; fewer are found as fast one by one.
ALIKE_MIN: Final = 4
_FIRST_BUFFER_BYTES: Final = 16 * 1024
_size_at = Struct(">i").unpack_from
_key_at = Struct(">h").unpack_from
_KEY_BYTES: Final = 2
_QUIET_READS_MAX: Final = 64


@dataclass(frozen=True, slots=True)
class FrameLimits:
    """`request_bytes_max` bounds every request but Produce, which may be as large as `produce_bytes_max`."""

    produce_bytes_max: int = 100 * 1024 * 1024
    request_bytes_max: int = 1024 * 1024
    receive_bytes: int = 1024 * 1024


@dataclass(slots=True)
class Budget:
    """Bytes that all connections together may still take for requests larger than their usual buffer."""

    bytes_left: int


class ReceiveBuffer:
    """One connection's. After a `fault` no more frames come, and the connection is to be closed."""

    __slots__ = (
        "_borrowed",
        "_budget",
        "_end",
        "_filled",
        "_limits",
        "_quiet",
        "_start",
        "alike",
        "data",
        "fault",
        "view",
    )

    def __init__(self, limits: FrameLimits, budget: Budget) -> None:
        self._limits = limits
        self._budget = budget
        self._borrowed = 0
        self._start = 0
        self._end = 0
        self._filled = False
        self._quiet = 0
        self.fault: Malformed | None = None
        self.alike = 0  # so many of the frames that came last, from the first on, are of one size
        self.data = bytearray(min(_FIRST_BUFFER_BYTES, limits.receive_bytes))
        self.view = memoryview(self.data)

    def writable(self) -> memoryview:
        """Room for the next read; never empty. What was returned by `received` is void from here on."""
        left = self._end - self._start
        if self._start:
            if left:
                self.view[:left] = self.view[self._start : self._end]
            self._start, self._end = 0, left
        capacity = len(self.data)
        if self._quiet > _QUIET_READS_MAX and left < self._limits.receive_bytes:
            self._resize(self._limits.receive_bytes)
        elif left == capacity or (self._filled and capacity < self._limits.receive_bytes):
            self._grow()
        return self.view[self._end :]

    def received(self, count: int) -> list[tuple[int, int]]:
        """Take `count` new bytes into account; where the bodies of complete frames begin and end."""
        self.alike = 0
        if self.fault is not None:
            return []
        at, end = self._start, self._end + count
        self._end = end
        self._filled = end == len(self.data)
        if self._borrowed:
            self._quiet = 0 if end > self._limits.receive_bytes else self._quiet + 1
        data, request_bytes_max = self.data, self._limits.request_bytes_max
        frames = self._of_one_size(at, end)
        if frames:
            self.alike, at = len(frames), frames[-1][1]
        last = end - SIZE_BYTES
        while at <= last:
            size = _size_at(data, at)[0]
            body = at + SIZE_BYTES
            at = body + size
            if not HEADER_BYTES_MIN <= size <= request_bytes_max and self._impossible(size, body):
                self.fault = Malformed(MalformedReason.FRAME_SIZE, f"{size} bytes")
            if at > end or self.fault is not None:
                at = body - SIZE_BYTES
                break
            frames.append((body, at))
        self._start = at
        return frames

    def _of_one_size(self, at: int, end: int) -> list[tuple[int, int]]:
        """The first frames, as far as they are as long as each other, which those of small messages are: found in one
        go. None where there are few, or where each has to be looked at."""
        if end - at < ALIKE_MIN * (SIZE_BYTES + HEADER_BYTES_MIN):
            return []
        size = _size_at(self.data, at)[0]
        stride = SIZE_BYTES + size
        end -= (end - at) % stride if stride > 0 else 0
        if not HEADER_BYTES_MIN <= size <= self._limits.request_bytes_max or end - at < ALIKE_MIN * stride:
            return []
        # Byte by byte of the size: how many frames from the first on have the same there.
        columns = [self.data[byte:end:stride] for byte in range(at, at + SIZE_BYTES)]
        count = min([len(column) - len(column.lstrip(column[:1])) for column in columns])
        end = at + count * stride
        return list(zip(range(at + SIZE_BYTES, end, stride), range(at + stride, end + 1, stride), strict=True))

    def _impossible(self, size: int, body: int) -> bool:
        """Whether a size is out of bounds. Only Produce may be larger than the others, once its key can be seen."""
        if not HEADER_BYTES_MIN <= size <= self._limits.produce_bytes_max:
            return True
        return self._end - body >= _KEY_BYTES and _key_at(self.data, body)[0] != ApiKey.PRODUCE

    def rest(self) -> None:
        """Give back what large requests needed, where none is under way: the client has been quiet."""
        if self._borrowed and self._start == self._end:
            self._start = self._end = 0
            self._resize(self._limits.receive_bytes)

    def close(self) -> None:
        """Give back what was borrowed, and the buffer: the connection itself may live until garbage is collected."""
        self._budget.bytes_left += self._borrowed
        self._borrowed = 0
        self.data = bytearray()
        self.view = memoryview(self.data)

    def _grow(self) -> None:
        capacity = len(self.data)
        wanted = capacity * 2
        if capacity >= self._limits.receive_bytes:
            wanted = min(wanted, SIZE_BYTES + int(_size_at(self.data, 0)[0]))
        self._resize(wanted)

    def _resize(self, capacity: int) -> None:
        borrowed = max(0, capacity - self._limits.receive_bytes)
        if borrowed - self._borrowed > self._budget.bytes_left:
            raise Malformed(MalformedReason.FRAME_BUDGET, f"{capacity} bytes are more than all connections may hold")
        self._budget.bytes_left -= borrowed - self._borrowed
        self._borrowed = borrowed
        self._quiet = 0
        more = capacity - len(self.data)
        if more > 0:
            self.view.release()
            self.data = _extended(self.data, more)
        else:
            self.data = bytearray(self.view[: self._end]) + bytes(capacity - self._end)
        self.view = memoryview(self.data)


def _extended(data: bytearray, more: int) -> bytearray:
    """With so many bytes more; in place if nobody looks at it, because then a large one is never held twice."""
    try:
        data += bytes(more)
    except BufferError:
        return data + bytes(more)
    return data
