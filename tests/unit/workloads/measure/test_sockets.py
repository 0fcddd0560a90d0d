"""Bytes over TCP as the kernel counts them, of connections that this test makes itself."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import pytest

from workloads.measure import sockets
from workloads.measure.sockets import Traffic, connections, of_process, traffic_between


@pytest.fixture(params=[socket.AF_INET, socket.AF_INET6])
def pair(request: pytest.FixtureRequest) -> Iterator[tuple[socket.socket, socket.socket]]:
    host = "127.0.0.1" if request.param == socket.AF_INET else "::1"
    try:
        server = socket.create_server((host, 0), family=request.param)
    except OSError as error:
        pytest.skip(f"no such addresses here: {error}")
    with server, socket.create_connection(server.getsockname()[:2]) as client:
        accepted, _ = server.accept()
        with accepted:
            yield client, accepted


def own() -> sockets.Connections:
    return of_process(os.getpid(), connections())


def test_what_goes_over_a_connection_is_counted_at_both_ends(pair: tuple[socket.socket, socket.socket]) -> None:
    client, server = pair
    before = own()
    client.sendall(b"x" * 1000)
    received = 0
    while received < 1000:
        received += len(server.recv(1000))
    after = own()
    assert before is not None
    assert after is not None
    inode = os.fstat(server.fileno()).st_ino
    assert after[inode].received - before[inode].received == 1000
    both = traffic_between(before, after)
    assert both is not None
    assert both.received >= 1000


def test_a_connection_that_was_made_in_between_counts_whole_and_one_that_was_closed_not_at_all() -> None:
    before = {1: Traffic(100, 10), 2: Traffic(7, 7)}
    after = {1: Traffic(150, 30), 3: Traffic(5, 6)}
    assert traffic_between(before, after) == Traffic(55, 26)


def test_where_nobody_can_tell_nothing_is_made_up() -> None:
    assert traffic_between(None, {}) is None
    assert traffic_between({}, None) is None
    assert of_process(os.getpid(), None) is None


def test_a_kernel_that_does_not_answer_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "_SOCK_DIAG", 31)  # nobody listens to this protocol
    assert connections() is None


def test_a_process_that_is_gone_is_told() -> None:
    with pytest.raises(ProcessLookupError, match="process 4194304 is gone"):
        of_process(4_194_304, {})
