"""One broker's parts together, in this process."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from pathlib import Path

import pytest

from brokers import broker
from brokers.broker import BrokerProcess
from brokers.config import BrokerConfig, load
from brokers.folder import locked
from brokers.replication.store import Store
from tests.contract.backend import asynchronous


def configured(folder: Path) -> BrokerConfig:
    me = {"id": 1, "host": "127.0.0.1", "kafka_port": free_port(), "rpc_port": free_port()}
    path = folder / "broker.json"
    content = {"broker": 1, "brokers": [me], "data_dir": str(folder / "data"), "coordinator": {"name": "static"}}
    path.write_text(json.dumps(content))
    return load(path)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


@asynchronous
async def test_a_task_that_ended_with_a_bug_keeps_no_broker_from_closing_what_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = asyncio.Event()

    async def ends(_: Store) -> None:
        ended.set()
        raise ZeroDivisionError

    monkeypatch.setattr(broker, "MAINTENANCE_S", 0.0)
    monkeypatch.setattr(Store, "maintain", ends)
    config = configured(tmp_path)
    process = BrokerProcess(config)
    await process.start()
    await ended.wait()
    with pytest.raises(ZeroDivisionError):
        await process.stop()
    os.close(locked(config.data_dir))  # nobody has it any more
