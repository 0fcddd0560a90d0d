"""What is refused before any client is made."""

from __future__ import annotations

from pathlib import Path

import pytest

from workloads.console.connection import Cluster, check_name, chosen
from workloads.errors import UserError


@pytest.mark.parametrize("address", ["", "host", ":9092", "host:", "host:0", "host:65536", "host:x", "host:٣"])
def test_what_is_no_address_is_refused_by_name(address: str) -> None:
    with pytest.raises(UserError, match="--bootstrap must be HOST:PORT"):
        Cluster(["127.0.0.1:9092", address])


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "é", "x" * 250, "a\nb"])
def test_a_name_that_no_cluster_takes_is_refused(name: str) -> None:
    with pytest.raises(UserError, match="cannot be a topic's name"):
        check_name(name)


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "x" * 249])
def test_a_good_name_passes(name: str) -> None:
    check_name(name)


def test_a_named_cluster_is_taken_as_named() -> None:
    assert chosen("a:1,[::1]:2").bootstrap == "a:1,[::1]:2"


def test_without_an_address_and_a_playground_it_says_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="brokerlab cluster up"):
        chosen(None)


def test_a_closed_port_is_told_at_once_and_by_name() -> None:
    with pytest.raises(UserError, match=r"no broker answers at 127\.0\.0\.1:1: Connection refused"):
        Cluster(["127.0.0.1:1"]).metadata()
