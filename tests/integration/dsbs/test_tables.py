"""`brokerlab tables`: what a person sees of the tables of real brokers."""

from __future__ import annotations

import json
from pathlib import Path

from tests.integration.console.conftest import Shell


def test_every_broker_shows_the_same_tables_as_the_paper_draws_them(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    try:
        shell.says("cluster", "up", "--architecture", "dsbs", "--brokers", "3")
        shell.says("topic", "create", "orders", "--partitions", "3")
        shell.says("produce", "orders", stdin="one\n")
        shell.says("consume", "orders", "--group", "readers", "--from-beginning", "--max-messages", "1")
        shown = [shell.says("tables", "--broker", str(number)) for number in (1, 2, 3)]
        heads = {text.splitlines()[0] for text in shown}
        assert len(heads) == 1, "the same hash"
        topics = {text.split("\n\n")[1] for text in shown}
        assert len(topics) == 1
        rows = [line.split(" | ") for line in topics.pop().splitlines()]
        assert [word.strip() for word in rows[0]] == ["topic", "partition", "broker", "epoch"]
        assert [(row[0].strip(), row[1].strip()) for row in rows[2:]] == [("orders", str(n)) for n in range(3)]
        assert sum("readers" in text for text in shown) == 1, "its home alone serves the group"
        found = json.loads(shell.says("tables", "--broker", "1", "--json"))
        assert {row["status"] for row in found["brokers"]} == {"alive"}
        assert "--broker must be 1 to 3, not 4" in shell.refused("tables", "--broker", "4")
    finally:
        shell.says("cluster", "down")
