"""Topics made and deleted through a broker whose disk refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from brokers.journal import FileJournal
from brokers.log.config import LogConfig
from brokers.log.errors import LogDiskFailed
from brokers.replication.store import Store
from brokers.topics import TopicAdmin
from coordinators.model import Broker, TopicSettings
from coordinators.registry import CoordinatorSetup
from coordinators.static.coordinator import StaticCoordinator
from tests.contract.backend import asynchronous
from tests.unit.brokers.log.faulty_files import FaultyFiles

ME = Broker(1, "127.0.0.1", 9092, 9192)


@asynchronous
async def test_a_journal_that_takes_no_record_is_told_as_a_disk_that_refuses(tmp_path: Path) -> None:
    """Both listeners answer that; what they do not know ends the client's connection."""
    files = FaultyFiles()
    names = ("topics", "offsets")
    journals = {name: FileJournal(tmp_path / f"{name}.journal", durable=False, files=files) for name in names}
    coordinator = StaticCoordinator(CoordinatorSetup(ME, (ME,), journals.__getitem__, {}))
    await coordinator.start()
    store = Store(tmp_path, LogConfig(), ME.id)
    topics = TopicAdmin(coordinator, store, partitions_max=10)
    await topics.create("orders", 1, 1, TopicSettings())
    files.fail("writev")
    with pytest.raises(LogDiskFailed, match="cannot write topics"):
        await topics.create("more", 1, 1, TopicSettings())
    with pytest.raises(LogDiskFailed, match="cannot write topics"):
        await topics.delete("orders")
    assert list(coordinator.view().topics) == ["orders"]
    await store.close()
    for journal in journals.values():
        journal.close()
