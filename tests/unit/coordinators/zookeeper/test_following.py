"""What a broker's store makes of the views that its coordinator hands it: above all, what it does not delete."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor, Future
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from brokers.log.config import FsyncPolicy, LogConfig
from brokers.log.errors import LogDiskFailed, LogError
from brokers.log.log import Log
from brokers.replication.errors import NotLeader
from brokers.replication.openings import AT_ONCE_MAX, Openings
from brokers.replication.replica import Replica
from brokers.replication.store import Store
from brokers.wire.batch import RecordToSend, encode_batch, parse_header
from coordinators.model import Broker, ClusterView, Partition, Topic, TopicPartition
from coordinators.placement import place
from tests.contract.backend import asynchronous, eventually
from tests.unit.brokers.log.faulty_files import FaultyFiles
from tests.unit.brokers.log.slow_files import SlowFiles
from tests.unit.brokers.replication.held import led

ME = Broker(1, "127.0.0.1", 9001, 9501)
OTHER = Broker(2, "127.0.0.1", 9002, 9502)
TOPICS = {name: Topic(name, place(name, 1, 1, [1]), life="1") for name in ("clicks", "orders")}
FULL = ClusterView(1, MappingProxyType({1: ME, 2: OTHER}), MappingProxyType(TOPICS))
ORDERS = TopicPartition("orders", 0)


@asynccontextmanager
async def holding(folder: Path, view: ClusterView = FULL, **options: Any) -> AsyncIterator[Store]:
    """A store that has done what the view says."""
    store = Store(folder, options.pop("config", LogConfig()), ME.id, **options)
    await store.start(view)
    try:
        yield store
    finally:
        await store.close()


async def follow(store: Store, view: ClusterView) -> None:
    store.follow(view)
    await store.caught_up()


def held(store: Store) -> set[str]:
    return {partition.at.topic for partition in store.partitions}


def with_topics(*topics: Topic) -> ClusterView:
    return replace(FULL, topics=MappingProxyType({topic.name: topic for topic in topics}))


def again(life: str) -> ClusterView:
    """The same, but for `orders`, which was deleted and made again."""
    return with_topics(TOPICS["clicks"], replace(TOPICS["orders"], life=life))


def orders(store: Store) -> Replica:
    found = store.partition(*ORDERS)
    assert found is not None
    return found


def write(partition: Replica, value: bytes) -> None:
    batch = bytearray(encode_batch([RecordToSend(value)]))
    partition.append([(batch, parse_header(batch))], led(partition))


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# --- what is deleted, and what is not -------------------------------------------------------------------------------


@asynchronous
async def test_a_topic_that_was_deleted_is_deleted_here(tmp_path: Path) -> None:
    async with holding(tmp_path) as store:
        await follow(store, with_topics(TOPICS["orders"]))
        assert held(store) == {"orders"}
        assert [path.name for path in (tmp_path / "logs").iterdir()] == ["orders"]
        await eventually(lambda: not list((tmp_path / "deleted").iterdir()))


@asynchronous
async def test_the_last_topic_can_be_deleted(tmp_path: Path) -> None:
    async with holding(tmp_path) as store:
        await follow(store, with_topics())
        assert held(store) == set()


@pytest.mark.parametrize("brokers", [{}, {2: OTHER}])
@asynchronous
async def test_a_view_without_this_broker_deletes_nothing(tmp_path: Path, brokers: dict[int, Broker]) -> None:
    async with holding(tmp_path) as store:
        await follow(store, replace(with_topics(), brokers=MappingProxyType(brokers)))
        assert held(store) == {"clicks", "orders"}


@asynchronous
async def test_what_was_deleted_meanwhile_is_deleted_when_this_broker_is_there_again(tmp_path: Path) -> None:
    async with holding(tmp_path) as store:
        without = with_topics(TOPICS["orders"])
        await follow(store, replace(without, brokers=MappingProxyType({2: OTHER})))
        await follow(store, without)
        assert held(store) == {"orders"}


@asynchronous
async def test_a_view_without_this_broker_makes_nothing_anew(tmp_path: Path) -> None:
    async with holding(tmp_path) as store:
        write(orders(store), b"old")
        await follow(store, replace(again("2"), brokers=MappingProxyType({2: OTHER})))
        assert orders(store).log.end_offset == 1


@asynchronous
async def test_a_deletion_that_the_disk_refuses_is_told_and_comes_to_no_other_topic(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = FaultyFiles()
    async with holding(tmp_path, files=files) as store:
        write(orders(store), b"old")
        files.fail("rename", only="1")
        store.follow(again("2"))
        with pytest.raises(LogDiskFailed, match="cannot delete the logs of topic orders"):
            await store.caught_up("orders")
        files.heal()
        await store.caught_up("orders")
        assert orders(store).log.end_offset == 0
    assert "cannot delete the logs of topic orders" in caplog.text
    assert (tmp_path / "logs" / "orders" / "1" / "0").is_dir()


# --- lives ----------------------------------------------------------------------------------------------------------


@asynchronous
async def test_a_topic_that_was_deleted_and_made_again_begins_empty_though_no_view_was_without_it(
    tmp_path: Path,
) -> None:
    async with holding(tmp_path) as store:
        former = orders(store)
        write(former, b"old")
        await follow(store, again("2"))
        assert former.deleted
        assert orders(store).log.end_offset == 0
        assert store.partition("clicks", 0) is not None


@asynchronous
async def test_what_was_made_again_while_this_broker_was_away_begins_empty_and_the_old_stays_and_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for life in ("1", "2", "3"):
        async with holding(tmp_path, again(life)) as away:
            assert orders(away).log.end_offset == 0
            write(orders(away), b"of life " + life.encode())
    for life in ("1", "2"):
        kept = tmp_path / "logs" / "orders" / life
        assert b"of life " + life.encode() in next(kept.glob("0/*.log")).read_bytes()
        assert str(kept) in caplog.records[-1].getMessage()


@asynchronous
async def test_a_former_life_that_is_the_present_one_again_has_its_messages(tmp_path: Path) -> None:
    """As where ZooKeeper's tree was made anew by mistake, and is restored."""
    for life, ends in (("1", 0), ("2", 0), ("1", 1), ("2", 1)):
        async with holding(tmp_path, again(life)) as store:
            assert orders(store).log.end_offset == ends
            write(orders(store), b"kept")


