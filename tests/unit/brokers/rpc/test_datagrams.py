"""A frame goes as a datagram where the peer has shown that datagrams reach it, and nowhere else."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from brokers.rpc.datagrams import ANSWERED_WITHIN_S, CONTENT_BYTES_MAX, Address, Datagrams
from tests.contract.backend import WITHIN_S, asynchronous, eventually

HOST = "127.0.0.1"


def free_address() -> Address:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as holder:
        holder.bind((HOST, 0))
        host, port = holder.getsockname()
    return host, port


class End:
    def __init__(self) -> None:
        self.address = free_address()
        self.now_s = 0.0
        self.frames: asyncio.Queue[bytes] = asyncio.Queue()
        self.datagrams = Datagrams(self.frames.put_nowait, lambda: self.now_s)


def datagrams_read(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What all ends read, from now on."""
    read: list[bytes] = []
    take = Datagrams._take

    def noted(self: Datagrams, datagram: bytes, sender: Address) -> None:
        read.append(datagram)
        take(self, datagram, sender)

    monkeypatch.setattr(Datagrams, "_take", noted)
    return read


@asynccontextmanager
async def two() -> AsyncIterator[tuple[End, End]]:
    one, other = End(), End()
    for end in (one, other):
        end.datagrams.open(end.address)
    try:
        yield one, other
    finally:
        for end in (one, other):
            end.datagrams.close()


async def met(one: End, other: End) -> None:
    """Return when datagrams are known to reach the other."""
    await eventually(lambda: one.datagrams.send(other.address, b"first"))
    assert await asyncio.wait_for(other.frames.get(), WITHIN_S) == b"first"


@asynchronous
async def test_the_first_frame_takes_the_other_way_and_those_after_an_answer_are_datagrams() -> None:
    async with two() as (one, other):
        assert not one.datagrams.send(other.address, b"unheard")
        await met(one, other)
        assert other.frames.empty(), "what took the other way does not come twice"
        assert one.datagrams.send(other.address, b"second")
        assert await asyncio.wait_for(other.frames.get(), WITHIN_S) == b"second"


@asynchronous
async def test_a_peer_that_answers_no_more_is_reached_the_other_way_until_it_answers_again() -> None:
    async with two() as (one, other):
        await met(one, other)
        await met(other, one)
        other.datagrams.close()
        assert one.datagrams.send(other.address, b"lost, as frames may be")
        one.now_s += ANSWERED_WITHIN_S
        assert not one.datagrams.send(other.address, b"takes the other way")
        other.datagrams.open(other.address)
        await met(one, other)


@asynchronous
async def test_a_frame_that_is_too_large_and_a_peer_with_a_name_take_the_other_way() -> None:
    async with two() as (one, other):
        await met(one, other)
        assert not one.datagrams.send(other.address, bytes(CONTENT_BYTES_MAX + 1))
        assert one.datagrams.send(other.address, bytes(CONTENT_BYTES_MAX))
        assert not one.datagrams.send(("localhost", other.address[1]), b"who is that")


@asynchronous
async def test_where_the_port_is_taken_nothing_is_a_datagram() -> None:
    async with two() as (one, other):
        third = End()
        third.datagrams.open(one.address)
        assert not third.datagrams.send(other.address, b"x")
        third.datagrams.close()
        assert other.frames.empty()


@asynchronous
async def test_peers_that_speak_with_each_other_answer_by_their_frames_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    async with two() as (one, other):
        await met(one, other)
        await met(other, one)
        await eventually(lambda: not one.datagrams._unanswered)
        read = datagrams_read(monkeypatch)
        for number in range(10):
            for here, there in ((one, other), (other, one)):
                here.now_s += ANSWERED_WITHIN_S / 4
                assert here.datagrams.send(there.address, b"%d" % number)
                assert await asyncio.wait_for(there.frames.get(), WITHIN_S) == b"%d" % number
        assert len(read) == 20
