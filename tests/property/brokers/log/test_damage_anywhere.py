"""Logs that were killed and then damaged in several places, some of their small files gone."""

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from brokers.log.log import Log
from brokers.log.recovery.checkpoint import FILE_NAME
from brokers.log.recovery.synced import SYNCED_NAME
from brokers.wire.batch import HEADER_BYTES, parse_header
from tests.unit.brokers.log.batches import SMALL, Written, abandon, opened, readable

COUNT = 24
EPOCH_END = 16
CONFIG = replace(
    SMALL, index_interval_bytes=1
)  # each batch has an entry, so in a segment in doubt it is lost alone too
LOST = st.sets(st.sampled_from([FILE_NAME, "*.index", "*.producers"]))
PLACES = st.lists(st.tuples(st.integers(0, COUNT - 1), st.integers(0, 10_000)), max_size=6)
MANY = settings(max_examples=60, deadline=None)


@dataclass
class Stored:
    """Where each batch lies on the disk."""

    path: Path
    position: int
    size: int


@contextlib.contextmanager
def killed(segment_bytes: int, synced: int, epochs: int) -> Iterator[tuple[Path, Written, list[Stored]]]:
    directory = Path(tempfile.mkdtemp(prefix="anywhere-")) / "log"
    config = replace(CONFIG, segment_bytes=segment_bytes)
    written = Written(opened(directory, config))
    for number in range(COUNT):
        written.append(bytes([number]) * (20 + number), epoch=number // epochs)
        if number == synced - 1:
            written.log.syncing.flush()
    abandon(written.log)
    stored = []
    for path in sorted(directory.glob("*.log")):
        data, position = path.read_bytes(), 0
        while position < len(data):
            size = parse_header(data, position).size
            stored.append(Stored(path, position, size))
            position += size
    assert len(stored) == COUNT
    try:
        yield directory, written, stored
    finally:
        shutil.rmtree(directory.parent)


def damage(stored: Stored, at: int, length: int = 1) -> None:
    with stored.path.open("r+b") as file:
        file.seek(stored.position + at)
        found = file.read(length)
        file.seek(stored.position + at)
        file.write(bytes(byte ^ 0x40 for byte in found))


def recovered(directory: Path) -> tuple[Log, dict[int, bytes], set[int]]:
    log = opened(directory, CONFIG)
    found, ranges = readable(log)
    return log, found, {offset for begin, end in ranges for offset in range(begin, end)}


def check(directory: Path, written: Written, promised: int) -> tuple[Log, set[int]]:
    """What holds whatever was damaged; the log and the offsets that are lost."""
    log, found, damaged = recovered(directory)
    assert all(written.batches[offset] == data for offset, data in found.items())
    assert log.end_offset >= promised
    assert set(range(promised)) <= found.keys() | damaged
    assert all(cut.offset >= promised for cut in log.recovery.cuts)
    abandon(log)
    again, found_again, damaged_again = recovered(directory)
    assert (again.end_offset, found_again, damaged_again) == (log.end_offset, found, damaged)
    assert again.recovery.cuts == ()
    assert {(one.begin, one.end) for one in log.recovery.damaged} >= {
        (one.begin, one.end) for one in again.recovery.damaged
    }
    abandon(again)
    return log, set(range(COUNT)) - found.keys()


@MANY
@given(
    places=PLACES, lost=LOST, synced=st.integers(0, COUNT), epochs=st.integers(1, 30),
    segment_bytes=st.sampled_from([400, 1200, 100_000]),
)  # fmt: skip
def test_damaged_payloads_cost_themselves_alone(
    places: list[tuple[int, int]], lost: set[str], synced: int, epochs: int, segment_bytes: int
) -> None:
    with killed(segment_bytes, synced, epochs) as (directory, written, stored):
        for pattern in lost:
            for path in directory.glob(pattern):
                path.unlink()
        for number, at in dict(places).items():
            damage(stored[number], HEADER_BYTES + at % (stored[number].size - HEADER_BYTES))
        log, gone = check(directory, written, synced)
        assert gone == {number for number, _ in places}
        assert log.end_offset == COUNT or all(offset in gone for offset in range(log.end_offset, COUNT))


@MANY
@given(
    places=st.lists(st.tuples(st.integers(0, COUNT - 1), st.integers(0, 200), st.integers(1, 300)), max_size=4),
    lost=LOST, without=st.sets(st.integers(0, 6), max_size=2), no_record=st.booleans(),
    synced=st.integers(0, COUNT), epochs=st.integers(1, 30), segment_bytes=st.sampled_from([400, 1200, 100_000]),
)  # fmt: skip
def test_whatever_is_damaged_what_was_synced_is_served_or_named(
    places: list[tuple[int, int, int]],
    lost: set[str],
    without: set[int],
    no_record: bool,
    synced: int,
    epochs: int,
    segment_bytes: int,
) -> None:
    """Headers, several batches at once, and segments that are gone; without the record nothing may be promised.

    A flipped epoch is known by the checkpoint alone, so without one no damage begins in front of it.
    """
    with killed(segment_bytes, synced, epochs) as (directory, written, stored):
        for number, at, length in places:
            first = EPOCH_END if FILE_NAME in lost else 0
            damage(stored[number], first + at % (stored[number].size - first), length)
        for pattern in lost:
            for path in directory.glob(pattern):
                path.unlink()
        segments = sorted(directory.glob("*.log"))
        for number in without:
            if 0 < number < len(segments):  # that the first is gone is another test's
                segments[number].unlink()
        if no_record:
            (directory / SYNCED_NAME).unlink(missing_ok=True)
        check(directory, written, 0 if no_record else synced)
