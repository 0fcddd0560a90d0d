"""Large answers to fetches, which leave from the file itself."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from brokers.listeners.config import ListenerLimits
from brokers.log.config import LogConfig
from brokers.log.errors import LogDiskFailed
from brokers.log.files import OsFiles
from brokers.replication.replica import Replica
from brokers.wire.apis.metadata import MetadataRequest
from brokers.wire.apis.table import ApiKey
from brokers.wire.batch import check_produced, decode_records, parse_header
from tests.integration.kafka.raw import batch, fetch_request, fetched, request
from tests.unit.brokers.listeners.harness import Client, Harness, listening, run, turn, until
from tests.unit.brokers.replication.held import led

MIB = 1024 * 1024
BATCH_BYTES_MAX = 16 * MIB
# More than a socket takes from a client that does not read.
VALUES = [bytes([number]) * (8 * MIB) for number in range(3)]
ALL = 64 * MIB
MANY_TURNS = 200


def filled(harness: Harness) -> Replica:
    """The partition `one`-0 with a batch for each of `VALUES`."""
    held = harness.store.partition("one", 0)
    assert held is not None
    for value in VALUES:
        data = bytearray(batch(value))
        held.append([(data, check_produced(data, BATCH_BYTES_MAX))], led(held))
    return held


def values(records: bytes) -> list[bytes | None]:
    found, position = [], 0
    while position < len(records):
        size = parse_header(records, position).size
        found += [record.value for record in decode_records(records[position : position + size])]
        position += size
    return found


def metadata(correlation_id: int) -> bytes:
    return request(ApiKey.METADATA, 5, MetadataRequest(topics=()), correlation_id)


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def half_sent(harness: Harness) -> Client:
    """A client that has asked for everything and reads nothing of the answer that is on its way."""
    client = await harness.connect()
    asked = harness.metrics.fetch.requests
    client.send(fetch_request("one", 0, bytes_max=ALL))
    await until(lambda: harness.metrics.fetch.requests > asked)
    for _ in range(MANY_TURNS):
        await turn()
    return client


def test_a_large_answer_is_whole_and_what_follows_it_keeps_its_place(tmp_path: Path) -> None:
    async def work() -> None:
        async with listening(tmp_path) as harness:
            filled(harness)
            client = await half_sent(harness)
            client.send(metadata(7), fetch_request("one", 2, bytes_max=ALL, correlation_id=8), metadata(9))
            error, high, records = fetched(await client.receive())
            assert (error, high, values(records)) == (0, 3, VALUES)
            assert [int.from_bytes((await client.receive())[:4]) for _ in range(3)] == [7, 8, 9]

    run(work())


def test_an_answer_on_its_way_outlives_its_topic(tmp_path: Path) -> None:
    async def work() -> None:
        async with listening(tmp_path) as harness:
            filled(harness)
            client = await half_sent(harness)
            await harness.topics.delete("one")
            assert values(fetched(await client.receive())[2]) == VALUES

    run(work())


def test_a_log_that_is_cut_ends_the_answer_instead_of_going_on_with_other_bytes(tmp_path: Path) -> None:
    async def work() -> None:
        async with listening(tmp_path) as harness:
            held = filled(harness)
            client = await half_sent(harness)
            held.log.truncate_to(1)
            filled(harness)
            with pytest.raises(asyncio.IncompleteReadError):
                await client.receive()

    run(work())


def test_a_client_that_closes_gets_the_rest_of_its_answer_first(tmp_path: Path) -> None:
    async def work() -> None:
        async with listening(tmp_path) as harness:
            filled(harness)
            client = await half_sent(harness)
            client.writer.write_eof()
            assert values(fetched(await client.receive())[2]) == VALUES
            assert await client.ended()

    run(work())


def test_a_malformed_request_behind_it_does_not_cut_an_answer_off(tmp_path: Path) -> None:
    async def work() -> None:
        async with listening(tmp_path) as harness:
            filled(harness)
            client = await half_sent(harness)
            client.send(b"\xff\xff\xff\xff")
            await until(lambda: harness.metrics.refused)
            assert values(fetched(await client.receive())[2]) == VALUES
            assert await client.ended()

    run(work())


def test_what_comes_behind_a_malformed_request_does_not_cut_an_answer_off(tmp_path: Path) -> None:
    async def work() -> None:
        async with listening(tmp_path) as harness:
            filled(harness)
            client = await half_sent(harness)
            client.send(b"\xff\xff\xff\xff")
            await until(lambda: harness.metrics.refused)
            client.send(metadata(7))
            for _ in range(MANY_TURNS):
                await turn()
            assert values(fetched(await client.receive())[2]) == VALUES
            assert await client.ended()

    run(work())


def test_a_disk_that_fails_half_way_ends_the_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        async with listening(tmp_path) as harness:
            filled(harness)
            monkeypatch.setattr(OsFiles, "send", staticmethod(lambda *_: 0))
            client = await harness.connect()
            client.send(fetch_request("one", 0, bytes_max=ALL))
            assert await client.ended()
            monkeypatch.undo()
            other = await harness.connect()
            other.send(fetch_request("one", 0, bytes_max=ALL))
            assert values(fetched(await other.receive())[2]) == VALUES

    run(work())


def test_behind_answers_that_wait_a_large_one_takes_its_turn(tmp_path: Path) -> None:
    async def work() -> None:
        limits = ListenerLimits(unsent_bytes_max=ALL)
        async with listening(tmp_path, limits=limits) as harness:
            held = filled(harness)
            small = bytearray(batch(bytes(300 * 1024)))
            for _ in range(40):
                held.append([(small, check_produced(small, BATCH_BYTES_MAX))], led(held))
            client = await harness.connect()
            client.send(*(fetch_request("one", 3 + n, bytes_max=300 * 1024, correlation_id=n) for n in range(40)))
            client.send(fetch_request("one", 0, bytes_max=20 * MIB, correlation_id=40))
            answers = [await client.receive() for _ in range(41)]
            assert [int.from_bytes(answer[:4]) for answer in answers] == list(range(41))
            assert values(fetched(answers[-1])[2]) == VALUES[:2]

    run(work())


def test_handles_of_answers_go_with_them(tmp_path: Path) -> None:
    async def work() -> None:
        async with listening(tmp_path, log=LogConfig(segment_bytes=MIB)) as harness:
            filled(harness)
            before = open_files()
            clients = [await half_sent(harness) for _ in range(3)]
            assert open_files() > before
            for client in clients:
                client.writer.transport.abort()
            await until(lambda: open_files() <= before)

    run(work())


def test_a_stretch_that_no_handle_is_left_for_is_a_disk_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(handle: int) -> int:
        raise OSError(24, "Too many open files")

    async def work() -> None:
        async with listening(tmp_path) as harness:
            held = filled(harness)
            monkeypatch.setattr(OsFiles, "duplicate", staticmethod(none_left))
            with pytest.raises(LogDiskFailed):
                held.lend(0, ALL, 0, 0)
            assert len(held.lend(0, MIB, 0, ALL)) == len(held.read(0, MIB))

    run(work())
