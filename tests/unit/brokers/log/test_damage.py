"""Damage is told from a torn tail: what was synced, or has good batches behind it, is named and never cut."""

import errno
import random
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from brokers.log.config import FsyncPolicy, LogConfig
from brokers.log.errors import LogUnreadable
from brokers.log.log import Log
from brokers.log.recovery.report import Damage
from brokers.notices import Notices
from brokers.wire.batch import parse_header
from tests.unit.brokers.log.batches import SMALL, Written, abandon, batch, everything, opened, readable
from tests.unit.brokers.log.faulty_files import FaultyFiles
from tests.unit.brokers.log.test_recovery import flip, position_of, segment_of

ALWAYS = replace(SMALL, segment_bytes=1 << 20, fsync=FsyncPolicy.ALWAYS)
ONE = f"{0:020}.log"


def killed(directory: Path, config: LogConfig, *, synced: int, batches: int = 30) -> Written:
    """A log of which the first `synced` batches were synced before its process was killed."""
    written = Written(opened(directory, config))
    for number in range(batches):
        written.append(b"%05d" % number + b"x" * 45)
        if number == synced - 1:
            written.log.syncing.flush()
    abandon(written.log)
    return written


def assert_all_is_served_but(directory: Path, config: LogConfig, written: Written, lost: set[int]) -> Log:
    """Over several starts: the same batches, the same damage, the same end, and nothing is cut."""
    for _ in range(3):
        log = opened(directory, config)
        found, damaged = readable(log)
        assert found == {number: data for number, data in enumerate(written.batches) if number not in lost}
        assert {offset for begin, end in damaged for offset in range(begin, end)} == lost
        assert log.end_offset == len(written.batches)
        assert not log.recovery.cuts
        abandon(log)
    return log


@pytest.mark.parametrize("synced", [0, 15, 30])
@pytest.mark.parametrize("segment_bytes", [600, 1 << 20])
@pytest.mark.parametrize("position", [0, 3, 8, 11, 12, 16, 18, 26, 57, 80])
@pytest.mark.parametrize("offset", [0, 11, 14])
def test_a_flipped_bit_in_what_was_not_closed_costs_its_own_batch_alone(
    tmp_path: Path, offset: int, position: int, segment_bytes: int, synced: int
) -> None:
    config = replace(ALWAYS, segment_bytes=segment_bytes)
    written = killed(tmp_path, config, synced=synced)
    path = segment_of(tmp_path, offset)
    flip(path, position_of(path, offset) + position)
    before = path.read_bytes()
    assert_all_is_served_but(tmp_path, config, written, {offset})
    assert path.read_bytes() == before


