"""Starting again: after a stop in order, after a crash, and with files that are not what they were."""

import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from brokers.log.config import FsyncPolicy
from brokers.log.errors import LogUnreadable
from brokers.log.index import Extent, Index, decode_index
from brokers.log.log import Log
from brokers.log.recovery.checkpoint import Checkpoint, decode_checkpoint, encode_checkpoint
from brokers.wire.batch import parse_header
from tests.unit.brokers.log.batches import SMALL, Written, abandon, batch, everything, offsets, opened, readable
from tests.unit.brokers.log.faulty_files import FaultyFiles


def several_segments(directory: Path) -> Written:
    """Thirty batches of 117 bytes, five in each segment."""
    written = Written(opened(directory))
    for number in range(30):
        written.append(b"%05d" % number + b"x" * 45)
    return written


def segment_of(directory: Path, offset: int) -> Path:
    return max(path for path in directory.glob("*.log") if int(path.stem) <= offset)


def flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 0x10
    path.write_bytes(data)


def position_of(path: Path, offset: int) -> int:
    data, position = path.read_bytes(), 0
    while (header := parse_header(data, position)).base_offset < offset:
        position += header.size
    return position


def test_a_stop_in_order_needs_no_scan_and_proves_what_is_read(tmp_path: Path) -> None:
    written = several_segments(tmp_path)
    assert written.log.close()
    log = opened(tmp_path)
    assert log.recovery.clean
    assert log.recovery.scanned_bytes == 0
    assert everything(log) == written.batches
    assert all(segment.doubt is None for segment in log._segments)


def test_a_crash_costs_a_scan_of_what_was_not_synced_alone(tmp_path: Path) -> None:
    written = several_segments(tmp_path)
    flush = written.log.syncing.begin(sealed_only=True)
    assert flush is not None
    flush.run()
    written.log.syncing.end(flush)
    growing = max(tmp_path.glob("*.log")).stat().st_size
    abandon(written.log)
    log = opened(tmp_path)
    assert log.recovery.scanned_bytes == growing
    assert everything(log) == written.batches


@pytest.mark.parametrize("offset", [0, 1, 7, 13, 29])
def test_damage_after_a_stop_in_order_costs_its_own_place_and_names_it(tmp_path: Path, offset: int) -> None:
    written = several_segments(tmp_path)
    written.log.close()
    path = segment_of(tmp_path, offset)
    flip(path, position_of(path, offset) + 80)
    log = opened(tmp_path)
    found, damaged = readable(log)
    assert damaged == [(offset, offset + 1)]
    assert found == {number: data for number, data in enumerate(written.batches) if number != offset}
    with pytest.raises(LogUnreadable, match=f"offsets {offset} to {offset} are damaged on disk"):
        log.reader.read(offset, 100)


@pytest.mark.parametrize(
    ("form", "position", "value"),
    [(">q", 0, 8), (">i", 8, 104), (">i", 8, -1), (">i", 12, 1), (">b", 16, 1), (">i", 57, 2), (">i", 23, 5)],
)
def test_a_header_field_that_no_crc_covers_is_proven_too(tmp_path: Path, form: str, position: int, value: int) -> None:
    written = several_segments(tmp_path)
    written.log.close()
    path = segment_of(tmp_path, 7)
    data = bytearray(path.read_bytes())
    struct.pack_into(form, data, position_of(path, 7) + position, value)
    path.write_bytes(data)
    found, damaged = readable(opened(tmp_path))
    assert damaged == [(7, 8)]
    assert found == {number: data for number, data in enumerate(written.batches) if number != 7}


def test_what_is_appended_behind_damage_survives_a_crash(tmp_path: Path) -> None:
    written = several_segments(tmp_path)
    written.log.close()
    path = segment_of(tmp_path, 29)
    flip(path, position_of(path, 29) + 80)
    written.log = opened(tmp_path)
    assert written.append(b"behind the damage") == 30
    abandon(written.log)
    log = opened(tmp_path)
    assert log.end_offset == 31
    assert readable(log)[1] == [(29, 30)]
    assert log.reader.read(30, 1000) == written.batches[30]


