"""Whether a trial may be believed: sent = acknowledged = stored = consumed, in order per partition, nothing twice.

`stored` is read from the brokers' disks after the timed window by a process of its own (`python -m brokers.readback`),
not through the path that was measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from workloads.clients.drivers.api import COUNTER_BITS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workloads.clients.client_files import Ids

EXAMPLES_MAX: Final = 3
_COUNTER_MASK: Final = np.uint64((1 << COUNTER_BITS) - 1)


@dataclass(frozen=True, slots=True)
class Counts:
    sent: int
    acknowledged: int
    stored: int
    consumed: int


@dataclass(frozen=True, slots=True)
class Audit:
    counts: Counts
    findings: tuple[str, ...]  # empty where everything balances


def audit(
    sent: int,
    acknowledged: Mapping[int, Ids],
    stored: Mapping[int, Ids],
    consumed: Mapping[int, Ids],
    wrong_payloads: int = 0,
    targets: Mapping[int, int] | None = None,
) -> Audit:
    """Compare what was acknowledged, stored and consumed, partition by partition.

    Where `targets` say how many messages of each partition were to be consumed, only so many must have been: the rest
    may be consumed or not, but without a gap.
    """
    counts = Counts(sent, _total(acknowledged), _total(stored), _total(consumed))
    findings = []
    if counts.sent != counts.acknowledged:
        findings.append(f"{counts.sent - counts.acknowledged} of {counts.sent} messages sent were not acknowledged")
    for partition in sorted({*acknowledged, *stored, *consumed}):
        empty = np.empty(0, np.uint64)
        of = [found.get(partition, empty) for found in (acknowledged, stored, consumed)]
        target = None if targets is None else targets.get(partition, 0)
        findings += [f"partition {partition}: {finding}" for finding in _partition_findings(target, *of)]
    if wrong_payloads:
        findings.append(f"{wrong_payloads} messages were received with a payload that nobody sent")
    return Audit(counts, tuple(findings))


def _partition_findings(target: int | None, acknowledged: Ids, stored: Ids, consumed: Ids) -> list[str]:
    wanted = stored if target is None else stored[: max(target, _reach(stored, consumed))]
    if _balances(acknowledged, stored, consumed, wanted):
        return []
    findings = [
        *_difference("acknowledged and not stored", acknowledged, stored),
        *_difference("stored and not acknowledged", stored, acknowledged),
        *_difference("stored and not consumed", wanted, consumed),
        *_difference("consumed and not stored", consumed, stored),
        *_repeated("acknowledged", acknowledged),
        *_repeated("stored", stored),
        *_repeated("consumed", consumed),
    ]
    if not findings and not np.array_equal(wanted, consumed):
        findings.append("consumed in another order than stored")
    return findings + _disorder("stored", stored)


def _balances(acknowledged: Ids, stored: Ids, consumed: Ids, wanted: Ids) -> bool:
    """Whether there is nothing to find; far quicker than looking for each finding."""
    in_order = np.sort(stored)
    return (
        np.array_equal(consumed, wanted)
        and np.array_equal(np.sort(acknowledged), in_order)
        and bool((in_order[1:] > in_order[:-1]).all())
        and not _disorder("stored", stored)
    )


def _reach(stored: Ids, consumed: Ids) -> int:
    """How far into what is stored was consumed."""
    if np.array_equal(consumed, stored[: len(consumed)]):  # as it should be
        return len(consumed)
    places = np.nonzero(np.isin(stored, consumed))[0]
    return int(places[-1]) + 1 if len(places) else 0


def _difference(what: str, one: Ids, other: Ids) -> list[str]:
    return _finding(what, np.setdiff1d(one, other))


def _repeated(what: str, ids: Ids) -> list[str]:
    values, times = np.unique(ids, return_counts=True)
    return _finding(f"{what} more than once", values[times > 1])


def _disorder(what: str, ids: Ids) -> list[str]:
    """Messages behind a later one of the same producer."""
    behind = []
    producers = ids >> np.uint64(COUNTER_BITS)
    for producer in np.unique(producers):
        own = ids[producers == producer]
        behind.append(own[1:][own[1:] < own[:-1]])
    return _finding(f"{what} out of their producer's order", np.concatenate(behind)) if behind else []


def _finding(what: str, ids: Ids) -> list[str]:
    if not len(ids):
        return []
    examples = ", ".join(f"{int(i >> np.uint64(COUNTER_BITS))}.{int(i & _COUNTER_MASK)}" for i in ids[:EXAMPLES_MAX])
    more = ", ..." if len(ids) > EXAMPLES_MAX else ""
    return [f"{len(ids)} messages {what} ({examples}{more})"]


def _total(found: Mapping[int, Ids]) -> int:
    return sum(len(ids) for ids in found.values())
