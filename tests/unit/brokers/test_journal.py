"""The journal: what is appended survives, what a crash tears is cut off, what the disk refuses is told."""

from __future__ import annotations

import errno
import struct
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokers.journal import RECORD_BYTES_MAX, FileJournal
from brokers.notices import Notices
from coordinators.errors import JournalFailed
from tests.unit.brokers.log.faulty_files import Death, FaultyFiles

RECORDS = [b"one", b"two" * 100, b"three"]
FRAME = 8


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journals" / "topics.journal"


@pytest.fixture
def files() -> FaultyFiles:
    return FaultyFiles()


def written(path: Path, records: list[bytes], files: FaultyFiles | None = None) -> None:
    journal = FileJournal(path, durable=False, files=files or FaultyFiles())
    for record in records:
        journal.append(record)
    journal.close()


def read(path: Path) -> list[bytes]:
    journal = FileJournal(path, durable=False)
    records = list(journal.replay())
    journal.close()
    return records


def test_records_come_back_in_their_order(path: Path) -> None:
    written(path, RECORDS)
    written(path, [b"four"])
    assert read(path) == [*RECORDS, b"four"]


def test_records_are_replayed_once(path: Path) -> None:
    written(path, RECORDS)
    journal = FileJournal(path, durable=False)
    assert list(journal.replay()) == RECORDS
    assert list(journal.replay()) == []
    journal.close()


@given(st.lists(st.binary(min_size=1, max_size=50), max_size=6), st.data())
def test_a_tail_torn_at_any_byte_costs_the_torn_record_alone(
    tmp_path_factory: pytest.TempPathFactory, records: list[bytes], data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("torn") / "x.journal"
    written(path, records)
    content = path.read_bytes()
    cut = data.draw(st.integers(0, len(content)))
    path.write_bytes(content[:cut])
    whole, end = 0, 0
    while whole < len(records) and end + FRAME + len(records[whole]) <= cut:
        end += FRAME + len(records[whole])
        whole += 1
    assert read(path) == records[:whole]
    assert path.stat().st_size == end
    written(path, [b"after"])
    assert read(path) == [*records[:whole], b"after"]


@pytest.mark.parametrize("tail", [b"\0", b"\0" * 8, b"\0" * 4096, b"\xff" * 20, struct.pack(">II", 5, 1) + b"hello"])
def test_what_a_power_cut_leaves_at_the_end_is_cut_off(path: Path, tail: bytes) -> None:
    written(path, RECORDS)
    whole = path.read_bytes()
    path.write_bytes(whole + tail)
    assert read(path) == RECORDS
    assert path.read_bytes() == whole


@given(st.lists(st.binary(min_size=1, max_size=50), min_size=1, max_size=6), st.integers(0, 7), st.data())
def test_a_flipped_bit_costs_no_record_without_a_word_but_the_last(
    tmp_path_factory: pytest.TempPathFactory, records: list[bytes], bit: int, data: st.DataObject
) -> None:
    """In the last one it cannot be told from a tear."""
    path = tmp_path_factory.mktemp("flipped") / "x.journal"
    written(path, records)
    content = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= 1 << bit
    path.write_bytes(content)
    if at >= len(content) - FRAME - len(records[-1]):
        assert read(path) == records[:-1]
        return
    with pytest.raises(JournalFailed, match=r"x\.journal is damaged at byte"):
        FileJournal(path, durable=False)
    assert path.read_bytes() == content


@pytest.mark.parametrize("bit", range(32))
def test_a_damaged_length_does_not_pass_for_a_torn_tail(path: Path, bit: int) -> None:
    written(path, RECORDS)
    content = bytearray(path.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)
    with pytest.raises(JournalFailed, match=r"damaged at byte 0: restore it"):
        FileJournal(path, durable=False)
    assert path.read_bytes() == content


@given(st.lists(st.binary(min_size=1, max_size=50), min_size=1, max_size=6), st.data())
def test_a_last_record_of_which_only_the_beginning_was_written_into_zeros_is_cut_off(
    tmp_path_factory: pytest.TempPathFactory, records: list[bytes], data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("zeros") / "x.journal"
    written(path, records)
    content = path.read_bytes()
    begin = len(content) - FRAME - len(records[-1])
    cut = data.draw(st.integers(begin, len(content) - 1))
    path.write_bytes(content[:cut] + b"\0" * (len(content) - cut))
    assert read(path) in (records[:-1], records)  # a record may itself end in zeros
    assert path.read_bytes() in (content[:begin], content)


def test_a_tail_that_is_longer_than_any_record_was_not_torn_but_damaged(path: Path) -> None:
    written(path, RECORDS)
    content = path.read_bytes()
    path.write_bytes(content + b"x" * (FRAME + RECORD_BYTES_MAX + 1))
    with pytest.raises(JournalFailed, match=rf"damaged at byte {len(content)}: restore it"):
        FileJournal(path, durable=False)


def test_the_largest_record_torn_at_its_last_byte_is_cut_off(path: Path) -> None:
    written(path, [*RECORDS, b"x" * RECORD_BYTES_MAX])
    content = path.read_bytes()
    path.write_bytes(content[:-1])
    assert read(path) == RECORDS


def test_the_largest_record_behind_a_damaged_one_is_found(path: Path) -> None:
    written(path, [b"one", b"x" * RECORD_BYTES_MAX])
    content = bytearray(path.read_bytes())
    content[3] ^= 1
    path.write_bytes(content)
    with pytest.raises(JournalFailed, match="damaged at byte 0"):
        FileJournal(path, durable=False)


@pytest.mark.parametrize("record", [0, 1])
def test_whole_records_behind_a_damaged_one_are_not_thrown_away(path: Path, record: int) -> None:
    written(path, RECORDS)
    content = bytearray(path.read_bytes())
    begin = sum(FRAME + len(earlier) for earlier in RECORDS[:record])
    content[begin + FRAME] ^= 1
    path.write_bytes(content)
    with pytest.raises(
        JournalFailed, match=rf"topics\.journal is damaged at byte {begin}: restore it, or move it away"
    ):
        FileJournal(path, durable=False)
    assert path.read_bytes() == content


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EFBIG])
def test_a_disk_that_refuses_is_told_and_its_journal_takes_records_again_when_the_disk_does(
    path: Path, files: FaultyFiles, error: int
) -> None:
    written(path, RECORDS)
    journal = FileJournal(path, durable=True, files=files)
    files.fail("writev", error=error)
    for _ in range(2):
        with pytest.raises(JournalFailed, match=r"cannot write topics\.journal"):
            journal.append(b"four")
    files.heal()
    assert list(journal.replay()) == RECORDS
    journal.append(b"five")
    journal.close()
    assert read(path) == [*RECORDS, b"five"]


