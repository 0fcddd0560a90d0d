"""`brokerlab topic`, `produce` and `consume` on three brokers that tell each other nothing (`static`)."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from tests.integration.console.conftest import PATIENCE_S, Shell

NUMBERS = "".join(f"{number}\n" for number in range(1000))


def bootstrap(shell: Shell) -> list[str]:
    found: list[str] = json.loads(shell.says("cluster", "status", "--json"))["bootstrap"]
    return found


def test_a_topic_is_made_at_every_broker(shell: Shell, topic: str) -> None:
    for address in bootstrap(shell):
        found = AdminClient({"bootstrap.servers": address}).list_topics(topic, timeout=PATIENCE_S).topics or {}
        assert found[topic].error is None
        assert len(found[topic].partitions) == 3


def test_a_topic_that_exists_is_refused(shell: Shell, topic: str) -> None:
    assert f"topic '{topic}' exists" in shell.refused("topic", "create", topic)


def test_a_topic_is_deleted_at_every_broker(shell: Shell, topic: str) -> None:
    shell.says("topic", "delete", topic)
    for address in bootstrap(shell):
        assert topic not in shell.says("topic", "list", "--bootstrap", address)
    assert f"no topic '{topic}'" in shell.refused("topic", "delete", topic)


def test_list_and_describe_say_the_same_as_data(shell: Shell, topic: str) -> None:
    shell.says("produce", topic, stdin=NUMBERS)
    rows = {row["name"]: row for row in json.loads(shell.says("topic", "list", "--json"))}
    assert rows[topic] == {"name": topic, "partitions": 3, "replication_factor": 1}
    found = json.loads(shell.says("topic", "describe", topic, "--json"))
    assert sum(part["end_offset"] - part["start_offset"] for part in found["partitions"]) == 1000
    assert {part["leader"] for part in found["partitions"]} == {1, 2, 3}
    assert f"topic {topic}" in shell.says("topic", "describe", topic)


def test_configuration_reaches_the_cluster_and_is_described(shell: Shell) -> None:
    shell.says("topic", "create", "configured", "--config", "fetch_records_max=7")
    assert json.loads(shell.says("topic", "describe", "configured", "--json"))["config"] == {"fetch_records_max": "7"}
    wrong = shell.refused("topic", "create", "wrong", "--config", "fetch_record_max=7")
    assert "did you mean 'fetch_records_max'?" in wrong


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_lines_come_back_whatever_the_compression(shell: Shell, topic: str, compression: str) -> None:
    shell.says("produce", topic, "--compression", compression, "--acks", "1", stdin=NUMBERS)
    found = shell.says("consume", topic, "--from-beginning", "--max-messages", "1000")
    assert sorted(found.splitlines(), key=int) == NUMBERS.splitlines()


def test_keys_headers_and_offsets_are_sent_and_shown(shell: Shell, topic: str) -> None:
    shell.says("produce", topic, "--key-separator", ":", "--header", "from=here", stdin="k:a:b\n")
    shown = ("--print-key", "--print-headers", "--print-offset")
    line = shell.says("consume", topic, "--from-beginning", "--max-messages", "1", *shown)
    assert line.split("\t", 1)[1] == "Offset:0\tfrom:here\tk\ta:b\n"


def test_a_last_line_without_its_end_and_an_empty_line_are_messages(shell: Shell, topic: str) -> None:
    shell.says("produce", topic, "--key-separator", "=", stdin="k=1\nk=\nk=2")
    assert shell.says("consume", topic, "--from-beginning", "--max-messages", "3") == "1\n\n2\n"


def test_a_line_without_its_key_is_named_and_the_lines_before_it_are_sent(shell: Shell, topic: str) -> None:
    assert "line 2 has no ':'" in shell.refused("produce", topic, "--key-separator", ":", stdin="k:1\n2\n", code=1)
    assert shell.says("consume", topic, "--from-beginning", "--max-messages", "1") == "1\n"


def test_a_line_that_is_too_large_is_named_and_the_lines_before_it_are_sent(shell: Shell, topic: str) -> None:
    refused = shell.refused("produce", topic, stdin=f"1\n{'x' * 3_000_000}\n3\n", code=1)
    assert refused.startswith("brokerlab: line 2 of 3,000,000 bytes was not sent: ")
    assert "at most 1,000,000 bytes" in refused
    assert shell.says("consume", topic, "--from-beginning", "--timeout-s", "2") == "1\n"


def test_a_topic_of_more_replicas_than_brokers_is_the_users_to_mend(shell: Shell) -> None:
    assert "replication factor 4 needs as many brokers" in shell.refused(
        "topic", "create", "wide", "--replication-factor", "4"
    )
    assert "wide" not in shell.says("topic", "list")


def test_a_group_goes_on_where_it_stopped(shell: Shell, topic: str) -> None:
    shell.says("produce", topic, stdin=NUMBERS)
    reading = ("consume", topic, "--group", f"group-{topic}", "--from-beginning")
    first = shell.says(*reading, "--max-messages", "300").splitlines()
    rest = shell.says(*reading, "--max-messages", "700").splitlines()
    assert sorted(first + rest, key=int) == NUMBERS.splitlines()


def test_consume_ends_when_nothing_has_come_for_so_long(shell: Shell, topic: str) -> None:
    shell.says("produce", topic, stdin="1\n")
    assert shell.says("consume", topic, "--from-beginning", "--timeout-s", "2") == "1\n"


def test_a_reader_that_goes_ends_consume_without_a_word(shell: Shell, topic: str) -> None:
    shell.says("produce", topic, stdin=NUMBERS)
    with shell.start("consume", topic, "--from-beginning") as consumer:
        assert consumer.stdout is not None
        assert consumer.stderr is not None
        consumer.stdout.readline()
        consumer.stdout.close()
        shell.says("produce", topic, stdin=NUMBERS)
        assert consumer.wait(PATIENCE_S) == 1
        assert consumer.stderr.read() == ""


def test_ctrl_c_ends_consume_and_keeps_the_groups_place(shell: Shell, topic: str) -> None:
    """What was printed before the last line is certainly committed; the last may be printed again."""
    reading = ("consume", topic, "--group", f"group-{topic}", "--from-beginning")
    with shell.start(*reading) as consumer:
        assert consumer.stdout is not None
        for line in ("1\n", "2\n"):
            shell.says("produce", topic, "--key-separator", ":", stdin=f"k:{line}")
            assert consumer.stdout.readline() == line
        consumer.send_signal(signal.SIGINT)
        assert consumer.wait(PATIENCE_S) == 130
        assert consumer.communicate()[1] == "brokerlab: interrupted\n"
    shell.says("produce", topic, "--key-separator", ":", stdin="k:3\n")
    assert shell.says(*reading, "--max-messages", "1") in {"2\n", "3\n"}


@pytest.mark.parametrize(
    "words", [("topic", "describe"), ("topic", "delete"), ("produce",), ("consume",)], ids=" ".join
)
def test_an_unknown_topic_is_refused(shell: Shell, words: tuple[str, ...]) -> None:
    assert "no topic 'nowhere'" in shell.refused(*words, "nowhere")


@pytest.mark.parametrize("words", [("topic", "create"), ("topic", "delete"), ("produce",), ("consume",)], ids=" ".join)
def test_a_name_that_cannot_be_is_refused(shell: Shell, words: tuple[str, ...]) -> None:
    assert "cannot be a topic's name" in shell.refused(*words, "a b")


def test_no_broker_there_is_told_at_once(shell: Shell) -> None:
    assert "no broker answers at 127.0.0.1:1" in shell.refused("topic", "list", "--bootstrap", "127.0.0.1:1")


def test_the_pages_of_help_have_examples(tmp_path: Path) -> None:
    for words in (("topic",), ("produce",), ("consume",), ("cluster",)):
        command = [sys.executable, "-m", "workloads", *words, "--help"]
        assert "example" in subprocess.run(command, capture_output=True, text=True, check=True).stdout
