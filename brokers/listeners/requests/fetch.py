"""Fetch: read at once, or wait until enough has been appended or the client's patience ends."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from brokers.listeners.service import epoch_fault
from brokers.log.errors import LogError, LogOffsetOutOfRange
from brokers.log.file_range import Stretch
from brokers.wire.apis import fetch as wire
from brokers.wire.apis.fetch import FetchRequest, Found
from brokers.wire.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from brokers.listeners.service import Service
    from brokers.replication.replica import Leadership, Replica
    from brokers.wire.apis.fetch import Records

_LOOK_AGAIN_S: Final = 0.005
# Bytes in one answer. More stay in their files until they are sent: below, one copy is cheaper than more system calls.
READ_BYTES_MAX: Final = 512 * 1024
# The same for a client that has not read yet what it was sent: a copy would only lie in memory.
READ_BEHIND_BYTES_MAX: Final = 16 * 1024
# Places in files that one answer may come from, each of them a handle.
_LENT_MAX: Final = 64


def session_fault(request: FetchRequest) -> ErrorCode:
    """No fetch sessions are kept: no id is ever given out, and one that was not is refused (KIP-227)."""
    if request.session_id != 0:
        return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    return ErrorCode.INVALID_FETCH_SESSION_EPOCH if request.session_epoch > 0 else ErrorCode.NONE


class Reading:
    """One request: reads what there is, and knows whether that is enough. `leaders` are of this moment."""

    __slots__ = ("_bytes", "_messages", "_read_bytes_max", "_service", "_sources", "_tenure", "found", "request")

    def __init__(
        self,
        service: Service,
        request: FetchRequest,
        leaders: Sequence[Leadership | ErrorCode],
        *,
        read_bytes_max: int = READ_BYTES_MAX,
    ) -> None:
        self._service = service
        self._read_bytes_max = read_bytes_max
        self.request = request
        self._tenure = service.coordinator.standing.tenure
        sources: dict[tuple[str, int], Leadership | ErrorCode] = {}
        self._sources = [
            # Reading one partition over and over would keep all others waiting; no client asks for that.
            ErrorCode.INVALID_REQUEST
            if (part.topic, part.partition) in sources
            else sources.setdefault(part[:2], _source(leader, part.leader_epoch))
            for part, leader in zip(request.parts, leaders, strict=True)
        ]
        self.found: list[Found] = []
        self._bytes = self._messages = 0

    def read_again(self) -> bool:
        """The same as `read` after a while, in which the partitions may have passed to others."""
        leads_still = self._service.leads_still
        self._sources = [
            source if isinstance(source, ErrorCode) else leads_still(source, self._tenure) or source
            for source in self._sources
        ]
        return self.read()

    def read(self) -> bool:
        """Fill `found`; whether it is to be sent now: an error, enough bytes, or nobody would ever add to it."""
        request, limits = self.request, self._service.limits
        left = max(0, min(request.bytes_max, limits.fetch_bytes_max))
        to_read, lent = self._read_bytes_max, 0
        found, total, messages, failed = [], 0, 0, False
        for part, source in zip(request.parts, self._sources, strict=True):
            if isinstance(source, ErrorCode):
                result = Found(source)
            else:
                bytes_max = max(0, min(part.bytes_max, left)) if lent < _LENT_MAX else 0
                result = _read(
                    source.replica, part.offset, bytes_max, limits.fetch_records_max, to_read, first=total == 0
                )
                if len(result.records):
                    messages += source.replica.log.reader.read_end - part.offset
                    if isinstance(result.records, Stretch):
                        lent += 1
                    else:
                        to_read -= len(result.records)
            found.append(result)
            failed = failed or result.error != ErrorCode.NONE
            total += len(result.records)
            left -= len(result.records)
        self.found, self._bytes, self._messages = found, total, messages
        return failed or total >= request.bytes_min or not found

    @property
    def lent(self) -> bool:
        """Whether any of it is still in its file."""
        return any(isinstance(found.records, Stretch) for found in self.found)

    def answer(self) -> list[Records]:
        fetched = self._service.metrics.fetch
        fetched.requests += bool(self._messages)
        fetched.messages += self._messages
        fetched.bytes += self._bytes
        return wire.answer(self.request, self.found)

    def replicas(self) -> list[Replica]:
        return [source.replica for source in self._sources if not isinstance(source, ErrorCode)]


def _source(leader: Leadership | ErrorCode, epoch: int) -> Leadership | ErrorCode:
    return leader if isinstance(leader, ErrorCode) else epoch_fault(leader, epoch) or leader


def _read(
    replica: Replica, offset: int, bytes_max: int, records_max: int, read_bytes_max: int, *, first: bool
) -> Found:
    """Whole batches from `offset`; only the first partition with any may exceed its bound, so that nobody starves."""
    start, end = replica.start_offset, replica.readable_end
    if offset == end or (bytes_max == 0 and not first and start <= offset < end):
        return Found(ErrorCode.NONE, end, start)
    try:
        records = replica.lend(offset, bytes_max, records_max, read_bytes_max)
    except LogOffsetOutOfRange:
        return Found(ErrorCode.OFFSET_OUT_OF_RANGE, end, start)
    except LogError:
        return Found(ErrorCode.KAFKA_STORAGE_ERROR, end, start)
    if len(records) > bytes_max and not first:
        records = b""
    return Found(ErrorCode.NONE, end, start, records)


class Wait:
    """A fetch that waits. It answers once, through `done`: after an append that suffices, or when time is up.

    A wake-up only schedules the reading, so that all appends of one turn of the event loop are read together; a client
    that wants more than the next byte is looked after less often, because each look reads everything again.
    """

    __slots__ = ("_done", "_reading", "_replicas", "_scheduled", "_timer")

    def __init__(self, reading: Reading, wait_ms: int, done: Callable[[Reading], None]) -> None:
        self._reading = reading
        self._done = done
        self._replicas = reading.replicas()
        self._scheduled: asyncio.Handle | None = None
        self._timer = asyncio.get_running_loop().call_later(wait_ms / 1000, self.expire)
        for replica in self._replicas:
            replica.waiters.add(self._wake)

    def expire(self) -> None:
        """Answer now with what there is."""
        self._reading.read_again()
        self._end()

    def cancel(self) -> None:
        """Nobody wants the answer any more."""
        self._timer.cancel()
        if self._scheduled is not None:
            self._scheduled.cancel()
        for replica in self._replicas:
            replica.waiters.discard(self._wake)

    def _wake(self) -> None:
        if self._scheduled is None:
            loop = asyncio.get_running_loop()
            if self._reading.request.bytes_min <= 1:
                self._scheduled = loop.call_soon(self._look)
            else:
                self._scheduled = loop.call_later(_LOOK_AGAIN_S, self._look)

    def _look(self) -> None:
        self._scheduled = None
        if self._reading.read_again():
            self._end()

    def _end(self) -> None:
        self.cancel()
        self._done(self._reading)
