"""A data_dir: one process's at a time, and one broker's for ever."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from brokers.folder import FolderInUse, FolderOfAnother, FolderOfEarlierVersion, locked, of_this_layout, owned
from tests.unit.brokers.log.faulty_files import Death, FaultyFiles


def test_a_folder_is_made_and_locked_for_one_at_a_time(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    held = locked(folder)
    with pytest.raises(FolderInUse, match=f"another process has {folder}"):
        locked(folder)
    os.close(held)
    os.close(locked(folder))


@pytest.mark.parametrize("names", [["lock"], []])
def test_a_folder_of_a_read_only_file_system_is_locked_too(
    tmp_path: Path, names: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    for name in names:
        (tmp_path / name).touch()
    files = FaultyFiles()
    files.fail("open_append", error=errno.EROFS)
    held = locked(tmp_path, files)
    assert f"what is in {tmp_path} can be read, and nothing written: Read-only file system" in caplog.text
    with pytest.raises(FolderInUse):
        locked(tmp_path, files)
    os.close(held)


def test_a_lock_that_is_refused_for_another_reason_ends_the_start(tmp_path: Path) -> None:
    files = FaultyFiles()
    files.fail("open_append", error=errno.EACCES)
    with pytest.raises(PermissionError):
        locked(tmp_path, files)


def test_a_folder_is_that_of_the_first_broker_that_starts_on_it(tmp_path: Path) -> None:
    owned(tmp_path, 1)
    owned(tmp_path, 1)
    with pytest.raises(FolderOfAnother, match=f"{tmp_path} holds the data of broker 1, and this is broker 2"):
        owned(tmp_path, 2)
    owned(tmp_path, 1)


def test_a_folder_of_an_earlier_version_becomes_that_of_who_starts_on_it(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    owned(tmp_path, 7)
    assert (tmp_path / "broker.json").read_text() == '{"broker": 7}\n'
    with pytest.raises(FolderOfAnother):
        owned(tmp_path, 0)


@pytest.mark.parametrize("content", ["", "7", "[]", "{}", '{"broker": "7"}', '{"broker": true}', "\xff"])
def test_a_note_that_cannot_be_read_is_refused_and_said_to_be_removable(tmp_path: Path, content: str) -> None:
    (tmp_path / "broker.json").write_text(content, encoding="latin-1")
    with pytest.raises(FolderOfAnother, match=r"broker\.json holds b.*: remove it"):
        owned(tmp_path, 7)
    assert (tmp_path / "broker.json").read_text(encoding="latin-1") == content


@pytest.mark.parametrize("short_to", range(14))
def test_a_death_while_it_is_noted_leaves_the_whole_note_or_none(tmp_path: Path, short_to: int) -> None:
    files = FaultyFiles()
    files.short_to, files.dies = short_to, True
    with pytest.raises(Death):
        owned(tmp_path, 7, files)
    owned(tmp_path, 8)


def test_the_note_is_on_the_disk_before_its_name_and_the_name_before_the_start_goes_on(tmp_path: Path) -> None:
    files = FaultyFiles()
    owned(tmp_path, 7, files)
    assert files.calls == ["open_read", "open_replace", "writev", "fsync", "rename", "open_directory", "fsync"]


@pytest.mark.parametrize("error", [errno.EROFS, errno.ENOSPC])
def test_a_disk_that_takes_no_note_keeps_nobody_from_starting(
    tmp_path: Path, error: int, caplog: pytest.LogCaptureFixture
) -> None:
    files = FaultyFiles()
    files.fail("open_replace", error=error)
    owned(tmp_path, 7, files)
    assert f"cannot note that {tmp_path} is the folder of broker 7" in caplog.text
    owned(tmp_path, 8)


def test_logs_of_an_earlier_layout_are_refused_and_not_touched(tmp_path: Path) -> None:
    of_this_layout(tmp_path)
    (tmp_path / "topics").mkdir()
    of_this_layout(tmp_path)
    (tmp_path / "topics" / "orders-0").mkdir()
    with pytest.raises(FolderOfEarlierVersion, match=r"topics holds 1 logs as an earlier version laid them out"):
        of_this_layout(tmp_path)
    assert (tmp_path / "topics" / "orders-0").is_dir()
