"""Ports: those that are handed out are free, and different."""

from __future__ import annotations

import random
import socket

import pytest

from workloads.processes import ports
from workloads.processes.ports import RANGE, NoFreePort, free_ports


def test_free_ports_are_different_and_nobody_listens_on_them() -> None:
    found = free_ports(7)
    assert len(set(found)) == 7
    assert all(port in RANGE for port in found)
    for port in found:
        with socket.create_server(("127.0.0.1", port)):
            pass


def test_a_port_that_somebody_listens_on_is_not_free() -> None:
    (port,) = free_ports(1)
    with socket.create_server(("127.0.0.1", port)):
        assert not ports._is_free(port)


def test_ports_that_are_to_be_avoided_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random.SystemRandom, "sample", lambda *_: [21_000, 21_001, 21_002])
    monkeypatch.setattr(ports, "_is_free", lambda port: port != 21_001)
    assert free_ports(1, avoid={21_000}) == [21_002]


def test_without_a_free_port_the_error_says_where_was_looked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "_is_free", lambda _: False)
    with pytest.raises(NoFreePort, match="no 3 free ports among 1000 tried between 20000 and 32000"):
        free_ports(3)
