"""Whether a cluster is up is decided by the lock that its supervisor holds, never by what a file says."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from workloads.playground.playground import CONTROL, AlreadyUp, ClusterState, NotUp, Playground, ProcessState
from workloads.processes.liveness import started_at

STATE = ClusterState(
    architecture="static",
    bootstrap=["127.0.0.1:1", "127.0.0.1:2"],
    grpc=["127.0.0.1:3", "127.0.0.1:4"],
    processes=[
        ProcessState("broker-1", "broker", os.getpid(), started_at(os.getpid()), "running"),
        ProcessState("broker-2", "broker", os.getpid(), 1, "gone", "was ended by SIGKILL"),
    ],
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


def test_another_process_that_has_the_id_by_now_is_not_taken_for_the_one_that_ended(playground: Playground) -> None:
    held = playground.hold()
    stale = replace(STATE.processes[0], started=1)
    playground.write(replace(STATE, processes=[stale]))
    found = playground.status()
    assert found is not None
    assert [process.state for process in found.processes] == ["gone"]
    os.close(held)


def test_the_line_about_a_cluster_names_what_is_wrong_with_it_and_the_command_that_mends_it() -> None:
    paused = replace(STATE.processes[0], state="paused")
    line = replace(STATE, processes=[paused, STATE.processes[1]]).one_line()
    assert "broker-1 is paused: `brokerlab cluster resume 1` lets it go on" in line
    assert "broker-2 was ended by SIGKILL: `brokerlab cluster start 2` starts it" in line


def test_a_verb_where_nothing_is_up_says_so(playground: Playground) -> None:
    with pytest.raises(NotUp, match="cluster up"):
        playground.do("kill", "broker-1")


def test_the_socket_works_however_deep_the_folder_is(tmp_path: Path) -> None:
    deep = Playground(tmp_path / ("x" * 120))
    deep.folder.mkdir(parents=True)
    listening = deep.listen()
    assert (deep.folder / CONTROL).is_socket()
    listening.close()
    deep.listen().close()  # also where a killed supervisor left its own
