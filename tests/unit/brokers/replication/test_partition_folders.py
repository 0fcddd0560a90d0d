"""Where partitions lie, and that a death at any moment of a deletion leaves a topic whole, or gone for good."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from brokers.log.files import OS_FILES, Files, OsFiles
from brokers.replication.partition_folders import PartitionFolders
from coordinators.model import Topic
from coordinators.placement import place
from tests.unit.brokers.log.faulty_files import Death

ORDERS = Topic("orders", place("orders", 2, 1, [1]), life="1")
CALLS = ("list_names", "make_directory", "open_directory", "fsync", "rename", "unlink", "remove_directory", "close")


class Dying(OsFiles):
    """The real disk, until the process dies before the system call of this number."""

    def __init__(self, dies_at: int) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self._dies_at = dies_at
        for name in CALLS:
            setattr(self, name, self._counted(name, getattr(OS_FILES, name)))

    def _counted(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any) -> Any:
            if len(self.calls) == self._dies_at:
                raise Death
            self.calls.append((name, *arguments))
            return call(*arguments)

        return counted


def folders(data: Path, files: Files = OS_FILES, *, durable: bool = True) -> PartitionFolders:
    return PartitionFolders(data, durable=durable, files=files)


def fill(data: Path, topic: Topic) -> None:
    of = folders(data)
    of.make(topic)
    for number in range(len(topic.partitions)):
        of.of(topic, number).mkdir()
        for name in ("00000000000000000000.log", "checkpoint"):
            (of.of(topic, number) / name).write_bytes(b"kept")


def delete(data: Path, files: Files) -> None:
    of = folders(data, files)
    apart = of.set_apart(ORDERS)
    assert apart is not None
    of.remove(apart)


def everything(data: Path) -> dict[str, bytes]:
    return {str(path.relative_to(data)): path.read_bytes() for path in data.rglob("*") if path.is_file()}


def test_a_death_at_each_system_call_of_a_deletion_leaves_all_or_nothing_and_a_start_finishes_it(
    tmp_path: Path,
) -> None:
    for dies_at in count():
        data = tmp_path / str(dies_at)
        fill(data, ORDERS)
        whole = everything(data)
        files = Dying(dies_at)
        try:
            delete(data, files)
        except Death:
            renamed = any(call[0] == "rename" for call in files.calls)
            left = {path: content for path, content in everything(data).items() if path.startswith("logs")}
            assert left == ({} if renamed else whole)
            folders(data).remove_deleted()
            assert everything(data) == left
            assert not list((data / "deleted").glob("*"))
            continue
        assert everything(data) == {}
        assert dies_at > 10
        return


@pytest.mark.parametrize("durable", [True, False])
def test_a_deletion_is_on_the_disk_before_anything_of_it_is_removed(tmp_path: Path, durable: bool) -> None:
    fill(tmp_path, ORDERS)
    files = Dying(-1)
    apart = folders(tmp_path, files, durable=durable).set_apart(ORDERS)
    assert apart == tmp_path / "deleted" / "1"
    synced = [call[1] for call in files.calls if call[0] == "open_directory"]
    assert synced == [tmp_path / "deleted", tmp_path / "logs" / "orders"] * durable
    assert "unlink" not in [call[0] for call in files.calls]
    assert not (tmp_path / "logs" / "orders").exists()


def test_the_folder_of_a_new_life_is_on_the_disk_with_all_of_its_parents(tmp_path: Path) -> None:
    files = Dying(-1)
    of = folders(tmp_path, files)
    of.make(ORDERS)
    synced = [call[1] for call in files.calls if call[0] == "open_directory"]
    assert synced == [tmp_path, tmp_path / "logs", tmp_path / "logs" / "orders"]
    done = len(files.calls)
    of.make(ORDERS)
    assert len(files.calls) == done


def test_lives_of_one_name_never_share_a_path(tmp_path: Path) -> None:
    of = folders(tmp_path)
    second = replace(ORDERS, life="2")
    fill(tmp_path, ORDERS)
    fill(tmp_path, second)
    assert of.set_apart(ORDERS) is not None
    assert (of.of(second, 1) / "checkpoint").read_bytes() == b"kept"
    assert not of.of(ORDERS, 0).exists()


def test_what_was_deleted_before_is_not_in_the_way_of_what_is_deleted_next(tmp_path: Path) -> None:
    of = folders(tmp_path)
    for number, life in enumerate("abc", start=1):
        topic = replace(ORDERS, life=life)
        fill(tmp_path, topic)
        assert of.set_apart(topic) == tmp_path / "deleted" / str(number)
    of.remove_deleted()
    assert everything(tmp_path) == {}


def test_a_topic_of_which_nothing_was_made_is_deleted(tmp_path: Path) -> None:
    assert folders(tmp_path).set_apart(ORDERS) is None


def test_a_removal_that_is_stopped_leaves_the_rest_to_the_next_start(tmp_path: Path) -> None:
    fill(tmp_path, ORDERS)
    of = folders(tmp_path)
    apart = of.set_apart(ORDERS)
    assert apart is not None
    of.stop()
    of.remove(apart)
    assert len(everything(tmp_path)) == 4
    folders(tmp_path).remove_deleted()
    assert everything(tmp_path) == {}


def test_a_removal_that_is_stopped_half_way_is_no_failure(tmp_path: Path) -> None:
    fill(tmp_path, ORDERS)
    disk = Dying(dies_at=-1)
    of = folders(tmp_path, disk)
    apart = of.set_apart(ORDERS)
    assert apart is not None
    unlink, removed = disk.unlink, count(1)

    def of_the_last_folder(path: Path) -> None:
        unlink(path)
        if next(removed) == 3:
            of.stop()

    disk.unlink = of_the_last_folder  # type: ignore[assignment]
    of.remove(apart)
    assert len(everything(tmp_path)) == 1
    folders(tmp_path).remove_deleted()
    assert everything(tmp_path) == {}


def test_what_is_no_present_topics_is_found(tmp_path: Path) -> None:
    of = folders(tmp_path)
    assert of.not_of({}) == []
    fill(tmp_path, ORDERS)
    fill(tmp_path, replace(ORDERS, life="2"))
    fill(tmp_path, replace(ORDERS, name="gone"))
    assert of.not_of({"orders": ORDERS}) == [tmp_path / "logs" / "gone" / "1", tmp_path / "logs" / "orders" / "2"]


def test_the_longest_name_of_a_topic_fits(tmp_path: Path) -> None:
    fill(tmp_path, replace(ORDERS, name="x" * 249, life="f" * 32))
    assert len(everything(tmp_path)) == 4
