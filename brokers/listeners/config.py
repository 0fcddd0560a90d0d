"""Bounds of the Kafka listener. Every one is finite by default, and the same in every architecture."""

from __future__ import annotations

from dataclasses import dataclass, field

from brokers.groups.members import GroupLimits
from brokers.wire.framing import FrameLimits


@dataclass(frozen=True, slots=True)
class ListenerLimits:
    """`large_requests_bytes_max` is what all connections together may take for requests over their usual buffer; beyond
    it each waits for its turn. `turn_ms_max` is how long the one that holds up others then has to become whole.

    `unsent_bytes_max` bounds the answers that wait for a client to read, `waiting_bytes_max` its requests that wait.

    `gather_ms` is how long requests of a client that pipelines gather before they are read (0: never; docs/wire.md).

    `send_buffer_bytes` is a socket's. By itself it grows to megabytes, and what waits in it has left the processor's
    caches before the client reads it: with this bound a client of this machine reads large messages up to half again
    as fast, at half the broker's CPU (`make bench`, 128 KB x 1).
    """

    frames: FrameLimits = field(default_factory=FrameLimits)
    groups: GroupLimits = field(default_factory=GroupLimits)
    connections_max: int = 1000
    connections_per_address_max: int = 1000
    requests_in_flight_max: int = 10_000
    unsent_bytes_max: int = 512 * 1024
    waiting_bytes_max: int = 8 * 1024 * 1024
    large_requests_bytes_max: int = 256 * 1024 * 1024
    turn_ms_max: int = 10_000
    idle_ms_max: int = 600_000
    batch_bytes_max: int = 16 * 1024 * 1024
    fetch_bytes_max: int = 55 * 1024 * 1024
    fetch_records_max: int = 8000
    fetch_wait_ms_max: int = 300_000
    gather_ms: int = 2
    send_buffer_bytes: int = 200 * 1024
