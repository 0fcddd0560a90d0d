"""Small files with a good CRC and foreign content: a rebuild or a clear error, never a traceback."""

import contextlib
import json
import shutil
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from brokers.folder import FolderOfAnother, owned
from brokers.log.index import decode_index
from brokers.log.log import Log
from brokers.log.producers import decode_producers
from brokers.log.recovery.checkpoint import FILE_NAME, decode_checkpoint
from brokers.log.recovery.synced import SYNCED_NAME, decode_synced
from coordinators.dsbs.disk import Disk
from coordinators.errors import NotEnoughBrokers, Unreadable
from coordinators.offsets import OffsetTable
from coordinators.static.coordinator import StaticCoordinator
from tests.contract.backend import Journals, MemoryJournal, addressed, asynchronous
from tests.unit.brokers.log.batches import SMALL, Written, abandon, batch, opened, readable
from tests.unit.coordinators.static.test_coordinator import setup

HUGE = st.sampled_from([-(2**63), -1, 2**31, 2**62, 2**63 - 1, 2**63, 2**64, 10**4000])
SCALARS = st.none() | st.booleans() | st.integers(-2, 40) | HUGE | st.floats() | st.text(max_size=5)
ANY = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
CHECKPOINTS = ANY | st.fixed_dictionaries(
    {"version": st.just(1) | ANY},
    optional={
        "recovered_offset": st.integers(0, 40) | ANY,
        "clean_end": st.none() | st.integers(0, 40) | ANY,
        "start_offset": st.none() | st.integers(0, 40) | ANY,
        "epochs": st.lists(st.tuples(st.integers(0, 5), st.integers(0, 40)) | ANY, max_size=3) | ANY,
    },
)
NUMBERS = st.integers(-3, 3000) | st.sampled_from([-(2**63), 2**62, 2**63 - 1])
MANY = settings(max_examples=100, deadline=None)


def dumped(content: object) -> bytes:
    return json.dumps(content).encode(errors="surrogatepass")


@contextlib.contextmanager
def stopped_log(in_order: bool, *, idempotent: bool = True) -> Iterator[tuple[Path, list[bytes]]]:
    """A folder with a log of three segments or so."""
    directory = Path(tempfile.mkdtemp(prefix="foreign-"))
    try:
        written = Written(opened(directory / "log", SMALL))
        for number in range(12):
            if idempotent:
                data, header = batch(b"x" * 50, producer=(5, 0, number))
                written.log.append([(data, header)], number // 5)
                written.batches.append(bytes(data))
            else:
                written.append(b"x" * 50)
        if in_order:
            written.log.close()
        else:
            abandon(written.log)
        yield directory / "log", written.batches
    finally:
        shutil.rmtree(directory)


def assert_it_can_be_used(directory: Path, batches: list[bytes]) -> Log:
    """No wrong byte is served, and it can be started, read and written as often as one likes.

    A checkpoint that says of all batches that they are none of the log's has them set aside, and begins anew.
    """
    written: set[object] = set()
    for _ in range(2):
        log = opened(directory, SMALL)
        found, _ = readable_near(log, len(batches))
        old = {offset: data for offset, data in found.items() if offset < len(batches) and offset not in written}
        assert all(batches[offset] == data for offset, data in old.items())
        written.update(log.append([batch(b"v", producer=(5, 3, 0))], 100))
        log.reader.batch_for_timestamp(5)
        log.retain(1)
        assert log.close()
    return log


def readable_near(log: Log, count: int) -> tuple[dict[int, bytes], list[tuple[int, int]]]:
    return readable(log) if log.end_offset < 100 * count else ({}, [])


@MANY
@given(content=CHECKPOINTS, in_order=st.booleans())
def test_a_checkpoint_of_foreign_content_is_made_again(content: object, in_order: bool) -> None:
    body = dumped(content) + b"\n"
    with stopped_log(in_order) as (directory, batches):
        (directory / FILE_NAME).write_bytes(b"%08x\n%s" % (crc32c(body), body))
        assert_it_can_be_used(directory, batches)


@given(content=st.binary(max_size=40))
def test_a_checkpoint_that_is_no_json_is_none(content: bytes) -> None:
    assert decode_checkpoint(b"%08x\n%s" % (crc32c(content), content)) is None


@pytest.mark.parametrize(
    "body", [b"[" * 100_000, b'{"version":1,"recovered_offset":' + b"9" * 5000 + b"}", b"\xff", b""]
)
def test_a_checkpoint_that_json_cannot_read_is_none(body: bytes) -> None:
    assert decode_checkpoint(b"%08x\n%s" % (crc32c(body), body)) is None


@MANY
@given(offset=NUMBERS, form=st.sampled_from([b"BLSYN1\n\0", b"\0" * 8]), in_order=st.booleans())
def test_a_synced_record_of_foreign_content_is_not_believed(offset: int, form: bytes, in_order: bool) -> None:
    body = struct.pack(">8sq", form, offset)
    data = body + struct.pack(">I", crc32c(body))
    assert decode_synced(data) == (offset if 0 <= offset <= 2**62 and form == b"BLSYN1\n\0" else None)
    with stopped_log(in_order) as (directory, batches):
        (directory / SYNCED_NAME).write_bytes(data)
        assert_it_can_be_used(directory, batches)


@MANY
@given(
    extent=st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS),
    columns=st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), max_size=4),
    fits=st.booleans(),
)
def test_an_index_of_foreign_content_is_made_again(
    extent: tuple[int, int, int, int], columns: list[tuple[int, int, int]], fits: bool
) -> None:
    with stopped_log(in_order=True) as (directory, batches):
        path = min(directory.glob("*.index"))
        if fits:  # the extent is right, the columns are not
            decoded = decode_index(path.read_bytes(), 100)
            assert decoded is not None
            true = decoded[1]
            extent = (true.base_offset, true.end_offset, true.size, true.timestamp_max)
        body = struct.pack("<8sqqqqI", path.read_bytes()[:8], *extent, len(columns))
        for column in zip(*columns, strict=True):
            body += struct.pack(f"={len(columns)}q", *column)
        path.write_bytes(body + struct.pack("<I", crc32c(body)))
        log = opened(directory, SMALL)
        found, _ = readable(log)
        assert found == dict(enumerate(batches))
        abandon(log)
        assert_it_can_be_used(directory, batches)


