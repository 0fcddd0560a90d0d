"""Whether a cluster is up is decided by the lock that its supervisor holds, never by what a file says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from workloads.playground import AlreadyUp, ClusterState, NotUp, Playground, ProcessState

STATE = ClusterState(
    architecture="static",
    bootstrap=["127.0.0.1:1", "127.0.0.1:2"],
    grpc=["127.0.0.1:3", "127.0.0.1:4"],
    processes=[ProcessState("broker-1", "broker", 11, running=True), ProcessState("broker-2", "broker", 12, False)],
    supervisor=10,
    data="data",
    logs="logs",
)


@pytest.fixture
def playground(tmp_path: Path) -> Playground:
    found = Playground(tmp_path)
    found.folder.mkdir()
    return found


def test_where_nothing_was_started_nothing_is_up(tmp_path: Path) -> None:
    assert Playground(tmp_path).status() is None


def test_what_a_living_supervisor_wrote_is_the_status(playground: Playground) -> None:
    held = playground.hold()
    playground.write(STATE)
    assert playground.status() == STATE
    os.close(held)


def test_what_a_dead_supervisor_left_is_no_status_and_is_cleared_away(playground: Playground) -> None:
    os.close(playground.hold())
    playground.write(STATE)
    assert playground.status() is None
    assert sorted(path.name for path in playground.folder.iterdir()) == ["lock"]


def test_there_is_one_supervisor_at_a_time(playground: Playground) -> None:
    held = playground.hold()
    with pytest.raises(AlreadyUp):
        playground.hold()
    os.close(held)


def test_down_where_nothing_is_up_says_so(playground: Playground) -> None:
    with pytest.raises(NotUp):
        playground.down()


def test_clusters_of_other_kinds_keep_their_data_apart(playground: Playground) -> None:
    folders = {playground.data("static", 3), playground.data("static", 5), playground.data("dsbs", 3)}
    assert len(folders) == 3