def test_the_damage_is_told_with_partition_offsets_and_place(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    killed(tmp_path / "t-0", ALWAYS, synced=30)
    path = tmp_path / "t-0" / ONE
    flip(path, position_of(path, 11) + 80)
    notices = Notices()
    log = Log.open(tmp_path / "t-0", ALWAYS, now_ms=0, notices=notices)
    position = position_of(path, 11)
    assert log.recovery.damaged == (Damage(11, 12, f"{ONE} at byte {position}"),)
    (line,) = [record.getMessage() for record in caplog.records]
    place = f"offsets 11 to 11 are damaged on disk ({ONE} at byte {position}); the bytes stay there"
    assert line == f"broker: {tmp_path / 't-0'}: {place}"
    assert notices.counts == {"damaged_offsets": 1}
    with pytest.raises(LogUnreadable, match="reading goes on at 12"):
        log.reader.read(11, 100)
    assert notices.counts == {"damaged_offsets": 1}, "a reader that comes there is told, and nobody else again"


def test_damage_in_a_segment_that_no_start_scans_is_told_when_it_is_found(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    written = killed(tmp_path, ALWAYS, synced=30)
    written.log = opened(tmp_path, ALWAYS)
    written.log.close()
    flip(tmp_path / ONE, position_of(tmp_path / ONE, 11) + 80)
    notices = Notices()
    log = Log.open(tmp_path, ALWAYS, now_ms=0, notices=notices)
    assert not caplog.records
    readable(log)
    readable(log)
    assert len(caplog.records) == 1
    assert notices.counts["damaged_offsets"] >= 1


def test_the_last_batches_are_damaged_if_they_were_synced_and_torn_if_not(tmp_path: Path) -> None:
    written = killed(tmp_path / "synced", ALWAYS, synced=30)
    path = tmp_path / "synced" / ONE
    flip(path, position_of(path, 29) + 80)
    log = assert_all_is_served_but(tmp_path / "synced", ALWAYS, written, {29})
    assert log.end_offset == 30
    written = killed(tmp_path / "torn", ALWAYS, synced=29)
    path = tmp_path / "torn" / ONE
    flip(path, position_of(path, 29) + 80)
    tail = path.read_bytes()[position_of(path, 29) :]
    log = opened(tmp_path / "torn", ALWAYS)
    (cut,) = log.recovery.cuts
    assert (cut.offset, cut.bytes, cut.kept_in) == (29, len(tail), f"{29:020}.cut")
    assert (tmp_path / "torn" / f"{29:020}.cut").read_bytes() == tail
    assert everything(log) == written.batches[:29]
    assert log.append([batch(b"goes on")], 0) == [29]


@pytest.mark.parametrize("left", [1, 30, 60, 61, 80, 116])
def test_a_batch_whose_end_was_never_written_is_cut_and_not_kept(
    tmp_path: Path, left: int, caplog: pytest.LogCaptureFixture
) -> None:
    killed(tmp_path, ALWAYS, synced=29)
    path = tmp_path / ONE
    path.write_bytes(path.read_bytes()[: position_of(path, 29) + left])
    log = opened(tmp_path, ALWAYS)
    assert [(cut.offset, cut.bytes, cut.kept_in) for cut in log.recovery.cuts] == [(29, left, None)]
    assert not list(tmp_path.glob("*.cut"))
    assert f"{left} bytes of {ONE} behind offset 29 were cut off (an incomplete last batch)" in caplog.text


@pytest.mark.parametrize("left", [0, 1, 30, 61, 80])
def test_what_was_synced_and_is_not_there_is_missing_and_its_offsets_are_not_given_out_again(
    tmp_path: Path, left: int
) -> None:
    written = killed(tmp_path, ALWAYS, synced=30)
    path = tmp_path / ONE
    path.write_bytes(path.read_bytes()[: position_of(path, 27) + left])
    assert_all_is_served_but(tmp_path, ALWAYS, written, {27, 28, 29})
    assert opened(tmp_path, ALWAYS).append([batch(b"later")], 0) == [30]


@pytest.mark.parametrize("zeros", [1, 61, 4096])
def test_zeros_behind_the_end_as_a_power_cut_leaves_them_are_cut(tmp_path: Path, zeros: int) -> None:
    written = killed(tmp_path, ALWAYS, synced=20)
    with (tmp_path / ONE).open("ab") as file:
        file.write(bytes(zeros))
    log = opened(tmp_path, ALWAYS)
    assert [(cut.bytes, cut.kept_in) for cut in log.recovery.cuts] == [(zeros, None)]
    assert everything(log) == written.batches


def test_a_page_of_zeros_in_the_middle_costs_the_batches_in_it(tmp_path: Path) -> None:
    written = killed(tmp_path, ALWAYS, synced=30)
    path = tmp_path / ONE
    data = bytearray(path.read_bytes())
    begin, end = position_of(path, 5) + 20, position_of(path, 12) + 20
    data[begin:end] = bytes(end - begin)
    path.write_bytes(data)
    assert_all_is_served_but(tmp_path, ALWAYS, written, set(range(5, 13)))


@pytest.mark.parametrize("synced", [0, 30])
@pytest.mark.parametrize("without", [[], ["checkpoint"], ["synced"], ["*.index"], ["checkpoint", "*.index"]])
def test_several_damaged_places_in_several_segments_cost_themselves_alone(
    tmp_path: Path, without: list[str], synced: int
) -> None:
    config = replace(ALWAYS, segment_bytes=600)
    written = killed(tmp_path, config, synced=synced)
    for offset in (1, 2, 7, 13, 21):
        path = segment_of(tmp_path, offset)
        flip(path, position_of_broken(path, offset) + 80)
    for pattern in without:
        for path in tmp_path.glob(pattern):
            path.unlink()
    assert_all_is_served_but(tmp_path, config, written, {1, 2, 7, 13, 21})


def position_of_broken(path: Path, offset: int) -> int:
    """All batches are of one size here."""
    return (offset - int(path.stem)) * parse_header(path.read_bytes()).size


def test_a_segment_in_the_middle_that_is_gone_is_missing_whether_it_was_synced_or_not(tmp_path: Path) -> None:
    config = replace(ALWAYS, segment_bytes=600)
    for synced in (0, 30):
        directory = tmp_path / str(synced)
        written = killed(directory, config, synced=synced)
        path = segment_of(directory, 12)
        base, end = int(path.stem), min(int(other.stem) for other in directory.glob("*.log") if other > path)
        path.unlink()
        log = assert_all_is_served_but(directory, config, written, set(range(base, end)))
        assert log.recovery.damaged[0].missing


@pytest.mark.parametrize("stop", [Log.close, abandon])
def test_a_first_segment_that_is_gone_is_told_at_each_start(
    tmp_path: Path, stop: Callable[[Log], object], caplog: pytest.LogCaptureFixture
) -> None:
    config = replace(ALWAYS, segment_bytes=600)
    written = Written(opened(tmp_path, config))
    for _ in range(30):
        written.append(b"x" * 50)
    written.log.syncing.flush()
    stop(written.log)
    min(tmp_path.glob("*.log")).unlink()
    begin = int(min(tmp_path.glob("*.log")).stem)
    for _ in range(2):
        log = opened(tmp_path, config)
        assert log.start_offset == begin
        assert log.recovery.missing_front == Damage(0, begin, f"nothing before {begin:020}.log")
        assert caplog.records[-1].getMessage().startswith(f"broker: {tmp_path}: offsets 0 to {begin - 1} are missing")
        stop(log)


def test_what_retention_removed_is_not_missed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = replace(ALWAYS, segment_bytes=600, retention_bytes=700)
    written = Written(opened(tmp_path, config))
    for _ in range(30):
        written.append(b"x" * 50)
    assert written.log.retain(0) > 0
    abandon(written.log)
    log = opened(tmp_path, config)
    assert log.start_offset > 0
    assert log.recovery.missing_front is None
    assert not caplog.records


@pytest.mark.parametrize("stop", [Log.close, abandon])
def test_a_log_of_which_all_segments_are_gone_goes_on_where_it_ended(
    tmp_path: Path, stop: Callable[[Log], object]
) -> None:
    written = Written(opened(tmp_path, ALWAYS))
    for _ in range(30):
        written.append(b"v")
    written.log.syncing.flush()
    stop(written.log)
    (tmp_path / ONE).unlink()
    for _ in range(2):
        log = opened(tmp_path, ALWAYS)
        assert (log.start_offset, log.end_offset) == (30, 30)
        assert log.recovery.missing_front is not None
        abandon(log)
    assert opened(tmp_path, ALWAYS).append([batch()], 0) == [30]


def test_the_last_segment_cut_short_after_a_stop_in_order_is_damaged_there(tmp_path: Path) -> None:
    written = Written(opened(tmp_path))
    for _ in range(30):
        written.append(b"x" * 50)
    written.log.close()
    path = max(tmp_path.glob("*.log"))
    path.write_bytes(path.read_bytes()[:-1])
    assert not opened(tmp_path).recovery.clean
    assert_all_is_served_but(tmp_path, SMALL, written, {29})


def test_segments_behind_the_end_that_hold_nothing_good_are_set_aside(tmp_path: Path) -> None:
    """As a power cut may leave them: a segment's end and all behind it never reached the disk."""
    written = killed(tmp_path, replace(ALWAYS, segment_bytes=600), synced=3, batches=9)
    first, second, *_ = sorted(tmp_path.glob("*.log"))
    first.write_bytes(first.read_bytes()[:-1])
    second.write_bytes(b"nothing that is a batch" * 10)
    log = opened(tmp_path, ALWAYS)
    kept = [data for data in written.batches if data in first.read_bytes()]
    assert everything(log) == kept
    assert log.end_offset == len(kept) >= 3
    assert {cut.kept_in for cut in log.recovery.cuts} == {None, second.with_suffix(".cut").name}
    assert not second.exists()
    abandon(log)
    assert not opened(tmp_path, ALWAYS).recovery.cuts


def test_batches_inside_a_torn_batch_are_not_taken_for_the_logs_own(tmp_path: Path) -> None:
    log = opened(tmp_path, ALWAYS)
    log.append([batch(b"one")], 0)
    inner = bytearray()
    for number in range(5):
        data, _ = batch(b"inner")
        struct.pack_into(">q", data, 0, 10 + number)
        struct.pack_into(">i", data, 12, 0)
        inner += data
    log.append([batch(bytes(inner))], 0)
    log.append([batch(b"three")], 0)
    abandon(log)
    path = tmp_path / ONE
    torn = position_of(path, 1) + 61 + len(inner) - 20
    path.write_bytes(path.read_bytes()[:torn])
    log = opened(tmp_path, ALWAYS)
    assert log.end_offset == 1
    assert [cut.offset for cut in log.recovery.cuts] == [1]


def test_batches_inside_a_damaged_batch_are_not_taken_for_the_logs_own(tmp_path: Path) -> None:
    log = opened(tmp_path, ALWAYS)
    inner = b"".join(bytes(batch(b"inner")[0]) for _ in range(3))
    log.append([batch(bytes(7) + b"\1" + inner[8:])], 0)
    log.append([batch(b"two")], 0)
    abandon(log)
    flip(tmp_path / ONE, 30)
    assert readable(opened(tmp_path, ALWAYS))[1] == [(0, 1)]


def test_idempotent_producers_behind_damage_are_remembered(tmp_path: Path) -> None:
    log = opened(tmp_path, ALWAYS)
    for number in range(20):
        log.append([batch(b"x" * 50, producer=(1, 0, number))], 0)
    log.syncing.flush()
    abandon(log)
    path = tmp_path / ONE
    flip(path, position_of(path, 3) + 80)
    for _ in range(2):
        log = opened(tmp_path, ALWAYS)
        assert log.append([batch(b"x" * 50, producer=(1, 0, 19))], 0) == [19]
        abandon(log)


def test_epochs_behind_damage_are_still_known(tmp_path: Path) -> None:
    written = Written(opened(tmp_path, ALWAYS))
    for number in range(20):
        written.append(b"x" * 50, epoch=number // 4)
    written.log.syncing.flush()
    abandon(written.log)
    path = tmp_path / ONE
    flip(path, position_of(path, 8) + 9)  # the length of an epoch's first batch
    log = assert_all_is_served_but(tmp_path, ALWAYS, written, {8})
    assert log.epochs.end_of(2, log.end_offset) == (2, 12)


def test_a_cut_lowers_what_is_promised_before_anything_is_cut(tmp_path: Path) -> None:
    written = killed(tmp_path, ALWAYS, synced=30)
    written.log = opened(tmp_path, ALWAYS)
    written.log.truncate_to(10)
    del written.batches[10:]
    written.append(b"of the new leader")
    abandon(written.log)
    with (tmp_path / ONE).open("ab") as file:
        file.write(written.batches[0][:70])
    log = opened(tmp_path, ALWAYS)
    assert everything(log) == written.batches
    assert log.recovery.damaged == ()


def test_a_read_only_disk_serves_around_damage(tmp_path: Path) -> None:
    written = killed(tmp_path, ALWAYS, synced=30)
    flip(tmp_path / ONE, position_of(tmp_path / ONE, 11) + 80)
    files = FaultyFiles()
    files.fail("make_directory", "open_append", "open_replace", "open_update", "unlink", "rename", error=errno.EROFS)
    log = opened(tmp_path, ALWAYS, files)
    assert readable(log)[1] == [(11, 12)]
    abandon(log)
    assert_all_is_served_but(tmp_path, ALWAYS, written, {11})


def test_random_bytes_are_never_a_log_and_are_kept(tmp_path: Path) -> None:
    content = random.Random(1).randbytes(3_000_000)
    (tmp_path / ONE).write_bytes(content)
    log = opened(tmp_path, ALWAYS)
    assert (log.start_offset, log.end_offset) == (0, 0)
    assert (tmp_path / f"{0:020}.cut").read_bytes() == content