@MANY
@given(
    count=st.integers(0, 5) | st.just(2**32 - 1),
    producer=st.tuples(st.integers(-2, 9), st.integers(-2, 9), st.integers(-2, 9), st.integers(0, 255)),
    batches=st.binary(max_size=100),
)
def test_a_producer_snapshot_of_foreign_content_is_made_again(
    count: int, producer: tuple[int, int, int, int], batches: bytes
) -> None:
    with stopped_log(in_order=True) as (directory, stored):
        path = max(directory.glob("*.producers"))
        body = struct.pack(">8sqI", b"BLPRD1\n\0", int(path.stem), count) + struct.pack(">qhqB", *producer) + batches
        path.write_bytes(body + struct.pack(">I", crc32c(body)))
        log = assert_it_can_be_used(directory, stored)
        assert log.end_offset >= len(stored)


@given(st.binary(max_size=200))
def test_a_producer_snapshot_of_any_bytes_is_read_or_none(content: bytes) -> None:
    body = struct.pack(">8sq", b"BLPRD1\n\0", 7) + content
    decode_producers(body + struct.pack(">I", crc32c(body)), 7, 10)


TOPICS = ANY | st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["t", "", "../../x", "a/b", "x" * 300]) | ANY,
        "partitions": st.integers(0, 3) | ANY,
        "replication_factor": st.integers(0, 3) | ANY,
        "settings": st.dictionaries(st.sampled_from(["fetch_records_max", "retention_ms", "x"]), ANY, max_size=2) | ANY,
        "life": st.sampled_from(["1", "-1", "x"]) | ANY,
    },
)


@MANY
@given(content=TOPICS)
@asynchronous
async def test_a_topic_of_foreign_content_is_a_clear_error(content: object) -> None:
    journals = Journals()
    journals.of(addressed(1))("topics").append(dumped(content))
    coordinator = StaticCoordinator(setup(journals))
    with contextlib.suppress(Unreadable, NotEnoughBrokers):
        await coordinator.start()
        assert all("/" not in name for name in coordinator.view().topics)
        await coordinator.create_topic("another", 1, 1)


@MANY
@given(content=ANY | st.tuples(*[ANY] * 8) | st.tuples(*[st.sampled_from(["g", "1", 1, -1, 2**63])] * 8))
def test_a_commit_of_foreign_content_is_a_clear_error(content: object) -> None:
    journal = MemoryJournal()
    journal.append(dumped(content))
    with contextlib.suppress(Unreadable):
        table = OffsetTable(journal, lambda _: "1")
        assert all(0 <= place.offset < 2**63 for place in table.committed("g").values())


@MANY
@given(content=ANY | st.lists(st.sampled_from(["m", "t", "l", "o"]) | ANY, min_size=1, max_size=10))
def test_a_row_of_foreign_content_is_a_clear_error(content: object) -> None:
    for name in ("tables", "offsets"):
        journals = {"tables": MemoryJournal(), "offsets": MemoryJournal()}
        journals[name].append(dumped(content))
        with contextlib.suppress(Unreadable):
            Disk(journals.__getitem__)


@given(content=(ANY | st.fixed_dictionaries({"broker": ANY})).map(dumped) | st.binary() | st.just(b"[" * 99_999))
def test_an_owner_of_foreign_content_is_a_clear_error(content: bytes) -> None:
    folder = Path(tempfile.mkdtemp(prefix="foreign-"))
    try:
        (folder / "broker.json").write_bytes(content)
        with contextlib.suppress(FolderOfAnother):
            owned(folder, 1)
    finally:
        shutil.rmtree(folder)