@pytest.mark.parametrize("short_to", range(1, 28))
def test_records_of_one_append_are_written_all_or_none(path: Path, files: FaultyFiles, short_to: int) -> None:
    written(path, RECORDS)
    journal = FileJournal(path, durable=False, files=files)
    files.short_to = short_to
    with pytest.raises(JournalFailed, match="short write"):
        journal.append(b"four", b"five", b"six")
    files.heal()
    journal.append(b"seven", b"eight")
    journal.close()
    assert read(path) == [*RECORDS, b"seven", b"eight"]


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EMFILE, errno.ENOMEM])
@pytest.mark.parametrize("call", ["writev", "open_append", "open_replace", "rename", "open_directory"])
def test_a_lack_of_space_or_handles_passes_and_the_next_record_is_taken(
    path: Path, files: FaultyFiles, call: str, error: int
) -> None:
    written(path, RECORDS)
    journal = FileJournal(path, durable=True, files=files)
    files.fail(call, error=error)
    with suppress(JournalFailed):
        journal.replace(RECORDS)
    with suppress(JournalFailed):
        journal.append(b"four")
    files.heal()
    journal.append(b"five")
    journal.close()
    assert read(path) in ([*RECORDS, b"five"], [*RECORDS, b"four", b"five"])


def test_a_torn_end_is_told_and_a_last_record_that_may_be_damaged_is_kept(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    notices = Notices()
    written(path, RECORDS)
    content = path.read_bytes()
    end = len(content) - FRAME - len(RECORDS[-1])
    path.write_bytes(content[:-1])
    assert read(path) == RECORDS[:-1]
    assert f"{path}: {FRAME + 4} bytes behind the last whole record were cut off (the beginning of one)" in caplog.text
    assert not list(path.parent.glob("*.cut"))
    path.write_bytes(content[:-1] + b"?")
    journal = FileJournal(path, durable=False, notices=notices)
    journal.close()
    aside = path.with_name(f"{path.name}.{end}.cut")
    assert f"(kept in {aside.name}; a change that was made last may be missing)" in caplog.text
    assert aside.read_bytes() == content[end:-1] + b"?"
    assert notices.counts == {"journal_cut_bytes": FRAME + 5}


@pytest.mark.parametrize("short_to", [0, 1, 7, 8, 11])
def test_a_short_write_leaves_the_file_as_it_was(path: Path, files: FaultyFiles, short_to: int) -> None:
    written(path, RECORDS)
    before = path.read_bytes()
    journal = FileJournal(path, durable=False, files=files)
    files.short_to = short_to
    with pytest.raises(JournalFailed, match="short write"):
        journal.append(b"four")
    journal.close()
    assert path.read_bytes() == before


def test_a_record_that_can_neither_be_written_nor_cut_back_is_not_read(path: Path, files: FaultyFiles) -> None:
    written(path, RECORDS)
    journal = FileJournal(path, durable=False, files=files)
    files.short_to = 9
    files.fail("truncate")
    with pytest.raises(JournalFailed, match="nor can it be cut back"):
        journal.append(b"four")
    journal.close()
    assert read(path) == RECORDS


def test_nothing_is_appended_behind_a_torn_record(path: Path, files: FaultyFiles) -> None:
    written(path, RECORDS)
    journal = FileJournal(path, durable=False, files=files)
    files.short_to = 9
    files.fail("truncate")
    with pytest.raises(JournalFailed, match="nor can it be cut back"):
        journal.append(b"four")
    torn = path.read_bytes()
    files.short_to = None
    with pytest.raises(JournalFailed, match=r"cannot write topics\.journal"):
        journal.append(b"five")
    assert path.read_bytes() == torn
    files.heal()
    journal.append(b"six")
    journal.close()
    assert read(path) == [*RECORDS, b"six"]


def test_a_death_in_the_middle_of_a_record_costs_that_record_alone(path: Path, files: FaultyFiles) -> None:
    written(path, RECORDS)
    journal = FileJournal(path, durable=False, files=files)
    files.short_to, files.dies = 10, True
    with pytest.raises(Death):
        journal.append(b"four")
    journal.close()
    assert read(path) == RECORDS


def test_a_durable_journal_syncs_each_record_before_append_returns(path: Path, files: FaultyFiles) -> None:
    journal = FileJournal(path, durable=True, files=files)
    files.calls.clear()
    journal.append(b"one")
    assert files.calls == ["writev", "fdatasync"]
    journal.close()


def test_after_a_failed_sync_the_record_is_gone_and_nothing_more_is_taken(path: Path, files: FaultyFiles) -> None:
    """A second sync would prove nothing: the lost pages may count as clean."""
    journal = FileJournal(path, durable=True, files=files)
    journal.append(b"one")
    files.fail("fdatasync")
    with pytest.raises(JournalFailed):
        journal.append(b"two")
    files.heal()
    with pytest.raises(JournalFailed):
        journal.append(b"three")
    journal.close()
    assert read(path) == [b"one"]


def test_a_rewritten_journal_holds_the_new_records_and_takes_more(path: Path) -> None:
    written(path, RECORDS)
    journal = FileJournal(path, durable=False)
    journal.replace([b"new"])
    journal.append(b"more")
    journal.close()
    assert read(path) == [b"new", b"more"]


@pytest.mark.parametrize("call", ["open_replace", "writev", "open_append", "rename"])
def test_a_rewrite_that_the_disk_refuses_leaves_what_was_there_which_takes_more(
    path: Path, files: FaultyFiles, call: str
) -> None:
    written(path, RECORDS)
    journal = FileJournal(path, durable=False, files=files)
    files.fail(call, error=errno.ENOSPC)
    with pytest.raises(JournalFailed, match=r"cannot rewrite topics\.journal"):
        journal.replace([b"new"])
    files.heal()
    journal.append(b"four")
    journal.close()
    assert read(path) == [*RECORDS, b"four"]


def test_a_rewrite_that_finds_no_room_takes_none_away(path: Path, files: FaultyFiles) -> None:
    written(path, RECORDS)
    journal = FileJournal(path, durable=False, files=files)
    files.short_to = 5
    with pytest.raises(JournalFailed, match=r"cannot rewrite topics\.journal: .*short write"):
        journal.replace([b"new" * 50])
    journal.close()
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_after_a_rewrite_whose_name_may_be_lost_nothing_more_is_taken(path: Path, files: FaultyFiles) -> None:
    """After a crash the old file may be there: what is appended to the new one would be gone."""
    written(path, RECORDS)
    journal = FileJournal(path, durable=True, files=files)
    sync, synced = files.fsync, []

    def fails_at_the_folder(handle: int) -> None:
        synced.append(handle)
        if len(synced) == 2:
            raise OSError(errno.EIO, "a folder that cannot be synced")
        sync(handle)

    files.fsync = fails_at_the_folder  # type: ignore[method-assign]
    with pytest.raises(JournalFailed, match=r"cannot rewrite topics\.journal"):
        journal.replace([b"new"])
    with pytest.raises(JournalFailed, match=r"cannot rewrite topics\.journal"):
        journal.append(b"more")
    journal.close()
    assert read(path) == [b"new"]


@pytest.mark.parametrize("short_to", [0, 1, 12])
def test_a_rewrite_that_a_full_disk_cuts_short_leaves_what_was_there(
    path: Path, files: FaultyFiles, short_to: int
) -> None:
    written(path, RECORDS)
    journal = FileJournal(path, durable=False, files=files)
    files.short_to = short_to
    with pytest.raises(JournalFailed, match=r"cannot rewrite topics\.journal: .*short write"):
        journal.replace([b"new", b"more"])
    journal.close()
    assert read(path) == RECORDS


def test_a_rewrite_that_dies_half_way_leaves_what_was_there(path: Path, files: FaultyFiles) -> None:
    written(path, RECORDS)
    journal = FileJournal(path, durable=False, files=files)
    files.short_to, files.dies = 5, True
    with pytest.raises(Death):
        journal.replace([b"new" * 50])
    journal.close()
    assert read(path) == RECORDS


def test_a_durable_rewrite_is_on_the_disk_before_its_name_and_the_name_after_it(path: Path, files: FaultyFiles) -> None:
    journal = FileJournal(path, durable=True, files=files)
    files.calls.clear()
    journal.replace([b"new"])
    journal.close()
    assert files.calls == [
        "open_directory", "open_replace", "writev", "fsync", "open_append", "rename", "fsync",
    ]  # fmt: skip


def test_on_a_read_only_file_system_a_journal_is_read_and_refuses_records(path: Path, files: FaultyFiles) -> None:
    written(path, RECORDS)
    torn = path.read_bytes() + b"\0\0"
    path.write_bytes(torn)
    files.fail("open_append", "open_replace", "truncate", "fsync", error=errno.EROFS)
    journal = FileJournal(path, durable=True, files=files)
    assert list(journal.replay()) == RECORDS
    with pytest.raises(JournalFailed, match=r"cannot write topics\.journal: .*Read-only file system"):
        journal.append(b"four")
    with pytest.raises(JournalFailed, match=r"cannot rewrite topics\.journal: .*Read-only file system"):
        journal.replace([b"new"])
    journal.close()
    assert path.read_bytes() == torn
    assert read(path) == RECORDS


def test_a_journal_whose_file_system_can_be_written_again_is_rewritten_whole(path: Path, files: FaultyFiles) -> None:
    written(path, RECORDS)
    files.fail("open_append", error=errno.EROFS)
    journal = FileJournal(path, durable=False, files=files)
    files.heal()
    journal.replace([b"new"])
    journal.close()
    assert read(path) == [b"new"]


def test_a_journal_that_cannot_be_opened_for_another_reason_is_no_empty_one(path: Path, files: FaultyFiles) -> None:
    files.fail("open_append", error=errno.EACCES)
    with pytest.raises(PermissionError):
        FileJournal(path, durable=False, files=files)


def test_a_closed_journal_refuses_records_and_writes_into_no_other_file(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path / "topics.journal", durable=False)
    journal.append(b"kept")
    journal.close()
    with (tmp_path / "other").open("wb"):
        with pytest.raises(JournalFailed, match="closed"):
            journal.append(b"late")
        journal.close()
    assert (tmp_path / "other").read_bytes() == b""
    assert list(FileJournal(tmp_path / "topics.journal", durable=False).replay()) == [b"kept"]
