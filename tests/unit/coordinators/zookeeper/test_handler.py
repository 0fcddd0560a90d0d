from __future__ import annotations

import asyncio
import socket
import struct
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from coordinators.zookeeper.handler import Inbox, Wire
from tests.contract.backend import asynchronous, eventually

if TYPE_CHECKING:
    from collections.abc import Callable


class Entries:
    """Where an inbox delivers to."""

    def __init__(self) -> None:
        self.seen: list[object] = []

    def tell(self, first: object, second: object) -> None:
        self.seen.append((first, second))


@asynchronous
async def test_what_a_thread_puts_in_arrives_in_order_and_all_of_it() -> None:
    inbox, entries = Inbox(), Entries()
    inbox.open(asyncio.get_running_loop())

    def put_all() -> None:
        for number in range(10_000):
            inbox.put(entries.tell, number, None)

    thread = Thread(target=put_all)
    thread.start()
    await eventually(lambda: len(entries.seen) == 10_000)
    thread.join()
    assert entries.seen == [(number, None) for number in range(10_000)]


class CountingLoop:
    """As much of an event loop as an inbox sees."""

    def __init__(self) -> None:
        self.wakes: list[Callable[[], None]] = []

    def is_closed(self) -> bool:
        return False

    def call_soon_threadsafe(self, work: Callable[[], None]) -> None:
        self.wakes.append(work)


def test_a_burst_wakes_the_loop_once() -> None:
    loop, inbox, entries = CountingLoop(), Inbox(), Entries()
    inbox.open(loop)  # type: ignore[arg-type]
    for number in range(100):
        inbox.put(entries.tell, number, None)
    (drain,) = loop.wakes
    drain()
    assert len(entries.seen) == 100
    inbox.put(entries.tell, 100, None)
    assert len(loop.wakes) == 2


@pytest.mark.parametrize("pieces_bytes", [1, 4, 100])
def test_a_wire_learns_what_timeout_was_granted_and_hands_on_what_came(pieces_bytes: int) -> None:
    near, far = socket.socketpair()
    with far, Wire(near) as wire:
        greeting, read = struct.pack(">iiiq", 37, 0, 4_000, 7), b""
        far.sendall(greeting)
        while len(read) < len(greeting):
            read += wire.recv(pieces_bytes)
        assert (wire.granted_ms, read) == (4_000, greeting)


def test_a_wire_that_has_heard_nothing_was_granted_nothing() -> None:
    near, far = socket.socketpair()
    with far, Wire(near) as wire:
        far.sendall(bytes(4))
        wire.recv(4)
        assert wire.granted_ms == 0
