"""The history of operations: what a client notes comes back whole, in bounded memory."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.clients import history as history_module
from workloads.clients.client_files import NotWritten, with_trial_id
from workloads.clients.drivers.api import COUNTER_BITS
from workloads.clients.history import (
    FAIL,
    NO_OFFSET,
    ROWS_KEPT_MAX,
    SEND,
    UNKNOWN,
    History,
    Operation,
    history_path,
    read_histories,
)
from workloads.results import history_schema


def send(first: int, messages: int = 1, **changes: Any) -> Operation:
    whole = {"offset": first, "invoked_ns": 5, "done_ns": 9, "partition": 0, **changes}
    return Operation(SEND, first=first, messages=messages, **whole)


def written(folder: Path, *noted: Operation) -> list[dict[str, Any]]:
    out = folder / "producer-0"
    history = History(history_path(out), "producer", 0)
    for each in noted:
        history.note(each)
    history.close()
    found: list[dict[str, Any]] = read_histories([out]).to_pylist()
    return found


def test_an_operation_comes_back_as_it_was_noted(tmp_path: Path) -> None:
    noted = send(7, 3, partition=2, offset=NO_OFFSET, outcome=FAIL, detail="NOT_LEADER")
    assert written(tmp_path, noted) == [{"role": "producer", "client": 0, **noted._asdict()}]


def test_one_invocation_that_goes_on_is_one_row_until_its_last_end(tmp_path: Path) -> None:
    (row,) = written(tmp_path, send(0, 10, done_ns=6), send(10, 5, done_ns=8))
    assert (row["first"], row["messages"], row["offset"], row["done_ns"]) == (0, 15, 0, 8)
    (row,) = written(tmp_path, send(0, offset=NO_OFFSET, outcome=UNKNOWN), send(1, offset=NO_OFFSET, outcome=UNKNOWN))
    assert row["messages"] == 2


@pytest.mark.parametrize(
    "change",
    [
        {"partition": 1}, {"first": 2}, {"offset": 7}, {"offset": NO_OFFSET}, {"invoked_ns": 6},
        {"outcome": UNKNOWN}, {"detail": "x"}, {"operation": "read"},
    ],
)  # fmt: skip
def test_what_differs_in_anything_else_is_a_row_of_its_own(tmp_path: Path, change: dict[str, Any]) -> None:
    assert len(written(tmp_path, send(0), send(1)._replace(**change))) == 2


operations = st.builds(
    send,
    st.integers(0, 3),
    st.integers(1, 3),
    partition=st.integers(0, 1),
    offset=st.integers(-1, 3),
    outcome=st.sampled_from(["ok", FAIL, UNKNOWN]),
)


@given(noted=st.lists(operations, max_size=30))
def test_no_message_is_lost_or_gained_by_joining_rows(
    tmp_path_factory: pytest.TempPathFactory, noted: list[Operation]
) -> None:
    def each_message(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
        return [
            (row["partition"], row["first"] + at, -1 if row["offset"] < 0 else row["offset"] + at, row["outcome"])
            for row in rows
            for at in range(row["messages"])
        ]

    rows = written(tmp_path_factory.mktemp("history"), *noted)
    assert each_message(rows) == each_message([each._asdict() for each in noted])


def test_only_so_many_rows_are_kept_in_memory(tmp_path: Path) -> None:
    out = tmp_path / "producer-0"
    history = History(history_path(out), "producer", 0)
    for at in range(2 * ROWS_KEPT_MAX + 5):
        history.note(send(3 * at))
        assert len(history._kept) <= ROWS_KEPT_MAX
    history.close()
    assert read_histories([out]).column("first").to_pylist() == [3 * at for at in range(2 * ROWS_KEPT_MAX + 5)]


def test_messages_that_come_together_are_rows_of_consecutive_ids(tmp_path: Path) -> None:
    out = tmp_path / "consumer-1"
    history = History(history_path(out), "consumer", 1)
    ids = [4, 5, (1 << COUNTER_BITS) + 9, 6]
    values = [*(number.to_bytes(8, "big") + b"rest" for number in ids), b"\x01"]
    history.read([0, 0, 0, 1, 1], values, [10, 11, 12, 3, 4], 100, 200)
    history.close()
    rows = read_histories([out]).to_pylist()
    assert [(row["partition"], row["first"], row["messages"], row["offset"]) for row in rows] == [
        (0, 4, 2, 10),
        (0, (1 << COUNTER_BITS) + 9, 1, 12),
        (1, 6, 1, 3),
        (1, 0x01FFFFFFFFFFFFFF, 1, 4),  # a payload that is cut stands for no id that anybody sent
    ]
    assert {(row["operation"], row["outcome"], row["invoked_ns"], row["done_ns"]) for row in rows} == {
        ("read", "ok", 100, 200)
    }


def test_acknowledged_messages_are_told_as_often_as_is_asked_for(tmp_path: Path) -> None:
    told: list[int] = []
    history = History(tmp_path / "a", "producer", 0, 100, told.append)
    for first in range(0, 350, 50):
        history.note(send(first, 50, outcome="ok" if first != 100 else UNKNOWN))
    assert told == [100, 200, 300]
    silent: list[int] = []
    History(tmp_path / "b", "producer", 0, 0, silent.append).note(send(0, 10_000))
    assert silent == []


def test_histories_of_all_clients_are_joined_in_the_schema_of_the_raw_records(tmp_path: Path) -> None:
    outs = [tmp_path / "producer-0", tmp_path / "producer-1"]
    for client, out in enumerate(outs):
        history = History(history_path(out), "producer", client)
        history.note(send(client << COUNTER_BITS))
        history.close()
    table = with_trial_id(read_histories(outs), "cell/static/1")
    assert table.schema.equals(history_schema())
    assert table.column("client").to_pylist() == [0, 1]


def test_a_client_that_did_nothing_leaves_an_empty_history(tmp_path: Path) -> None:
    assert written(tmp_path) == []


def test_a_disk_that_refuses_is_told_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history = History(tmp_path / "a", "producer", 0)

    class Full:
        def write_batch(self, _: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(history, "_writer", Full())
    monkeypatch.setattr(history_module, "ROWS_KEPT_MAX", 1)
    history.note(send(0))
    with pytest.raises(NotWritten, match=f"cannot be written to {tmp_path}: No space left on device"):
        history.note(send(5))
    with pytest.raises(NotWritten, match="its history cannot be written to"):
        History(tmp_path / "no" / "folder", "producer", 0)
