"""One broker's parts together, in this process."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from brokers import broker
from brokers.broker import BrokerProcess
from brokers.config import BrokerConfig, load
from brokers.folder import locked
from brokers.replication.store import Store
from tests.contract.backend import asynchronous
from workloads.processes.ports import free_ports


def configured(folder: Path) -> BrokerConfig:
    kafka_port, rpc_port = free_ports(2)
    me = {"id": 1, "host": "127.0.0.1", "kafka_port": kafka_port, "rpc_port": rpc_port}
    path = folder / "broker.json"
    content = {"broker": 1, "brokers": [me], "data_dir": str(folder / "data"), "coordinator": {"name": "static"}}
    path.write_text(json.dumps(content))
    return load(path)


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