@pytest.mark.parametrize(("damaged", "cut_at", "end"), [(7, 7, 7), (7, 6, 6), (7, 8, 8), (0, 0, 0), (5, 5, 5)])
def test_a_cut_in_damage_removes_the_damage(tmp_path: Path, damaged: int, cut_at: int, end: int) -> None:
    written = several_segments(tmp_path)
    written.log.close()
    path = segment_of(tmp_path, damaged)
    flip(path, position_of(path, damaged) + 80)
    written.log = opened(tmp_path)
    assert written.log.truncate_to(cut_at) == end
    del written.batches[end:]
    written.append(b"fetched again")
    found, still_damaged = readable(written.log)
    assert found == {number: data for number, data in enumerate(written.batches) if end <= damaged or number != damaged}
    assert still_damaged == ([] if end <= damaged else [(damaged, damaged + 1)])


def test_a_cut_in_a_missing_segment_ends_the_log_before_it(tmp_path: Path) -> None:
    written = several_segments(tmp_path)
    written.log.close()
    path = segment_of(tmp_path, 7)
    base = int(path.stem)
    path.unlink()
    log = opened(tmp_path)
    assert log.truncate_to(base + 1) == base
    assert everything(log) == written.batches[:base]


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("pattern", ["*.index", "*.producers", "checkpoint", "*.[icp]*"])
def test_lost_copies_are_made_again(tmp_path: Path, pattern: str, in_order: bool) -> None:
    written = several_segments(tmp_path)
    if in_order:
        written.log.close()
    else:
        abandon(written.log)
    for path in tmp_path.glob(pattern):
        path.unlink()
    written.log = opened(tmp_path)
    assert everything(written.log) == written.batches
    assert written.append(b"and on it goes") == 30


def test_indexes_of_other_segments_are_not_believed(tmp_path: Path) -> None:
    written = several_segments(tmp_path)
    written.log.close()
    one, other, *_ = sorted(tmp_path.glob("*.index"))
    content, of_other = one.read_bytes(), other.read_bytes()
    one.write_bytes(of_other)
    other.write_bytes(content)
    log = opened(tmp_path)
    assert [path.read_bytes() for path in (one, other)] == [content, of_other]
    assert everything(log) == written.batches


def test_an_index_of_another_last_segment_is_not_believed(tmp_path: Path) -> None:
    """One of the same beginning and of fewer bytes, as an old copy of a folder has it."""
    shorter, written = (Written(opened(tmp_path / name)) for name in ("shorter", "log"))
    for number in range(4):
        written.append(b"%d" % number)
    shorter.append(b"0")
    for one in (shorter, written):
        one.log.close()
    (index,) = (tmp_path / "shorter").glob("*.index")
    (tmp_path / "log" / index.name).write_bytes(index.read_bytes())
    log = opened(tmp_path / "log")
    assert log.end_offset == 4
    assert everything(log) == written.batches


def test_a_lost_index_of_a_damaged_segment_costs_no_more_than_the_damage(tmp_path: Path) -> None:
    written = several_segments(tmp_path)
    written.log.close()
    path = segment_of(tmp_path, 6)
    base = int(path.stem)
    path.with_suffix(".index").unlink()
    flip(path, position_of(path, base) + 80)
    for _ in range(2):
        log = opened(tmp_path)
        found, damaged = readable(log)
        assert damaged == [(base, base + 1)]
        assert found == {number: data for number, data in enumerate(written.batches) if number != base}
        log.close()


def test_a_missing_segment_is_a_damaged_range(tmp_path: Path) -> None:
    written = several_segments(tmp_path)
    written.log.close()
    path = segment_of(tmp_path, 7)
    base, end = int(path.stem), min(int(other.stem) for other in tmp_path.glob("*.log") if other > path)
    path.unlink()
    assert readable(opened(tmp_path))[1] == [(base, end)]


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.log").write_text("not a segment")
    (tmp_path / "checkpoint.new").write_text("left by a crash")
    opened(tmp_path).close()
    assert (tmp_path / "notes.log").exists()
    assert not (tmp_path / "checkpoint.new").exists()


