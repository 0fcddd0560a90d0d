"""The audit: every way in which a trial can fail to balance is found, and nothing else is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.checkers.api import Evidence
from workloads.checkers.audit import audit
from workloads.clients.client_files import Ids
from workloads.clients.drivers.api import COUNTER_BITS

History = dict[int, list[int]]


def message(producer: int, counter: int) -> int:
    return (producer << COUNTER_BITS) + counter


def ids(history: History) -> dict[int, Ids]:
    return {partition: np.array(found, np.uint64) for partition, found in history.items()}


def evidence(
    acknowledged: History, stored: History, consumed: History, sent: int | None = None, wrong: int = 0
) -> Evidence:
    total = sum(map(len, acknowledged.values()))
    return Evidence(total if sent is None else sent, ids(acknowledged), ids(stored), ids(consumed), wrong)


def audited(
    acknowledged: History, stored: History, consumed: History, sent: int | None = None, wrong: int = 0
) -> list[str]:
    return audit(evidence(acknowledged, stored, consumed, sent, wrong))


GOOD: History = {0: [message(0, 0), message(1, 0), message(0, 3)], 1: [message(0, 1), message(1, 1)]}


def changed(**partitions: list[int]) -> History:
    return {**GOOD, **{int(name.removeprefix("p")): found for name, found in partitions.items()}}


def test_a_trial_that_balances_has_no_findings_and_is_counted() -> None:
    assert audited(GOOD, GOOD, GOOD) == []
    assert evidence(GOOD, GOOD, GOOD).counts() == {"sent": 5, "acknowledged": 5, "stored": 5, "consumed": 5}


def test_a_trial_of_nothing_balances() -> None:
    assert audited({}, {}, {}) == []


def test_producers_may_interleave_in_a_partition_in_any_way() -> None:
    mixed = {0: [message(1, 0), message(0, 0), message(1, 1), message(0, 1)]}
    assert audited({0: sorted(mixed[0])}, mixed, mixed) == []


def test_counters_may_have_gaps_within_a_partition() -> None:
    sparse = {0: [message(0, 0), message(0, 30), message(0, 60)]}
    assert audited(sparse, sparse, sparse) == []


def test_a_partition_without_messages_is_no_finding() -> None:
    assert audited(changed(p2=[]), GOOD, changed(p2=[])) == []


@pytest.mark.parametrize(
    ("acknowledged", "stored", "consumed", "finding"),
    [
        (
            GOOD,
            changed(p1=[message(0, 1)]),
            changed(p1=[message(0, 1)]),
            "1 messages acknowledged and not stored (1.1)",
        ),
        (changed(p1=[message(0, 1)]), GOOD, GOOD, "1 messages stored and not acknowledged (1.1)"),
        (GOOD, GOOD, changed(p1=[message(0, 1)]), "1 messages stored and not consumed (1.1)"),
        (GOOD, GOOD, changed(p1=[*GOOD[1], message(7, 9)]), "1 messages consumed and not stored (7.9)"),
        (GOOD, changed(p1=[*GOOD[1], message(1, 1)]), GOOD, "1 messages stored more than once (1.1)"),
        (GOOD, GOOD, changed(p1=[*GOOD[1], message(1, 1)]), "1 messages consumed more than once (1.1)"),
        (GOOD, GOOD, changed(p1=GOOD[1][::-1]), "consumed in another order than stored"),
        (
            changed(p0=[message(0, 0), message(0, 3)]),
            changed(p0=[message(0, 3), message(0, 0)]),
            changed(p0=[message(0, 3), message(0, 0)]),
            "1 messages stored out of their producer's order (0.0)",
        ),
    ],
)
def test_each_fault_is_found_with_its_partition_and_an_example(
    acknowledged: History, stored: History, consumed: History, finding: str
) -> None:
    findings = audited(acknowledged, stored, consumed)
    assert any(found.endswith(finding) and found.startswith("partition ") for found in findings), findings


def test_messages_without_acknowledgement_are_found() -> None:
    assert audited(GOOD, GOOD, GOOD, sent=8) == ["3 of 8 messages sent were not acknowledged"]


def test_one_message_that_is_acknowledged_twice_does_not_stand_for_another() -> None:
    """All counts of the clients agree, and one message is nowhere."""
    findings = audited({0: [message(0, 0), message(0, 0)]}, {0: [message(0, 0)]}, {0: [message(0, 0)]})
    assert findings == ["partition 0: 1 messages acknowledged more than once (0.0)"]


def test_payloads_that_nobody_sent_are_found() -> None:
    assert audited(GOOD, GOOD, GOOD, wrong=2) == ["2 messages were received with a payload that nobody sent"]


def test_a_message_in_another_partition_than_its_own_is_found_in_both() -> None:
    moved = {0: [*GOOD[0], message(1, 1)], 1: [message(0, 1)]}
    findings = audited(GOOD, moved, moved)
    assert "partition 0: 1 messages stored and not acknowledged (1.1)" in findings
    assert "partition 1: 1 messages acknowledged and not stored (1.1)" in findings


def test_the_examples_of_a_finding_are_few() -> None:
    lost = {0: [message(0, counter) for counter in range(1000)]}
    (finding,) = audited(lost, {0: []}, {0: []})
    assert finding == "partition 0: 1000 messages acknowledged and not stored (0.0, 0.1, 0.2, ...)"


@st.composite
def histories(draw: st.DrawFn) -> History:
    """What a run without faults stores: each producer's batches in order, interleaved as it happens."""
    partitions = draw(st.integers(1, 4))
    stored: History = {partition: [] for partition in range(partitions)}
    counters = dict.fromkeys(range(draw(st.integers(1, 3))), 0)
    for _ in range(draw(st.integers(1, 20))):
        producer = draw(st.sampled_from(sorted(counters)))
        size = draw(st.integers(1, 4))
        at = draw(st.integers(0, partitions - 1))
        stored[at] += [message(producer, counters[producer] + offset) for offset in range(size)]
        counters[producer] += size
    return stored


