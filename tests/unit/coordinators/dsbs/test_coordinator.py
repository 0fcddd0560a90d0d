"""The shell around the machine: its disk, its meter, its end. The contract suite holds the rest."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from coordinators.dsbs.coordinator import DsbsCoordinator
from coordinators.dsbs.disk import STALE_RECORDS_MAX, Disk
from coordinators.dsbs.options import Settings, parse
from coordinators.dsbs.tables.codec import encoded
from coordinators.dsbs.tables.rows import OffsetRow
from coordinators.errors import InvalidRequest, JournalFailed, OutcomeUnknown, Unavailable, Unreadable
from coordinators.model import NO_LEADER, Committed, TopicPartition
from tests.contract.backend import MemoryJournal, asynchronous, until
from tests.contract.backends.dsbs import OPTIONS, DsbsBackend

AT = TopicPartition("orders", 0)


class FullJournal(MemoryJournal):
    full = False
    writes = 0

    def append(self, *records: bytes) -> None:
        if self.full:
            raise JournalFailed("no room")
        self.writes += 1
        super().append(*records)


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


def on_its_own_disk(cluster: DsbsBackend, number: int) -> tuple[DsbsCoordinator, dict[str, FullJournal]]:
    """A broker, not started, and the disk that it is to have, which can be full."""
    me = cluster.brokers[number - 1]
    journals = {name: FullJournal() for name in ("tables", "offsets")}
    setup = replace(cluster.setup(me, **OPTIONS), journal=journals.__getitem__, peers=cluster._wires.of(me))
    coordinator = DsbsCoordinator(setup)
    cluster._started.append(coordinator)
    return coordinator, journals


def fill(journals: dict[str, FullJournal], *, full: bool = True) -> None:
    for journal in journals.values():
        journal.full = full


@asynchronous
async def test_on_a_full_disk_what_clients_ask_is_refused_and_has_not_happened_and_reads_go_on() -> None:
    cluster = DsbsBackend(Path())
    coordinator, journals = on_its_own_disk(cluster, 1)
    await coordinator.start()
    await coordinator.create_topic("orders", 1, 1)
    await coordinator.commit_offsets("readers", {AT: Committed(7)})
    led = coordinator.known_leader(AT)
    fill(journals)
    for attempt in (
        coordinator.commit_offsets("readers", {AT: Committed(8)}),
        coordinator.commit_offsets("others", {AT: Committed(8)}),
        coordinator.create_topic("clicks", 1, 1),
        coordinator.delete_topic("orders"),
        coordinator.resign(AT, 0),
    ):
        with pytest.raises(JournalFailed):
            await attempt
    assert coordinator.known_leader(AT) == led
    assert await coordinator.committed_offsets("readers") == {AT: Committed(7)}
    assert await coordinator.committed_offsets("others") == {}
    assert list(coordinator.view().topics) == ["orders"]
    fill(journals, full=False)
    await coordinator.commit_offsets("readers", {AT: Committed(9)})
    await coordinator.create_topic("clicks", 1, 1)
    assert await coordinator.committed_offsets("readers") == {AT: Committed(9)}
    await cluster.close()
    kept = Disk(journals.__getitem__)
    assert [row.offset for row in kept.offsets.values()] == [9]
    assert set(kept.table.topics) == {"orders", "clicks"}


@asynchronous
async def test_what_a_broker_with_a_full_disk_hears_it_knows_and_acknowledges_when_it_is_written(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster = DsbsBackend(Path())
    coordinator, journals = on_its_own_disk(cluster, 1)
    await coordinator.start()
    fill(journals)
    other = await cluster.start(2)
    await until(coordinator, lambda view: len(view.brokers) == 2)
    making = asyncio.create_task(other.create_topic("orders", 1, 1))
    await until(coordinator, lambda view: "orders" in view.topics)
    assert not making.done()
    assert "orders" not in Disk(journals.__getitem__).table.topics
    fill(journals, full=False)
    assert (await making).known_to == {1, 2}
    assert "orders" in Disk(journals.__getitem__).table.topics
    assert [record.message for record in caplog.records] == [
        "broker 1: its tables cannot be written to the disk: no room",
        "broker 1: its tables are written to the disk again",
    ]
    await cluster.close()


@asynchronous
async def test_a_broker_with_a_full_disk_keeps_no_copies_that_it_says_it_keeps() -> None:
    cluster = DsbsBackend(Path())
    coordinator, journals = on_its_own_disk(cluster, 1)
    await coordinator.start()
    other = await cluster.start(2)
    await until(coordinator, lambda view: len(view.brokers) == 2)
    await other.create_topic("orders", 1, 1)
    group = next(f"readers-{n}" for n in range(100) if other.group_coordinator(f"readers-{n}") == 2)
    fill(journals)
    with pytest.raises(OutcomeUnknown, match="no other broker says that it keeps a copy"):
        await other.commit_offsets(group, {AT: Committed(7)})
    fill(journals, full=False)
    await other.commit_offsets(group, {AT: Committed(8)})
    assert [row.offset for row in Disk(journals.__getitem__).offsets.values()] == [8]
    await cluster.close()


@asynchronous
async def test_a_broker_leads_what_it_inherits_once_its_epoch_is_written() -> None:
    cluster = DsbsBackend(Path())
    coordinator, journals = on_its_own_disk(cluster, 1)
    await coordinator.start()
    other = await cluster.start(2)
    await until(coordinator, lambda view: len(view.brokers) == 2)
    (number,) = [
        number
        for number, partition in enumerate((await other.create_topic("orders", 2, 2)).topic.partitions)
        if partition.leader == 2
    ]
    at = TopicPartition("orders", number)
    await other.change_in_sync(at, [1, 2], other.view().partition(at).epoch)
    await until(coordinator, lambda view: 1 in view.partition(at).in_sync)
    fill(journals)
    await cluster.kill(other)
    view = await until(coordinator, lambda view: 2 not in view.brokers)
    assert view.partition(at).leader == NO_LEADER
    row = Disk(journals.__getitem__).table.leader(*at)
    assert row is not None
    assert row.leader == 2, "its own row is not written"
    fill(journals, full=False)
    view = await until(coordinator, lambda view: view.partition(at).leader == 1)
    row = Disk(journals.__getitem__).table.leader(*at)
    assert row is not None
    assert row.epoch == view.partition(at).epoch
    await coordinator.stop()


@asynchronous
async def test_a_broker_that_cannot_write_who_it_is_does_not_start() -> None:
    cluster = DsbsBackend(Path())
    coordinator, journals = on_its_own_disk(cluster, 1)
    fill(journals)
    with pytest.raises(JournalFailed, match="no room"):
        await coordinator.start()
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
async def test_a_broker_that_is_no_member_any_more_leads_nothing() -> None:
    cluster = DsbsBackend(Path())
    coordinator = await cluster.start(1)
    await coordinator.create_topic("orders", 1, 1)
    led = coordinator.known_leader(AT)
    assert led is not None
    assert led.leader == 1
    await coordinator.stop()
    with pytest.raises(Unavailable):
        coordinator.known_leader(AT)


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
        ({"hartbeat_ms": 100}, "unknown key 'hartbeat_ms' in coordinator dsbs; did you mean 'heartbeat_ms'?"),
        ({"heartbeat_ms": 0}, "heartbeat_ms in coordinator dsbs must be a whole number from 1 to 3600000, not 0"),
        ({"heartbeat_ms": True}, "heartbeat_ms in coordinator dsbs must be a whole number from 1 to 3600000, not True"),
        ({"fanout": 1001}, "fanout in coordinator dsbs must be a whole number from 1 to 1000, not 1001"),
        ({"cluster": ""}, "cluster in coordinator dsbs must be text of 1 to 100 characters, none of them zero, not ''"),
        ({"heartbeat_ms": 1000}, "timeout_ms must be at least two heartbeats of 1000 ms, not 1500: one late answer"),
    ],
)
def test_a_wrong_option_is_refused_with_what_is_allowed(options: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse(options)
    assert str(refused.value).startswith(said)


@asynchronous
async def test_the_commits_of_a_turn_are_one_write_and_fail_together() -> None:
    cluster = DsbsBackend(Path())
    coordinator, journals = on_its_own_disk(cluster, 1)
    await coordinator.start()
    await coordinator.create_topic("orders", 3, 1)
    ats = [TopicPartition("orders", number) for number in range(3)]
    groups = ("readers", "others")
    for group in groups:
        await coordinator.commit_offsets(group, {at: Committed(0) for at in ats})
    writes = journals["offsets"].writes

    async def committed(offset: int) -> list[BaseException | None]:
        commits = [coordinator.commit_offsets(groups[n % 2], {ats[n % 3]: Committed(offset + n)}) for n in range(12)]
        return await asyncio.gather(*commits, return_exceptions=True)

    assert await committed(10) == [None] * 12
    assert journals["offsets"].writes == writes + 1
    newest = {group: dict(await coordinator.committed_offsets(group)) for group in groups}
    assert {place.offset for place in newest["others"].values()} == {17, 19, 21}
    fill(journals)
    assert [type(refused) for refused in await committed(50)] == [JournalFailed] * 12
    assert {group: await coordinator.committed_offsets(group) for group in groups} == newest
    fill(journals, full=False)
    await cluster.close()
    kept = Disk(journals.__getitem__)
    assert {(row.group, row.at): row.offset for row in kept.offsets.values()} == {
        (group, at): place.offset for group, places in newest.items() for at, place in places.items()
    }
