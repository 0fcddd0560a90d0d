"""Whether a trial may be believed: sent = acknowledged = stored = consumed, in order per partition, nothing twice.

`stored` is read from the brokers' disks after the timed window by a process of its own (`python -m brokers.readback`),
not through the path that was measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from workloads.drivers.api import COUNTER_BITS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workloads.observations import Ids

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
) -> Audit:
    """Compare what was acknowledged, stored and consumed, partition by partition."""
    counts = Counts(sent, _total(acknowledged), _total(stored), _total(consumed))
    findings = []
    if counts.sent != counts.acknowledged:
        findings.append(f"{counts.sent - counts.acknowledged} of {counts.sent} messages sent were not acknowledged")
    for partition in sorted({*acknowledged, *stored, *consumed}):
        empty = np.empty(0, np.uint64)
        of = [found.get(partition, empty) for found in (acknowledged, stored, consumed)]
        findings += [f"partition {partition}: {finding}" for finding in _partition_findings(*of)]
    if wrong_payloads:
        findings.append(f"{wrong_payloads} messages were received with a payload that nobody sent")
    return Audit(counts, tuple(findings))


def _partition_findings(acknowledged: Ids, stored: Ids, consumed: Ids) -> list[str]:
    findings = [
        *_difference("acknowledged and not stored", acknowledged, stored),
        *_difference("stored and not acknowledged", stored, acknowledged),
        *_difference("stored and not consumed", stored, consumed),
        *_difference("consumed and not stored", consumed, stored),
        *_repeated("acknowledged", acknowledged),
        *_repeated("stored", stored),
        *_repeated("consumed", consumed),
    ]
    if not findings and not np.array_equal(stored, consumed):
        findings.append("consumed in another order than stored")
    return findings + _disorder("stored", stored)


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
