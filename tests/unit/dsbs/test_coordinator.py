"""The shell around the machine: its disk, its meter, its end. The contract suite holds the rest."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from coordinators.dsbs.codec import encoded
from coordinators.dsbs.coordinator import DsbsCoordinator
from coordinators.dsbs.disk import STALE_RECORDS_MAX, Disk
from coordinators.dsbs.rows import OffsetRow
from coordinators.dsbs.settings import Settings, parse
from coordinators.errors import InvalidRequest, JournalFailed, Unavailable, Unreadable
from coordinators.model import Committed, TopicPartition
from tests.contract.backend import WITHIN_S, MemoryJournal, asynchronous
from tests.contract.backends.dsbs import OPTIONS, DsbsBackend

AT = TopicPartition("orders", 0)


class FullJournal(MemoryJournal):
    full = False

    def append(self, record: bytes) -> None:
        if self.full:
            raise JournalFailed("no room")
        super().append(record)


@asynchronous
async def test_nothing_is_sent_on_the_path_of_a_produce_a_fetch_or_a_commit() -> None:
    cluster = DsbsBackend(Path())
    coordinators = await cluster.start_all()
    await coordinators[0].create_topic("orders", 1, 3)
    home = next(one for one in coordinators if one.group_coordinator("readers") == one.me.id)
    await home.commit_offsets("readers", {AT: Committed(0)})
    before = home.meter.snapshot()
    for number in range(1500):
        assert home.known_leader(AT) is not None
        await home.commit_offsets("readers", {AT: Committed(number)})
    after = home.meter.snapshot()
    background = {"heartbeat", "here", "copy", "kept"}
    assert {kind for kind in after if after[kind][0] > before.get(kind, (0,))[0]} <= background
    assert after["commit"][0] == 0
    await cluster.close()


async def with_full_disk(cluster: DsbsBackend) -> DsbsCoordinator:
    """A broker with a topic, whose disk takes no more."""
    me = cluster.brokers[0]
    journals = {name: FullJournal() for name in ("tables", "offsets")}
    setup = replace(cluster.setup(me, **OPTIONS), journal=journals.__getitem__, peers=cluster._wires.of(me))
    coordinator = DsbsCoordinator(setup)
    await coordinator.start()
    await coordinator.create_topic("orders", 1, 1)
    journals["tables"].full = True
    return coordinator


@asynchronous
async def test_a_broker_whose_disk_fails_acts_no_more_and_is_lost() -> None:
    coordinator = await with_full_disk(DsbsBackend(Path()))
    with pytest.raises(JournalFailed):
        await coordinator.create_topic("clicks", 1, 1)
    with pytest.raises(Unavailable):
        coordinator.leader(AT)
    with pytest.raises(Unavailable, match="cannot be written"):
        await coordinator.create_topic("logs", 1, 1)
    assert "cannot be written to the disk: no room" in str(await coordinator.lost())
    await coordinator.stop()


@asynchronous
async def test_a_broker_whose_disk_fails_when_nobody_asks_it_anything_is_lost_without_a_traceback() -> None:
    cluster = DsbsBackend(Path())
    unhandled: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: unhandled.append(context))
    coordinator = await with_full_disk(cluster)
    other = await cluster.start(2)
    assert isinstance(await asyncio.wait_for(coordinator.lost(), WITHIN_S), Unavailable)
    assert unhandled == []
    await other.stop()
    await coordinator.stop()


@asynchronous
async def test_an_orderly_stop_is_no_loss() -> None:
    cluster = DsbsBackend(Path())
    coordinator = await cluster.start(1)
    lost = asyncio.create_task(coordinator.lost())
    await coordinator.stop()
    await asyncio.sleep(0)
    assert not lost.done()
    lost.cancel()


@asynchronous
async def test_without_a_way_to_its_peers_it_is_refused() -> None:
    cluster = DsbsBackend(Path())
    with pytest.raises(InvalidRequest, match="transport"):
        DsbsCoordinator(cluster.setup(cluster.brokers[0]))


def test_a_journal_of_somebody_else_is_refused_by_name() -> None:
    journal = MemoryJournal()
    journal.append(b"not ours")
    with pytest.raises(Unreadable, match="journal tables holds b'not ours'"):
        Disk(lambda name: journal)


def test_a_journal_is_written_anew_when_most_of_it_is_stale() -> None:
    journals = {"tables": MemoryJournal(), "offsets": MemoryJournal()}
    disk = Disk(journals.__getitem__)
    rows = [OffsetRow("g", "t", 0, 1, version, version, -1, "") for version in range(STALE_RECORDS_MAX + 1)]
    disk.write(rows)
    disk.compact(disk.table, lambda: rows[-1:])
    assert journals["offsets"].records == [encoded(rows[-1]).encode()]


def test_options_have_defaults_and_names() -> None:
    assert parse({}) == Settings()
    assert parse({"heartbeat_ms": 100}).heartbeat_ms == 100


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"hartbeat_ms": 100}, "unknown option 'hartbeat_ms' of coordinator dsbs; did you mean 'heartbeat_ms'?"),
        ({"heartbeat_ms": 0}, "heartbeat_ms must be a whole number from 1 to 3600000, not 0"),
        ({"heartbeat_ms": True}, "heartbeat_ms must be a whole number from 1 to 3600000, not True"),
        ({"fanout": 1001}, "fanout must be a whole number from 1 to 1000, not 1001"),
        ({"cluster": ""}, "cluster must be text of 1 to 100 characters, not ''"),
        ({"heartbeat_ms": 1000}, "timeout_ms must be at least two heartbeats of 1000 ms, not 1500: one late answer"),
    ],
)
def test_a_wrong_option_is_refused_with_what_is_allowed(options: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse(options)
    assert str(refused.value).startswith(said)
