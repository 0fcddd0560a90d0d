"""`brokerlab cluster`: it outlives the command, ends whole, and is never mistaken for one that is gone."""

from __future__ import annotations

import json
import os
import select
import signal
from pathlib import Path
from typing import Any

from tests.integration.console.conftest import PATIENCE_S, Shell


def status(shell: Shell) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(shell.run("cluster", "status", "--json").stdout)
    return found


def wait_for_end(pids: list[int]) -> None:
    """Until none of the processes is there; those that are no children of ours end in their own time."""
    for pid in pids:
        try:
            process = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        assert select.select([process], [], [], PATIENCE_S)[0], f"process {pid} lives on"
        os.close(process)


def test_status_names_architecture_addresses_and_processes(shell: Shell) -> None:
    found = status(shell)
    assert found["up"]
    assert found["architecture"] == "static"
    assert len(found["bootstrap"]) == len(found["grpc"]) == 3
    assert [process["name"] for process in found["processes"]] == ["broker-1", "broker-2", "broker-3"]
    assert all(
        process["state"] == "running" and Path(f"/proc/{process['pid']}").exists() for process in found["processes"]
    )
    assert ",".join(found["bootstrap"]) in shell.says("cluster", "status")


def test_up_twice_is_refused_with_what_is_running(shell: Shell) -> None:
    assert status(shell)["bootstrap"][0] in shell.refused("cluster", "up")


def test_down_ends_every_process_and_keeps_data_and_ports(elsewhere: Shell) -> None:
    elsewhere.says("cluster", "up", "--brokers", "1")
    first = status(elsewhere)
    elsewhere.says("topic", "create", "kept")
    elsewhere.says("produce", "kept", stdin="still here\n")
    elsewhere.says("cluster", "down")
    wait_for_end([first["supervisor"], first["processes"][0]["pid"]])
    assert elsewhere.run("cluster", "status").returncode == 1
    elsewhere.says("cluster", "up", "--brokers", "1")
    assert status(elsewhere)["bootstrap"] == first["bootstrap"]
    assert elsewhere.says("consume", "kept", "--from-beginning", "--max-messages", "1") == "still here\n"


def test_brokers_without_zookeeper_that_were_all_stopped_are_one_cluster_again(elsewhere: Shell) -> None:
    elsewhere.says("cluster", "up", "--architecture", "dsbs")
    elsewhere.says("topic", "create", "kept", "--partitions", "3")
    before = elsewhere.says("topic", "describe", "kept")
    elsewhere.says("cluster", "down")
    elsewhere.says("cluster", "up", "--architecture", "dsbs")
    assert elsewhere.says("topic", "describe", "kept") == before
    tables = [json.loads(elsewhere.says("tables", "--broker", number, "--json")) for number in "123"]
    assert all([row["status"] for row in table["brokers"]] == ["alive"] * 3 for table in tables)


def test_a_killed_supervisor_leaves_no_broker_and_no_stale_state(elsewhere: Shell) -> None:
    elsewhere.says("cluster", "up", "--brokers", "2")
    found = status(elsewhere)
    os.kill(found["supervisor"], signal.SIGKILL)
    wait_for_end([found["supervisor"], *(process["pid"] for process in found["processes"])])
    assert status(elsewhere) == {"up": False}
    assert "Say --bootstrap" in elsewhere.refused("topic", "list")
    elsewhere.says("cluster", "up", "--brokers", "2")


def test_a_broker_that_somebody_kills_is_shown_as_ended_and_the_others_go_on(elsewhere: Shell) -> None:
    elsewhere.says("cluster", "up", "--brokers", "2")
    first, second = status(elsewhere)["processes"]
    os.kill(first["pid"], signal.SIGKILL)
    wait_for_end([first["pid"]])
    while (found := status(elsewhere)["processes"])[0]["end"] is None:
        assert found[0]["state"] == "gone"
    assert found == [{**first, "state": "gone", "end": "was ended by SIGKILL"}, second]
    mended = "broker-1 was ended by SIGKILL: `brokerlab cluster start 1` starts it"
    assert mended in elsewhere.says("cluster", "status")
    assert mended in elsewhere.refused("cluster", "up")


def test_the_file_says_which_architectures_there_are(elsewhere: Shell) -> None:
    spec = (
        "version: 1\ncluster: {brokers: 2}\narchitectures: {plain: {coordinator: static}}\n"
        "experiments: {one: {message_size: 8B, batch_size: 1, mode: split}}\n"
        "profiles: {short: {experiments: [one], messages: 1000, tries: 1}}\n"
    )
    (elsewhere.folder / "mine.yaml").write_text(spec)
    assert "allowed: plain" in elsewhere.refused("cluster", "up", "--file", "mine.yaml", "--architecture", "dsbs")
    elsewhere.says("cluster", "up", "--file", "mine.yaml")
    assert status(elsewhere)["architecture"] == "plain"
    assert len(status(elsewhere)["bootstrap"]) == 2


def test_a_system_that_keeps_nothing_is_none_to_play_with(elsewhere: Shell) -> None:
    (elsewhere.folder / "mine.yaml").write_text(
        "version: 1\ncluster: {brokers: 2}\narchitectures: {theirs: {system: kafka-kraft}}\n"
        "experiments: {one: {message_size: 8B, batch_size: 1, mode: split}}\n"
        "profiles: {short: {experiments: [one], messages: 1000, tries: 1}}\n"
    )
    assert "'theirs' is Apache Kafka" in elsewhere.refused("cluster", "up", "--file", "mine.yaml")


def test_a_directory_that_is_not_there_is_refused(elsewhere: Shell) -> None:
    assert "is no directory" in elsewhere.refused("cluster", "up", "--dir", "nowhere")