def test_a_torn_epoch_list_does_not_end_the_log(tmp_path: Path) -> None:
    written = Written(opened(tmp_path))
    for epoch in (1, 2, 5):
        written.append(b"v", epoch=epoch)
    abandon(written.log)
    (tmp_path / "checkpoint").write_text("torn")
    log = opened(tmp_path)
    assert everything(log) == written.batches
    assert log.epochs.end_of(2, log.end_offset) == (2, 2)


def test_a_batch_of_an_epoch_that_never_began_is_not_taken(tmp_path: Path) -> None:
    written = Written(opened(tmp_path))
    written.append(b"good")
    end = (tmp_path / f"{0:020}.log").stat().st_size
    written.append(b"with another epoch")
    abandon(written.log)
    path = tmp_path / f"{0:020}.log"
    data = bytearray(path.read_bytes())
    struct.pack_into(">i", data, end + 12, 3)
    path.write_bytes(data)
    assert everything(opened(tmp_path)) == written.batches[:1]


def producers_of(log: Log) -> bytes:
    return log._producers.encode(0)


@pytest.mark.parametrize("stop", [Log.close, abandon])
@pytest.mark.parametrize("pattern", ["nothing", "*.producers"])
def test_idempotent_producers_are_remembered_over_a_restart(
    tmp_path: Path, stop: Callable[[Log], object], pattern: str
) -> None:
    log = opened(tmp_path)
    for number in range(20):
        log.append([batch(b"x" * 50, producer=(number % 3, 0, number // 3))], 0)
    before = producers_of(log)
    stop(log)
    for path in tmp_path.glob(pattern):
        path.unlink()
    log = opened(tmp_path)
    assert producers_of(log) == before
    assert offsets(log.append([batch(b"x" * 50, producer=(1, 0, 6))], 0)) == [19]


@pytest.mark.parametrize("offset", [0, 4, 11, 17])
def test_truncating_takes_producers_back_with_it(tmp_path: Path, offset: int) -> None:
    log = opened(tmp_path)
    for number in range(20):
        log.append([batch(b"x" * 50, producer=(1, 0, number))], 0)
    log.truncate_to(offset)
    assert log.append([batch(b"x" * 50, producer=(1, 0, offset))], 0) == [offset]
    abandon(log)
    log = opened(tmp_path)
    assert log.end_offset == offset + 1
    assert log.append([batch(b"x" * 50, producer=(1, 0, offset))], 0) == [offset]


def test_under_never_nothing_is_ever_synced(tmp_path: Path) -> None:
    files = FaultyFiles()
    log = opened(tmp_path, replace(SMALL, fsync=FsyncPolicy.NEVER), files)
    for epoch in range(20):
        log.append([batch(b"x" * 100)], epoch)
    log.truncate_to(10)
    log.close()
    assert not {"fsync", "fdatasync"} & set(files.calls)


def test_checkpoints_and_indexes_come_back_or_not_at_all() -> None:
    checkpoint = Checkpoint(12, None, ((0, 0), (3, 7)))
    index = Index(100)
    index.add(5, 0, -1)
    extent = Extent(5, 9, 300, 1_000)
    stored_checkpoint, stored_index = encode_checkpoint(checkpoint), index.encode(extent)
    assert decode_checkpoint(stored_checkpoint) == checkpoint
    decoded = decode_index(stored_index, 100)
    assert decoded is not None
    assert decoded[1] == extent
    for stored, decode in ((stored_checkpoint, decode_checkpoint), (stored_index, lambda data: decode_index(data, 1))):
        for position in range(len(stored)):
            changed = bytearray(stored)
            changed[position] ^= 1
            assert decode(bytes(changed)) is None
            assert decode(stored[:position]) is None


def test_one_read_proves_no_more_than_its_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = Written(opened(tmp_path, replace(SMALL, segment_bytes=100_000)))
    for _ in range(100):
        written.append(b"x" * 40)
    written.log.close()
    monkeypatch.setattr("brokers.log.recovery.lazy_check.PROVEN_AT_ONCE_BYTES_MAX", 1000)
    log = opened(tmp_path)
    assert 1000 <= len(log.reader.read(0, 100_000)) <= 1200
    assert everything(log, 100_000) == written.batches
    assert log.reader.read(0, 100_000) == b"".join(written.batches)
