"""`brokerlab cluster start|stop|kill|pause|resume` on real processes: each has come about when the command returns."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from tests.integration.console.conftest import PATIENCE_S, Shell
from tests.integration.console.test_playground import status, wait_for_end
from workloads.commands import cluster
from workloads.playground.playground import CONTROL, FOLDER
from workloads.processes.liveness import Liveness, liveness_of

VERBS = ("start", "stop", "kill", "pause", "resume")


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """Three brokers, which all run when a test begins and when it ends."""
    shell = Shell(tmp_path_factory.mktemp("verbs"))
    shell.says("cluster", "up", "--architecture", "static", "--brokers", "3")
    yield shell
    shell.says("cluster", "down")


def process(shell: Shell, name: str) -> tuple[int, int, str]:
    """Its id, when it started, and how it is."""
    found = next(each for each in status(shell)["processes"] if each["name"] == name)
    return found["pid"], found["started"], found["state"]


def test_a_killed_broker_is_started_again_with_its_ports_and_data(three: Shell) -> None:
    three.says("topic", "create", "kept", "--partitions", "3")
    three.says("produce", "kept", stdin="one\ntwo\nthree\n")
    before, (pid, started, _) = status(three), process(three, "broker-2")
    assert three.says("cluster", "kill", "2") == f"broker-2 was ended by SIGKILL (process {pid})\n"
    assert liveness_of(pid, started) is Liveness.GONE
    assert process(three, "broker-2") == (pid, started, "gone")
    assert "`brokerlab cluster start 2` starts it" in three.says("cluster", "status")
    assert "serves again" in three.says("cluster", "start", "2")
    assert process(three, "broker-2")[2] == "running"
    assert status(three)["bootstrap"] == before["bootstrap"]
    read = three.says("consume", "kept", "--from-beginning", "--max-messages", "3")
    assert sorted(read.split()) == ["one", "three", "two"]


def test_a_stopped_broker_ends_in_order(three: Shell) -> None:
    pid, *_ = process(three, "broker-3")
    assert three.says("cluster", "stop", "broker-3") == f"broker-3 ended with 0 (process {pid})\n"
    three.says("cluster", "start", "3")


def test_a_paused_broker_stands_still_until_it_is_resumed(three: Shell) -> None:
    pid, started, _ = process(three, "broker-1")
    assert three.says("cluster", "pause", "1") == f"broker-1 stands still (process {pid})\n"
    assert liveness_of(pid, started) is Liveness.PAUSED
    assert "broker-1 is paused: `brokerlab cluster resume 1` lets it go on" in three.says("cluster", "status")
    assert "broker-1 is paused" in three.refused("cluster", "up")
    assert three.says("cluster", "resume", "1") == f"broker-1 goes on (process {pid})\n"
    assert process(three, "broker-1") == (pid, started, "running")


@pytest.mark.parametrize(
    ("state", "wrong"), [("running", ("start", "resume")), ("paused", ("start", "stop", "pause")),
                         ("gone", ("stop", "kill", "pause", "resume"))],
)  # fmt: skip
def test_a_verb_on_a_broker_in_the_wrong_state_says_how_it_is(three: Shell, state: str, wrong: list[str]) -> None:
    three.says(
        *{"running": ("cluster", "status"), "paused": ("cluster", "pause", "2"), "gone": ("cluster", "kill", "2")}[
            state
        ]
    )
    said = {"running": "broker-2 is running", "paused": "broker-2 is paused", "gone": "was ended by SIGKILL"}[state]
    for verb in wrong:
        assert said in three.refused("cluster", verb, "2")
    if state == "paused":
        three.says("cluster", "kill", "2")
    if state != "running":
        three.says("cluster", "start", "2")


@pytest.mark.parametrize("verb", VERBS)
def test_what_the_cluster_has_not_is_refused_with_what_it_has(three: Shell, verb: str) -> None:
    for name in ("4", "zookeeper", "nonsense"):
        assert "it has broker-1, broker-2, broker-3" in three.refused("cluster", verb, name)


@pytest.mark.parametrize("verb", VERBS)
def test_where_nothing_is_up_a_verb_says_so(elsewhere: Shell, verb: str) -> None:
    assert "no cluster is up" in elsewhere.refused("cluster", verb, "1")


def test_a_broker_that_cannot_start_says_why_and_starts_when_that_is_mended(three: Shell) -> None:
    three.says("cluster", "kill", "2")
    owner = Path(status(three)["data"]) / "broker-2" / "broker.json"
    content = owner.read_text()
    owner.write_text('{"broker": 9}')
    failed = three.run("cluster", "start", "2")
    assert failed.returncode == 2
    assert "holds the data of broker 9" in failed.stderr
    assert process(three, "broker-2")[2] == "gone"
    owner.write_text(content)
    three.says("cluster", "start", "2")


def test_down_ends_a_cluster_whose_brokers_are_paused_or_gone_and_whose_supervisor_stands_still(
    elsewhere: Shell,
) -> None:
    elsewhere.says("cluster", "up", "--architecture", "static", "--brokers", "3")
    elsewhere.says("cluster", "pause", "1")
    elsewhere.says("cluster", "kill", "2")
    found = status(elsewhere)
    os.kill(found["supervisor"], signal.SIGSTOP)
    elsewhere.says("cluster", "down")
    wait_for_end([found["supervisor"], *(each["pid"] for each in found["processes"])])
    assert status(elsewhere) == {"up": False}


def test_what_is_to_be_started_while_the_cluster_is_ended_is_not_and_nothing_is_left_behind(
    elsewhere: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere.says("cluster", "up", "--architecture", "static", "--brokers", "2")
    elsewhere.says("cluster", "kill", "2")
    found = status(elsewhere)
    folder = elsewhere.folder / FOLDER
    os.kill(found["supervisor"], signal.SIGSTOP)  # so that it hears of both at once
    with socket.socket(socket.AF_UNIX) as asking:
        with monkeypatch.context() as inside:
            inside.chdir(folder)  # an address may have 108 bytes
            asking.connect(CONTROL)
        asking.sendall(b'{"verb": "start", "name": "broker-2"}\n')
        elsewhere.says("cluster", "down")
        with asking.makefile() as answers:
            assert "the cluster is being ended" in answers.readline()
    wait_for_end([found["supervisor"], *(each["pid"] for each in found["processes"])])
    assert {path.name for path in folder.iterdir()} == {".gitignore", "lock", "logs", "static-2"}


@pytest.mark.java
def test_zookeeper_can_be_killed_and_started_and_the_brokers_serve_again(elsewhere: Shell) -> None:
    elsewhere.says("cluster", "up", "--architecture", "zookeeper", "--brokers", "2")
    elsewhere.says("topic", "create", "kept")
    elsewhere.says("cluster", "pause", "zookeeper")
    elsewhere.says("cluster", "resume", "zookeeper")
    elsewhere.says("cluster", "kill", "zookeeper")
    assert "zookeeper was ended by SIGKILL: `brokerlab cluster start zookeeper` starts it" in elsewhere.says(
        "cluster", "status"
    )
    elsewhere.says("cluster", "start", "zookeeper")
    client = Producer({"bootstrap.servers": ",".join(status(elsewhere)["bootstrap"])})
    client.produce("kept", b"after it came back")
    assert client.flush(PATIENCE_S) == 0
    assert elsewhere.says("consume", "kept", "--from-beginning", "--max-messages", "1") == "after it came back\n"


def test_the_example_of_help_is_a_cluster_on_which_a_client_makes_writes_and_reads_a_topic(elsewhere: Shell) -> None:
    shown = elsewhere.says("cluster", "--help")
    example = next(line.split() for line in shown.splitlines() if line.strip().startswith("brokerlab cluster up"))
    elsewhere.says(*example[1:])
    brokers = status(elsewhere)["bootstrap"]
    assert len(brokers) == 3
    for number, address in enumerate(brokers):
        topic = f"through-{number}"
        admin = AdminClient({"bootstrap.servers": address})
        admin.create_topics([NewTopic(topic, 3, 1)])[topic].result(PATIENCE_S)
        producer = Producer({"bootstrap.servers": address})
        for partition in range(3):
            producer.produce(topic, b"%d" % partition, partition=partition)
        assert producer.flush(PATIENCE_S) == 0
        for bootstrap in brokers:
            consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", "auto.offset.reset": "earliest"})
            consumer.assign([TopicPartition(topic, partition, 0) for partition in range(3)])
            messages = consumer.consume(3, PATIENCE_S)
            consumer.close()
            assert sorted(message.value() or b"" for message in messages) == [b"0", b"1", b"2"]


def test_help_names_every_verb(shell: Shell) -> None:
    assert set(cluster.VERBS) == set(VERBS)
    assert all(what in shell.says("cluster", "--help") for what in cluster.VERBS)
