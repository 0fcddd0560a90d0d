"""Batches that are sent from their file."""

import errno
import os
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from brokers.log.errors import LogDiskFailed
from brokers.log.file_range import Stretch
from brokers.log.log import Log
from tests.unit.brokers.log.batches import SMALL, batch, opened
from tests.unit.brokers.log.faulty_files import FaultyFiles

ALL = 100_000


@pytest.fixture
def sockets() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        yield ours, theirs


def filled(directory: Path, files: FaultyFiles) -> Log:
    log = opened(directory, replace(SMALL, segment_bytes=ALL), files)
    log.append([batch(bytes([number]) * 1000) for number in range(20)], 0)
    return log


def lent(log: Log, bytes_max: int = ALL) -> Stretch:
    found = log.reader.lend(0, bytes_max, None, read_bytes_max=0)
    assert isinstance(found, Stretch)
    return found


def test_what_is_lent_arrives_as_it_would_be_read(tmp_path: Path, sockets: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = sockets
    log = filled(tmp_path, FaultyFiles())
    stretch, arrived = lent(log), b""
    while len(arrived) < len(stretch):
        sent = stretch.send(ours.fileno(), len(arrived), 700)
        assert sent <= 700
        arrived += theirs.recv(sent, socket.MSG_WAITALL)
    assert arrived == log.reader.read(0, ALL)


def test_a_full_socket_is_no_error_of_the_disk(tmp_path: Path, sockets: tuple[socket.socket, socket.socket]) -> None:
    files = FaultyFiles()
    stretch = lent(filled(tmp_path, files))
    files.fail("send", error=errno.EAGAIN)
    with pytest.raises(BlockingIOError):
        stretch.send(sockets[0].fileno(), 0, ALL)


def test_little_is_read_instead_and_at_the_end_there_is_nothing(tmp_path: Path) -> None:
    log = filled(tmp_path, FaultyFiles())
    whole = log.reader.read(0, ALL)
    assert log.reader.lend(0, ALL, None, len(whole)) == whole
    assert isinstance(log.reader.lend(0, ALL, None, len(whole) - 1), Stretch)
    assert log.reader.lend(log.end_offset, ALL, None, 0) == b""


def test_a_cut_ends_what_is_lent_even_if_the_log_has_grown_again(
    tmp_path: Path, sockets: tuple[socket.socket, socket.socket]
) -> None:
    log = filled(tmp_path, FaultyFiles())
    stretch = lent(log)
    log.truncate_to(10)
    log.append([batch(b"other" * 300) for _ in range(20)], 1)
    with pytest.raises(LogDiskFailed):
        stretch.send(sockets[0].fileno(), 0, ALL)


def test_all_that_is_lent_of_a_file_shares_a_handle_which_goes_with_the_last(tmp_path: Path) -> None:
    """A handle each would be as many as there are clients that do not read."""
    files = FaultyFiles()
    log = filled(tmp_path, files)
    stretch = lent(log)
    handle = stretch._handle.number
    files.fail("duplicate")
    other = lent(log)
    del stretch
    os.fstat(handle)
    del other
    with pytest.raises(LogDiskFailed):
        lent(log)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(handle)
