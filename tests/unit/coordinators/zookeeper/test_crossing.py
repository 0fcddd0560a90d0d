from __future__ import annotations

import asyncio
import socket
import struct
from threading import Lock, Thread
from typing import TYPE_CHECKING

import pytest

from coordinators.zookeeper.crossing import Inbox, Wire
from tests.contract.backend import asynchronous, eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


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


class Pair:
    """A wire, and the socket at its other end."""

    def __init__(self) -> None:
        self.near, self.far = socket.socketpair()
        self.wire = Wire(self.near, Lock())


@pytest.fixture
def pair() -> Iterator[Pair]:
    made = Pair()
    yield made
    made.near.close()
    made.far.close()


def test_a_wire_reads_ahead_and_learns_what_timeout_was_granted(pair: Pair) -> None:
    greeting = struct.pack(">iiiq", 37, 0, 4_000, 7)
    pair.far.sendall(greeting)
    assert pair.wire.recv(4) == greeting[:4]
    assert (pair.wire.granted_ms, pair.wire.pending()) == (4_000, len(greeting) - 4)
    assert pair.wire.recv(100) == greeting[4:]
    assert pair.wire.pending() == 0


def test_a_greeting_in_pieces_is_put_together(pair: Pair) -> None:
    read = b""
    for byte in struct.pack(">iii", 37, 0, 4_000):
        pair.far.sendall(bytes([byte]))
        read += pair.wire.recv(100)
    assert (pair.wire.granted_ms, len(read)) == (4_000, 12)


def test_a_wire_that_is_full_waits_until_the_other_end_reads(pair: Pair) -> None:
    pair.near.setblocking(False)
    size = 4_000_000

    def read_all() -> None:
        left = size
        while left:
            left -= len(pair.far.recv(65_536))

    reader = Thread(target=read_all)
    reader.start()
    assert pair.wire.send(bytes(size)) == size
    pair.wire.flush()
    reader.join()
    assert not pair.wire.unsent


def test_a_wire_that_is_given_up_brings_nothing_more(pair: Pair) -> None:
    pair.far.sendall(struct.pack(">iiii", 37, 0, 4_000, 7))
    assert pair.wire.recv(4)
    pair.far.sendall(b"later")
    pair.wire.give_up()
    assert (pair.wire.pending(), pair.wire.read_ahead(), pair.wire.recv(10)) == (0, False, b"")


def test_a_broken_wire_ends_in_nothing_read(pair: Pair) -> None:
    pair.wire.shutdown()
    assert pair.wire.recv(10) == b""
    pair.wire.close()
    pair.wire.shutdown()