@asynchronous
async def test_a_topic_that_is_the_same_goes_on_after_a_restart(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for end in range(3):
        async with holding(tmp_path, again("5")) as store:
            assert orders(store).log.end_offset == end
            write(orders(store), b"more")
    assert not caplog.records


@asynchronous
async def test_a_request_comes_to_the_life_that_the_newest_view_has(tmp_path: Path) -> None:
    views = [again("1")]
    async with holding(tmp_path, views[0], newest=lambda: views[-1]) as store:
        write(orders(store), b"old")
        views.append(again("2"))
        assert store.partition(*ORDERS) is None
        await store.opened(ORDERS)
        assert orders(store).log.end_offset == 0


@asynchronous
async def test_maintenance_that_waits_for_a_slow_sync_does_nothing_to_the_topic_that_came_meanwhile(
    tmp_path: Path,
) -> None:
    """Five messages that were acknowledged were gone 14 s later."""
    disk = SlowFiles(lambda call, _: call == "fdatasync")
    config = LogConfig(segment_bytes=200, retention_bytes=1, fsync=FsyncPolicy.NEVER)
    async with holding(tmp_path, config=config, files=disk) as store:
        for _ in range(5):
            write(orders(store), b"old" * 20)
        maintenance = asyncio.create_task(store.maintain())
        await asyncio.to_thread(disk.reached.acquire)
        await follow(store, again("2"))
        for _ in range(5):
            write(orders(store), b"new" * 20)
        before = files_in(tmp_path / "logs" / "orders")
        disk.let_go()
        await maintenance
        assert files_in(tmp_path / "logs" / "orders") == before
        assert (orders(store).start_offset, orders(store).log.end_offset) == (0, 5)


@asynchronous
async def test_a_log_is_closed_when_the_sync_under_way_is_over_though_nobody_waits_for_it(tmp_path: Path) -> None:
    disk = SlowFiles(lambda call, _: call == "fdatasync")
    store = Store(tmp_path, LogConfig(fsync=FsyncPolicy.ALWAYS), ME.id, files=disk)
    await store.start(with_topics(TOPICS["orders"]))
    write(orders(store), b"appended")
    gone = orders(store).acknowledged()
    assert gone is not None
    await asyncio.to_thread(disk.reached.acquire)
    gone.cancel()
    closing = asyncio.create_task(store.close())
    assert not await asyncio.to_thread(disk.reached.acquire, timeout=0.2)
    disk.let_go()
    await closing


# --- opening --------------------------------------------------------------------------------------------------------

WIDE = Topic("wide", tuple(Partition((1,), 1, 0, (1,)) for _ in range(30)), life="1")


def is_partition(call: str, argument: object) -> bool:
    return isinstance(argument, Path) and argument.parent.parent.name == WIDE.name


@asynchronous
async def test_the_event_loop_goes_on_while_logs_are_opened_and_only_some_are_at_a_time(tmp_path: Path) -> None:
    disk = SlowFiles(is_partition)
    async with holding(tmp_path, files=disk) as store:
        store.follow(with_topics(*TOPICS.values(), WIDE))
        for _ in range(AT_ONCE_MAX):
            await asyncio.to_thread(disk.reached.acquire)
        write(orders(store), b"others are served")
        assert store.partition("wide", 0) is None
        assert disk.waiting == AT_ONCE_MAX
        disk.let_go()
        await store.caught_up("wide")
        assert len(store.partitions) == len(WIDE.partitions) + 2


@asynchronous
async def test_the_first_append_finds_the_epoch_noted_and_waits_for_no_disk(tmp_path: Path) -> None:
    disk = FaultyFiles()
    async with holding(tmp_path, config=LogConfig(fsync=FsyncPolicy.ALWAYS), files=disk) as store:
        done = len(disk.calls)
        write(orders(store), b"first")
        assert disk.calls[done:] == ["writev"]


@asynchronous
async def test_what_somebody_waits_for_is_opened_first(tmp_path: Path) -> None:
    disk = SlowFiles(is_partition)
    async with holding(tmp_path, files=disk) as store:
        store.follow(with_topics(*TOPICS.values(), WIDE))
        for _ in range(AT_ONCE_MAX):
            await asyncio.to_thread(disk.reached.acquire)
        order: list[int] = []
        asked = asyncio.create_task(store.opened(TopicPartition("wide", 29)))
        asked.add_done_callback(lambda _: order.extend(at.partition for at in map(of, store.partitions)))
        await asyncio.sleep(0)
        disk.let_go()
        await asked
        await asyncio.sleep(0)
        assert 29 in order
        assert len(order) < len(WIDE.partitions)


def of(partition: Replica) -> TopicPartition:
    return partition.at


@asynchronous
async def test_a_client_does_not_wait_for_ever_for_a_log_that_takes_long_to_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("brokers.replication.store.OPENED_WITHIN_S", 0.01)
    disk = SlowFiles(is_partition)
    async with holding(tmp_path, files=disk) as store:
        store.follow(with_topics(WIDE))
        with pytest.raises(NotLeader, match="wide-3 is still being opened"):
            await store.opened(TopicPartition("wide", 3))
        disk.let_go()
        await store.caught_up("wide")


@asynchronous
async def test_a_topic_that_is_deleted_while_it_is_opened_leaves_nothing(tmp_path: Path) -> None:
    disk = SlowFiles(is_partition)
    async with holding(tmp_path, files=disk) as store:
        store.follow(with_topics(WIDE))
        await asyncio.to_thread(disk.reached.acquire)
        waits = asyncio.create_task(store.opened(TopicPartition("wide", 29)))
        await asyncio.sleep(0)
        store.follow(with_topics(replace(WIDE, life="2")))
        await waits
        disk.let_go()
        await store.caught_up()
        assert [path.name for path in (tmp_path / "logs" / "wide").iterdir()] == ["2"]
        assert len(store.partitions) == len(WIDE.partitions)
        await eventually(lambda: not list((tmp_path / "deleted").iterdir()))


@asynchronous
async def test_a_topic_that_cannot_be_opened_keeps_no_other_from_being_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with holding(tmp_path, with_topics(TOPICS["orders"])) as store:
        write(orders(store), b"here")
        (tmp_path / "logs" / "clicks").write_text("in the way")
        store.follow(again("1"))
        with pytest.raises(LogDiskFailed):
            await store.caught_up("clicks")
        with pytest.raises(LogDiskFailed):
            await store.opened(TopicPartition("clicks", 0))
        assert orders(store).log.end_offset == 1
        with pytest.raises(LogDiskFailed):
            await follow(store, replace(again("1"), version=2))
        assert [record.getMessage()[:41] for record in caplog.records] == ["broker: a partition cannot be opened: can"]
        (tmp_path / "logs" / "clicks").unlink()
        await store.maintain()
        await store.caught_up()
        assert held(store) == {"clicks", "orders"}


@asynchronous
async def test_a_start_that_cannot_open_a_log_says_why(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "clicks").write_text("in the way")
    store = Store(tmp_path, LogConfig(), ME.id)
    with pytest.raises(LogDiskFailed, match="clicks"):
        await store.start(FULL)
    await store.close()


@asynchronous
async def test_a_start_that_meets_what_nobody_thought_of_ends_with_it_and_takes_no_log_for_open(tmp_path: Path) -> None:
    def opens_nothing(*_: object) -> None:
        raise MemoryError("a bug")

    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    store = Store(tmp_path, LogConfig(), ME.id)
    store._openings._open_log = opens_nothing  # type: ignore[assignment]
    with pytest.raises(LogDiskFailed, match="a bug"):
        await store.start(FULL)
    with pytest.raises(LogDiskFailed, match="a bug"):
        await store.opened(ORDERS)
    assert {str(context["exception"]) for context in reported} == {"a bug"}
    await store.close()


class AtOnce(Executor):
    """Does what it is given before it answers, so that workers go step by step together."""

    def submit(self, fn: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(fn(*arguments, **named))
        return done


@asynchronous
async def test_a_log_that_is_wanted_when_all_workers_have_just_ended_is_opened(tmp_path: Path) -> None:
    opened: list[int] = []
    errors: list[LogError] = []
    log = Log.open(tmp_path, LogConfig(), now_ms=0)
    openings = Openings(AtOnce(), lambda _: log, lambda opening, _: opened.append(opening.at.partition), errors.append)

    for number in range(AT_ONCE_MAX):
        openings.begin(TopicPartition("orders", number), TOPICS["orders"])
    first = openings.get(TopicPartition("orders", 0))
    assert first is not None
    await first.over()  # as a client that makes a topic when it has heard of the one before
    openings.begin(TopicPartition("orders", AT_ONCE_MAX), TOPICS["orders"])
    await eventually(lambda: opened == list(range(AT_ONCE_MAX + 1)))
    log.close()
