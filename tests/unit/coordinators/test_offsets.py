from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pytest

from coordinators.errors import JournalFailed, Unreadable
from coordinators.model import Committed, TopicPartition
from coordinators.offsets import OffsetTable
from coordinators.strict_json import encoded
from tests.contract.backend import MemoryJournal

AT = TopicPartition("orders", 0)


LIVES = {"orders": "1", "kept": "1"}


def table_of(journal: MemoryJournal, lives: Mapping[str, str] = LIVES) -> OffsetTable:
    return OffsetTable(journal, lives.get)


def commit(table: OffsetTable, group: str, offsets: Mapping[TopicPartition, Committed]) -> None:
    table.write(table.rows(group, offsets))


def test_a_table_is_what_its_journal_says() -> None:
    journal = MemoryJournal()
    commit(table_of(journal), "readers", {AT: Committed(1)})
    commit(table_of(journal), "readers", {AT: Committed(2, 3, "note")})
    assert table_of(journal).committed("readers") == {AT: Committed(2, 3, "note")}


def test_a_forgotten_topic_is_forgotten_in_the_next_life_too() -> None:
    journal, kept = MemoryJournal(), TopicPartition("kept", 0)
    table = table_of(journal)
    commit(table, "readers", {AT: Committed(1), kept: Committed(2)})
    table.forget_topic("orders")
    assert table.committed("readers") == {kept: Committed(2)}
    assert table_of(journal, {"kept": "1"}).committed("readers") == {kept: Committed(2)}
    assert table_of(journal, {"kept": "1", "orders": "2"}).committed("readers") == {kept: Committed(2)}


def test_forgetting_a_topic_writes_nothing() -> None:
    """So there is no disk that can refuse the half of a deletion."""
    journal = MemoryJournal()
    table = table_of(journal)
    commit(table, "readers", {AT: Committed(1)})
    before = list(journal.records)
    table.forget_topic("orders")
    assert journal.records == before


def test_forgetting_a_topic_looks_at_the_groups_that_committed_in_it_alone() -> None:
    table = table_of(MemoryJournal())
    for number in range(100):
        commit(table, f"elsewhere-{number}", {TopicPartition("kept", 0): Committed(1)})
    commit(table, "readers", {AT: Committed(1)})
    asked: list[str] = []
    table._groups = Watched(table._groups, asked)
    table.forget_topic("orders")
    assert set(asked) == {"readers"}
    assert table.committed("elsewhere-7") == {TopicPartition("kept", 0): Committed(1)}


class Watched(dict[Any, Any]):
    """Notes which keys are looked at, each one where all are."""

    def __init__(self, content: dict[Any, Any], asked: list[str]) -> None:
        super().__init__(content)
        self._asked = asked

    def __getitem__(self, key: str) -> Any:
        self._asked.append(key)
        return super().__getitem__(key)

    def __iter__(self) -> Iterator[str]:
        self._asked.extend(self.keys())
        return super().__iter__()

    def values(self) -> Any:
        self._asked.extend(self.keys())
        return super().values()

    def items(self) -> Any:
        self._asked.extend(self.keys())
        return super().items()


def test_records_of_an_earlier_version_belong_to_the_life_that_they_are_found_in_and_to_no_later_one() -> None:
    journal = MemoryJournal()
    journal.append(encoded(["readers", "orders", 0, 7, -1, ""]))
    assert table_of(journal).committed("readers") == {AT: Committed(7)}
    assert table_of(journal).committed("readers") == {AT: Committed(7)}
    assert table_of(journal, {"orders": "2"}).committed("readers") == {}


def test_a_journal_does_not_grow_with_commits_that_write_over_each_other() -> None:
    journal = MemoryJournal()
    table = table_of(journal)
    for offset in range(50_000):
        commit(table, "readers", {AT: Committed(offset)})
    assert len(journal.records) <= 20_001
    assert table_of(journal).committed("readers") == {AT: Committed(49_999)}


def test_a_journal_that_cannot_be_rewritten_takes_commits_all_the_same_and_is_not_tried_with_each() -> None:
    journal = Unshrinkable()
    table = table_of(journal)
    for offset in range(50_000):
        commit(table, "readers", {AT: Committed(offset)})
    assert table.committed("readers") == {AT: Committed(49_999)}
    assert journal.tried <= 2


class Unshrinkable(MemoryJournal):
    tried = 0

    def replace(self, records: Iterable[bytes]) -> None:
        self.tried += 1
        raise JournalFailed("no room for two")


@pytest.mark.parametrize("record", [b"", b"{}", b"[1]", b"null", b'["g","t"]', b"\xff"])
def test_a_record_that_is_no_commit_is_refused(record: bytes) -> None:
    journal = MemoryJournal()
    journal.append(record)
    with pytest.raises(Unreadable, match="journal offsets"):
        table_of(journal)
