"""The checker of histories: what an operation's end promises is held against what is stored and was read."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.checkers.api import Evidence
from workloads.checkers.history import check_history
from workloads.clients.history import FAIL, NO_OFFSET, READ, SEND, UNKNOWN, Operation
from workloads.faults.injection import Done, as_history
from workloads.faults.script import Step
from workloads.results import history_schema


def operation(kind: str, partition: int, first: int, messages: int = 1, outcome: str = "ok") -> Operation:
    return Operation(kind, partition, first, messages, NO_OFFSET, 1, 2, outcome)


def table(*operations: Operation) -> pa.Table:
    rows = [{"trial_id": "t", "role": "producer", "client": 0, **each._asdict()} for each in operations]
    steps = as_history([Done(Step("both", "kill", "broker-1"), 1, 2)], "t")
    return pa.concat_tables([pa.Table.from_pylist(rows, schema=history_schema()), steps])


def checked(stored: dict[int, list[int]], *operations: Operation) -> list[str]:
    found = {partition: np.array(ids, np.uint64) for partition, ids in stored.items()}
    return check_history(Evidence(0, {}, found, {}, history=table(*operations)))


def test_without_a_history_nothing_is_found() -> None:
    assert check_history(Evidence(5, {}, {}, {})) == []


def test_what_was_sent_stored_and_read_is_no_finding() -> None:
    sent = [operation(SEND, 0, 0, 10), operation(SEND, 1, 10, 5)]
    read = [operation(READ, 0, 0, 10), operation(READ, 1, 10, 2)]
    assert checked({0: list(range(10)), 1: list(range(10, 15))}, *sent, *read) == []


def test_an_acknowledged_message_that_is_not_stored_is_found() -> None:
    assert checked({0: [0, 2]}, operation(SEND, 0, 0, 3)) == [
        "by the history, partition 0: 1 messages acknowledged are not stored (0.1)"
    ]


def test_an_acknowledged_message_that_another_partition_has_is_lost_from_its_own() -> None:
    found = checked({1: [0]}, operation(SEND, 0, 0))
    assert found == ["by the history, partition 0: 1 messages acknowledged are not stored (0.0)"]


def test_a_message_that_was_refused_for_certain_and_is_stored_is_found() -> None:
    found = checked({0: [4]}, operation(SEND, 0, 4, outcome=FAIL))
    assert found == ["by the history, partition 0: 1 messages refused for certain are stored (0.4)"]


@pytest.mark.parametrize("stored", [[], [4]])
def test_a_message_of_which_nobody_knows_may_be_stored_or_not(stored: list[int]) -> None:
    assert checked({0: stored}, operation(SEND, 0, 4, outcome=UNKNOWN)) == []


@pytest.mark.parametrize("outcome", ["ok", UNKNOWN])
def test_a_message_that_was_read_and_never_sent_is_found(outcome: str) -> None:
    found = checked({0: [0]}, operation(SEND, 0, 0, outcome=outcome), operation(READ, 0, 0, 2))
    assert found == ["by the history, 1 messages were read that nobody sent (0.1)"]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4), st.sampled_from(["ok", FAIL, UNKNOWN])), max_size=12))
def test_what_keeps_every_promise_passes_and_one_loss_does_not(sends: list[tuple[int, int, str]]) -> None:
    operations, stored, first = [], dict[int, list[int]](), 0
    for partition, messages, outcome in sends:
        operations.append(operation(SEND, partition, first, messages, outcome))
        if outcome == "ok" or (outcome == UNKNOWN and first % 2):
            stored.setdefault(partition, []).extend(range(first, first + messages))
            operations.append(operation(READ, partition, first, messages))
        first += messages
    assert checked(stored, *operations) == []
    for each in operations:
        if (each.operation, each.outcome) == (SEND, "ok"):
            lossy = {p: [i for i in ids if i != each.first] for p, ids in stored.items()}
            assert len(checked(lossy, *operations)) == 1
