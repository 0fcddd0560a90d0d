"""Frames out of a stream of bytes: a receive buffer that the socket fills and requests are read from in place.

A frame is a four-byte size and that many bytes. `writable()` lends the free part of the buffer, `received(n)` says
how much of it was filled and returns where complete frames lie. Those places hold **until the next `writable()`**,
which may move what is left to the front: whoever needs a frame's bytes longer must write or copy them first.

The buffer is small for a quiet client, grows to `receive_bytes` for a busy one, and past that only while one large
request arrives: doubling as its bytes come in (an announced size alone allocates nothing), out of a budget that all
connections share (`budget.py`). Where there is none left the buffer *waits*: it is full, and whoever owns it reads the
socket no further until it may grow. Whether it may is found out in `received`; `writable` never fails, because an event
loop asks for it in the middle of a read. The buffer shrinks after a row of reads that did not need it, for a producer
of large requests sends many, and at once where others wait.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct
from typing import Final

from brokers.wire.apis.table import ApiKey
from brokers.wire.budget import Budget
from brokers.wire.errors import Malformed, MalformedReason

SIZE_BYTES: Final = 4
# API key, version, correlation id, and a null client id.
HEADER_BYTES_MIN: Final = 10
# Frames of one size; fewer are found as fast one by one.
ALIKE_MIN: Final = 4
_FIRST_BUFFER_BYTES: Final = 16 * 1024
_size_at = Struct(">i").unpack_from
_key_at = Struct(">h").unpack_from
_KEY_BYTES: Final = 2
_QUIET_READS_MAX: Final = 64
# By so much a buffer grows at most, so that a large request never holds nearly twice what came of it.
_STEP_BYTES_MAX: Final = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class FrameLimits:
    """`request_bytes_max` bounds every request but Produce, which may be as large as `produce_bytes_max`."""

    produce_bytes_max: int = 100 * 1024 * 1024
    request_bytes_max: int = 1024 * 1024
    receive_bytes: int = 1024 * 1024


class ReceiveBuffer:
    """One connection's. After a `fault` no more frames come, and the connection is to be closed.

    While it `waits` it must not be written to; `on_room` is called when that is over.
    """

    __slots__ = (
        "_borrowed",
        "_budget",
        "_end",
        "_filled",
        "_limits",
        "_on_room",
        "_quiet",
        "_start",
        "alike",
        "data",
        "fault",
        "kept",
        "large",
        "view",
        "waits",
    )

    def __init__(self, limits: FrameLimits, budget: Budget, on_room: Callable[[], None] = lambda: None) -> None:
        self._limits = limits
        self._budget = budget
        self._on_room = on_room
        self._borrowed = 0
        self._start = 0
        self._end = 0
        self._filled = False
        self._quiet = 0
        self.fault: Malformed | None = None
        self.waits = False
        self.large = False  # something was asked of the budget
        self.kept = False  # copies of large requests wait elsewhere: what they took here is not given back yet
        self.alike = 0  # so many of the frames that came last, from the first on, are of one size
        self.data = bytearray(min(_FIRST_BUFFER_BYTES, limits.receive_bytes))
        self.view = memoryview(self.data)

    def writable(self) -> memoryview:
        """Room for the next read; never empty. Frames that `received` returned are void from here on."""
        assert not self.waits
        left, capacity = self._to_front(), len(self.data)
        if self._quiet > _QUIET_READS_MAX and left < self._limits.receive_bytes and not self.kept:
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
        if not at and self._filled and self.fault is None and len(data) >= self._limits.receive_bytes:
            self._ask_for_room()
        return frames

    def _ask_for_room(self) -> None:
        """The buffer is full of one request that is not whole yet: take what it grows by next, or wait for it."""
        needed = SIZE_BYTES + _size_at(self.data, 0)[0] - self._limits.receive_bytes
        if needed > self._budget.bytes_max:
            self.fault = Malformed(MalformedReason.FRAME_BUDGET, f"{needed} bytes are more than all together may take")
            return
        self.large = True
        self.waits = not self._budget.take(self, self._grown() - len(self.data))

    def go_on(self) -> None:
        """The budget has what was waited for."""
        self.waits = False
        self._on_room()

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

    @property
    def has_right_of_way(self) -> bool:
        """Whether others may be waiting for its request to become whole."""
        return self._budget.has_right_of_way(self)

    def settle(self) -> None:
        """To be called when what `received` returned is done with: give back what others wait for."""
        if self._borrowed and (self._budget.crowded or self.has_right_of_way):
            self.give_back()

    def give_back(self) -> None:
        """Give back what large requests needed, unless one is under way."""
        if self._borrowed and not self.kept and self._end - self._start < self._limits.receive_bytes:
            self._to_front()
            self._resize(self._limits.receive_bytes)

    def close(self) -> None:
        """Give back what was borrowed, and the buffer: the connection itself may live until garbage is collected."""
        self._borrowed = 0
        self.waits = False
        self.data = bytearray()
        self.view = memoryview(self.data)
        self._start = self._end = 0
        self.large = False
        self._budget.release(self)

    def _to_front(self) -> int:
        """Move what is left of the last read to the front; how much that is."""
        left = self._end - self._start
        if self._start:
            if left:
                self.view[:left] = self.view[self._start : self._end]
            self._start, self._end = 0, left
        return left

    def _grow(self) -> None:
        self._resize(self._grown())

    def _grown(self) -> int:
        """The capacity that a full buffer has next."""
        capacity, receive_bytes = len(self.data), self._limits.receive_bytes
        if capacity < receive_bytes:
            return min(capacity * 2, receive_bytes)
        return min(capacity * 2, capacity + _STEP_BYTES_MAX, SIZE_BYTES + int(_size_at(self.data, 0)[0]))

    def _resize(self, capacity: int) -> None:
        """Its borrowed bytes were taken before; where it shrinks, all of them are given back."""
        self._borrowed = max(0, capacity - self._limits.receive_bytes)
        self._quiet = 0
        more = capacity - len(self.data)
        if more > 0:
            self.view.release()
            self.data = _extended(self.data, more)
        else:
            self.data = bytearray(self.view[: self._end]) + bytes(capacity - self._end)
        self.view = memoryview(self.data)
        if self.large and not self._borrowed:
            self.large = False
            self._budget.release(self)


def _extended(data: bytearray, more: int) -> bytearray:
    """With so many bytes more; in place if nobody looks at it, because then a large one is never held twice."""
    try:
        data += bytes(more)
    except BufferError:
        return data + bytes(more)
    return data
