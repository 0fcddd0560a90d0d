from __future__ import annotations

import pytest

from coordinators.errors import Unreadable
from coordinators.model import Committed, TopicPartition
from coordinators.offsets import OffsetTable
from tests.contract.backend import MemoryJournal

AT = TopicPartition("orders", 0)


def test_a_table_is_what_its_journal_says() -> None:
    journal = MemoryJournal()
    OffsetTable(journal).commit("readers", {AT: Committed(1)})
    OffsetTable(journal).commit("readers", {AT: Committed(2, 3, "note")})
    assert OffsetTable(journal).committed("readers") == {AT: Committed(2, 3, "note")}


def test_a_forgotten_topic_is_forgotten_in_the_next_life_too() -> None:
    journal, kept = MemoryJournal(), TopicPartition("kept", 0)
    table = OffsetTable(journal)
    table.commit("readers", {AT: Committed(1), kept: Committed(2)})
    table.forget_topic("orders")
    assert OffsetTable(journal).committed("readers") == {kept: Committed(2)}


def test_a_journal_does_not_grow_with_commits_that_write_over_each_other() -> None:
    journal = MemoryJournal()
    table = OffsetTable(journal)
    for offset in range(50_000):
        table.commit("readers", {AT: Committed(offset)})
    assert len(journal.records) <= 20_001
    assert OffsetTable(journal).committed("readers") == {AT: Committed(49_999)}


@pytest.mark.parametrize("record", [b"", b"{}", b"[1]", b"null", b'["g","t"]', b"\xff"])
def test_a_record_that_is_no_commit_is_refused(record: bytes) -> None:
    journal = MemoryJournal()
    journal.append(record)
    with pytest.raises(Unreadable, match="journal offsets"):
        OffsetTable(journal)