@given(histories())
def test_every_history_without_a_fault_passes(stored: History) -> None:
    assert audited({partition: sorted(found) for partition, found in stored.items()}, stored, stored) == []


@st.composite
def edits(draw: st.DrawFn, history: History) -> History:
    """One change that no run without faults can make."""
    result = {partition: list(found) for partition, found in history.items()}
    partition = draw(st.sampled_from([partition for partition, found in history.items() if found]))
    found = result[partition]
    at = draw(st.integers(0, len(found) - 1))
    kinds = ["lose", "repeat", "invent", "move"]
    if len(found) > 1:
        kinds.append("swap")
    match draw(st.sampled_from(kinds)):
        case "lose":
            del found[at]
        case "repeat":
            found.insert(draw(st.integers(0, len(found))), found[at])
        case "invent":
            found.insert(at, message(99, at))
        case "move":
            result.setdefault(max(history) + 1, []).append(found.pop(at))
        case "swap":
            other = (at + 1) % len(found)
            found[at], found[other] = found[other], found[at]
    return result


@given(st.data(), histories(), st.sampled_from(["acknowledged", "stored", "consumed"]))
def test_one_edit_anywhere_is_found(data: st.DataObject, stored: History, where: str) -> None:
    parts = {"acknowledged": stored, "stored": stored, "consumed": stored}
    changed_part = data.draw(edits(stored))
    reordered = {p: sorted(f) for p, f in changed_part.items()} == {p: sorted(f) for p, f in stored.items()}
    if where == "acknowledged" and reordered:
        return  # acknowledgements come in any order
    parts[where] = changed_part
    sent = sum(map(len, stored.values()))
    assert audited(parts["acknowledged"], parts["stored"], parts["consumed"], sent)


# --- where not everything was to be consumed ------------------------------------------------------------------

MANY: History = {0: [message(0, counter) for counter in range(10)]}


def read_so_far(consumed: list[int], target: int) -> list[str]:
    return audit(Evidence(10, ids(MANY), ids(MANY), ids({0: consumed}), targets={0: target}))


@pytest.mark.parametrize("read", [4, 5, 10])
def test_as_much_as_was_to_be_consumed_or_more_is_no_finding(read: int) -> None:
    assert read_so_far(MANY[0][:read], target=4) == []


def test_less_than_was_to_be_consumed_is_found() -> None:
    assert read_so_far(MANY[0][:3], target=4) == ["partition 0: 1 messages stored and not consumed (0.3)"]


def test_a_gap_beyond_what_was_to_be_consumed_is_found() -> None:
    assert read_so_far([*MANY[0][:6], MANY[0][8]], target=4) == [
        "partition 0: 2 messages stored and not consumed (0.6, 0.7)",
    ]


@given(st.data(), histories())
def test_one_edit_in_what_is_consumed_is_found_with_targets_too(data: st.DataObject, stored: History) -> None:
    """Unless it takes the end off, which need not have been consumed."""
    consumed = data.draw(edits(stored))
    total = sum(map(len, stored.values()))
    found = audit(Evidence(total, ids(stored), ids(stored), ids(consumed), targets=dict.fromkeys(stored, 0)))
    assert bool(found) == any(stored.get(p, [])[: len(read)] != read for p, read in consumed.items())


small = st.dictionaries(st.integers(0, 1), st.lists(st.integers(0, 3), max_size=4), max_size=2)


@given(st.integers(0, 8), small, small, small)
def test_what_passes_has_four_equal_counts(
    sent: int, acknowledged: History, stored: History, consumed: History
) -> None:
    if not audited(acknowledged, stored, consumed, sent):
        assert len(set(evidence(acknowledged, stored, consumed, sent).counts().values())) == 1
