"""Syncing beside the event loop: who waits is told the truth, whatever the log does meanwhile."""

import asyncio
import errno
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from brokers.log.config import FsyncPolicy
from brokers.log.errors import LogNotSynced, LogOffsetOutOfRange, LogSyncFailed
from brokers.log.flush import GroupCommit
from tests.unit.brokers.log.batches import SMALL, Written, abandon, everything, opened
from tests.unit.brokers.log.faulty_files import FaultyFiles

DURABLE = replace(SMALL, fsync=FsyncPolicy.ALWAYS)


class GatedFiles(FaultyFiles):
    """A disk whose syncs wait for a gate."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.gate.set()

    def fdatasync(self, handle: int) -> None:  # type: ignore[override]
        assert self.gate.wait(10)
        super().fdatasync(handle)


def test_waiters_share_a_sync_and_those_who_came_later_the_next(tmp_path: Path) -> None:
    files = GatedFiles()
    written = Written(opened(tmp_path, DURABLE, files))
    commit = GroupCommit(written.log)

    async def scenario() -> None:
        written.append(b"first")
        files.calls.clear()
        files.gate.clear()
        first = [asyncio.create_task(commit.synced(1)) for _ in range(5)]
        await asyncio.sleep(0)
        written.append(b"second")
        second = [asyncio.create_task(commit.synced(2)) for _ in range(5)]
        await asyncio.sleep(0)
        files.gate.set()
        await asyncio.gather(*first, *second)

    asyncio.run(scenario())
    assert files.calls.count("fdatasync") == 2
    assert written.log.syncing.synced_offset == 2


class AtOnce(Executor):
    """Runs what it is given before it answers, so that a sync is over within a few turns of the loop."""

    def submit(self, fn: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(fn(*arguments, **named))
        return done


def test_whoever_comes_while_a_sync_ends_gets_the_next(tmp_path: Path) -> None:
    """At each turn of the loop one comes, so that one comes between a sync's end and its outcome."""
    written = Written(opened(tmp_path, DURABLE, FaultyFiles()))
    commit = GroupCommit(written.log, AtOnce())

    async def scenario() -> None:
        waiters = []
        for number in range(1, 30):
            written.append(b"message")
            waiters.append(asyncio.create_task(commit.synced(number)))
            await asyncio.sleep(0)
        await asyncio.gather(*waiters)

    asyncio.run(scenario())
    assert written.log.syncing.synced_offset == 29


def test_what_is_synced_already_needs_no_wait(tmp_path: Path) -> None:
    files = GatedFiles()
    written = Written(opened(tmp_path, DURABLE, files))
    written.append(b"synced")
    written.log.syncing.flush()
    files.calls.clear()
    asyncio.run(GroupCommit(written.log).synced(1))
    assert files.calls == []


def test_a_failed_sync_is_told_to_all_who_wait_and_to_all_who_come(tmp_path: Path) -> None:
    files = GatedFiles()
    written = Written(opened(tmp_path, DURABLE, files))
    written.append(b"lost, perhaps")
    commit = GroupCommit(written.log)
    files.fail("fdatasync")

    async def scenario() -> list[BaseException | None]:
        results = await asyncio.gather(*(commit.synced(1) for _ in range(3)), return_exceptions=True)
        files.heal()
        return [*results, *await asyncio.gather(commit.synced(1), return_exceptions=True)]

    assert [type(result) for result in asyncio.run(scenario())] == [LogSyncFailed] * 4
    assert files.calls.count("fdatasync") == 1


def test_a_sync_that_cannot_be_noted_is_told_to_who_waits_and_the_next_tries_again(tmp_path: Path) -> None:
    files = GatedFiles()
    written = Written(opened(tmp_path, DURABLE, files))
    written.append(b"synced, and not noted")
    commit = GroupCommit(written.log)

    async def scenario() -> list[BaseException | None]:
        files.fail("pwrite", error=errno.ENOSPC)
        async with asyncio.timeout(10):
            told = await asyncio.gather(*(commit.synced(1) for _ in range(3)), return_exceptions=True)
        assert files.calls.count("fdatasync") == 1
        files.heal()
        await commit.synced(1)
        return told

    assert [type(result) for result in asyncio.run(scenario())] == [LogNotSynced] * 3
    assert written.log.syncing.synced_offset == 1


def test_a_waiter_that_goes_away_does_not_take_the_sync_with_it(tmp_path: Path) -> None:
    files = GatedFiles()
    written = Written(opened(tmp_path, DURABLE, files))
    written.append(b"first")
    commit = GroupCommit(written.log)

    async def scenario() -> None:
        files.gate.clear()
        gone, stays = asyncio.create_task(commit.synced(1)), asyncio.create_task(commit.synced(1))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.sleep(0)
        files.gate.set()
        await stays
        assert gone.cancelled()

    asyncio.run(scenario())


def test_a_waiter_for_what_was_cut_meanwhile_is_told(tmp_path: Path) -> None:
    files = GatedFiles()
    written = Written(opened(tmp_path, DURABLE, files))
    written.append(b"stays")
    written.append(b"goes")
    commit = GroupCommit(written.log)

    async def scenario() -> None:
        files.gate.clear()
        waiter = asyncio.create_task(commit.synced(2))
        await asyncio.sleep(0)
        written.log.truncate_to(1)
        files.gate.set()
        with pytest.raises(LogOffsetOutOfRange):
            await waiter
        await commit.synced(1)

    asyncio.run(scenario())


def test_a_segment_that_was_sealed_and_grew_during_a_sync_is_synced_again(tmp_path: Path) -> None:
    written = Written(opened(tmp_path, DURABLE))
    written.append(b"x" * 100)
    flush = written.log.syncing.begin()
    assert flush is not None
    for _ in range(10):
        written.append(b"x" * 100)
    flush.run()
    written.log.syncing.end(flush)
    assert written.log.syncing.synced_offset == 1
    following = written.log.syncing.begin()
    assert following is not None
    assert following.segments[0].base_offset == 0
    following.run()
    written.log.syncing.end(following)
    assert written.log.syncing.synced_offset == 11


def test_a_flush_survives_that_its_log_rolls_is_cut_and_is_deleted(tmp_path: Path) -> None:
    written = Written(opened(tmp_path / "log", DURABLE))
    for _ in range(20):
        written.append(b"x" * 100)
    flush = written.log.syncing.begin()
    assert flush is not None
    written.log.truncate_to(3)
    written.log.abandon()
    (tmp_path / "log").rename(tmp_path / "deleted")
    with ThreadPoolExecutor(1) as executor:
        executor.submit(flush.run).result()
    assert flush.error is None
    refusal = written.log.writing.refusal
    written.log.syncing.end(flush)
    assert written.log.writing.refusal == refusal, "that is no disk that failed"


def test_a_flush_that_spans_a_truncation_proves_nothing(tmp_path: Path) -> None:
    written = Written(opened(tmp_path, DURABLE))
    for _ in range(4):
        written.append(b"x" * 100)
    flush = written.log.syncing.begin()
    assert flush is not None
    written.log.truncate_to(2)
    del written.batches[2:]
    for _ in range(4):
        written.append(b"y" * 100)
    flush.run()
    written.log.syncing.end(flush)
    assert written.log.syncing.synced_offset == 0
    written.log.syncing.flush()
    abandon(written.log)
    assert everything(opened(tmp_path, DURABLE)) == written.batches
